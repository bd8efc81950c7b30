// Markdown to nodes. A model's output is untrusted: nothing here reads it as HTML, every text goes
// into a text node, and a link leads to http, https or mailto or is plain text.

const kInline =
  /(`+)([\s\S]*?[^`])\1(?!`)|\*\*([\s\S]+?)\*\*|__([\s\S]+?)__|\*([^\s*][\s\S]*?)\*|\[([^\]\n]+)\]\(([^)\s]+)\)|(https?:\/\/[^\s<>)"']+)/;

function element(name, ...children) {
  const node = document.createElement(name);
  node.append(...children);
  return node;
}

function link(label, target) {
  let url;
  try {
    url = new URL(target);
  } catch {
    return document.createTextNode(label);
  }
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) return document.createTextNode(label);
  const node = element("a", label);
  node.href = url.href;
  node.rel = "noopener noreferrer nofollow";
  node.target = "_blank";
  return node;
}

function inline(parent, text, depth = 0) {
  while (text) {
    const match = depth < 8 ? kInline.exec(text) : null;
    if (!match) break;
    parent.append(text.slice(0, match.index));
    const [whole, , code, strong, strong2, em, label, target, bare] = match;
    if (code !== undefined) parent.append(element("code", code.trim() || code));
    else if (strong ?? strong2) parent.append(inline(element("strong"), strong ?? strong2, depth + 1));
    else if (em) parent.append(inline(element("em"), em, depth + 1));
    else if (label) parent.append(link(label, target));
    else parent.append(link(bare, bare));
    text = text.slice(match.index + whole.length);
  }
  parent.append(text);
  return parent;
}

function codeBlock(lines, language) {
  const code = element("code", lines.join("\n"));
  const copy = element("button", "Copy");
  copy.type = "button";
  copy.addEventListener("click", async () => {
    await navigator.clipboard?.writeText(code.textContent);
    copy.textContent = "Copied";
  });
  const pre = element("pre", code);
  pre.tabIndex = 0;
  pre.setAttribute("role", "region");
  pre.setAttribute("aria-label", language ? `Code, ${language}` : "Code");
  const box = element("div", pre, copy);
  box.className = "code";
  return box;
}

const kItem = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;

function list(lines) {
  const first = kItem.exec(lines[0]);
  const indent = first[1].length;
  const node = element(/\d/.test(first[2]) ? "ol" : "ul");
  if (node.tagName === "OL") node.start = parseInt(first[2], 10);
  let item = [];
  const flush = () => {
    if (!item.length) return;
    const entry = inline(element("li"), item[0]);
    const rest = item.slice(1);
    if (rest.length) entry.append(...blocks(rest));
    node.append(entry);
  };
  for (const line of lines) {
    const match = kItem.exec(line);
    if (match && match[1].length <= indent) {
      flush();
      item = [match[3]];
    } else {
      item.push(line.slice(Math.min(line.search(/\S|$/), indent + 2)));
    }
  }
  flush();
  return node;
}

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());

function table(lines) {
  const row = (line, name) =>
    element("tr", ...cells(line).map((cell) => inline(element(name), cell)));
  const body = element("tbody", ...lines.slice(2).map((line) => row(line, "td")));
  const box = element("div", element("table", element("thead", row(lines[0], "th")), body));
  box.className = "table";
  return box;
}

function take(lines, from, condition) {
  let to = from;
  while (to < lines.length && condition(lines[to])) ++to;
  return to;
}

function blocks(lines) {
  const nodes = [];
  for (let i = 0; i < lines.length;) {
    const line = lines[i];
    const fence = /^\s*(```+|~~~+)\s*([\w+#.-]*)/.exec(line);
    let end = i + 1;
    let match;
    if (!line.trim()) {
      // between blocks
    } else if (fence) {
      end = take(lines, i + 1, (l) => !l.trim().startsWith(fence[1]));
      nodes.push(codeBlock(lines.slice(i + 1, end), fence[2]));
      ++end;
    } else if ((match = /^(#{1,6})\s+(.*)$/.exec(line))) {
      nodes.push(inline(element(`h${Math.min(match[1].length + 3, 6)}`), match[2]));
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      nodes.push(element("hr"));
    } else if (/^\s*>/.test(line)) {
      end = take(lines, i, (l) => /^\s*>/.test(l));
      const inner = lines.slice(i, end).map((l) => l.replace(/^\s*> ?/, ""));
      nodes.push(element("blockquote", ...blocks(inner)));
    } else if (kItem.test(line)) {
      end = take(lines, i, (l) => kItem.test(l) || /^\s{2,}\S/.test(l));
      nodes.push(list(lines.slice(i, end)));
    } else if (line.includes("|") && /^[\s|:-]*-[\s|:-]*$/.test(lines[i + 1] ?? "")) {
      end = take(lines, i, (l) => l.includes("|"));
      nodes.push(table(lines.slice(i, end)));
    } else {
      end = take(lines, i, (l) => l.trim() && !/^\s*(```|~~~|#{1,6}\s|>)/.test(l) && !kItem.test(l));
      end = Math.max(end, i + 1);
      nodes.push(inline(element("p"), lines.slice(i, end).join("\n")));
    }
    i = end;
  }
  return nodes;
}

// The nodes of a text.
export function render(text) {
  return blocks(text.split("\n"));
}
