import * as api from "./api.js";
import {render} from "./markdown.js";
import {conversations, saveConversations, saveSettings, settings} from "./store.js";

const $ = (id) => document.getElementById(id);
let current = null;  // the conversation that is shown
let running = null;  // the AbortController of the answer that is being written
let context = 0;     // tokens
let mostGuesses = 0;  // tokens that the server may guess ahead

function button(label, action, description) {
  const node = document.createElement("button");
  node.type = "button";
  node.textContent = label;
  if (description) node.setAttribute("aria-label", description);
  node.addEventListener("click", action);
  return node;
}

function show(id, text) {
  $(id).textContent = text;
  $(id).hidden = !text;
}

// The list of conversations.

function start() {
  stop();
  current = {id: crypto.randomUUID?.() ?? String(Date.now()), title: "New conversation", messages: []};
  conversations.unshift(current);
  draw();
  $("message").focus();
}

function choose(conversation) {
  stop();
  current = conversation;
  closeList();
  draw();
}

function remove(conversation) {
  conversations.splice(conversations.indexOf(conversation), 1);
  saveConversations();
  if (conversation === current) {
    if (conversations.length) choose(conversations[0]);
    else start();
  }
  drawList();
}

function drawList() {
  $("conversations").replaceChildren(...conversations.map((conversation) => {
    const item = document.createElement("li");
    const open = button(conversation.title, () => choose(conversation));
    open.setAttribute("aria-current", String(conversation === current));
    item.append(open, button("×", () => remove(conversation), `Delete ${conversation.title}`));
    return item;
  }));
}

function closeList() {
  $("list").classList.remove("open");
  $("toggle-list").setAttribute("aria-expanded", "false");
}

// The messages.

function fill(article, message) {
  const text = article.querySelector(".text");
  if (message.role === "user") text.textContent = message.content;
  else text.replaceChildren(...render(message.content));
  const details = article.querySelector("details");
  details.hidden = !message.reasoning;
  details.querySelector("div").textContent = message.reasoning ?? "";
}

function draw() {
  drawList();
  $("title").textContent = current.title;
  show("problem", "");
  const articles = current.messages.map((message, index) => {
    const article = document.createElement("article");
    article.className = message.role;
    const heading = document.createElement("h3");
    heading.textContent = message.role === "user" ? "You" : "Model";
    const details = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = "Reasoning";
    details.append(summary, document.createElement("div"));
    const text = document.createElement("div");
    text.className = "text";
    const actions = document.createElement("div");
    actions.className = "actions";
    if (message.role === "user") {
      actions.append(button("Edit", () => edit(index)));
    } else {
      actions.append(button("Copy", () => navigator.clipboard?.writeText(message.content)),
                     button("Regenerate", () => regenerate(index)));
    }
    const note = document.createElement("span");
    note.className = "quiet";
    note.textContent = message.note ?? "";
    actions.append(note);
    article.append(heading, details, text, actions);
    fill(article, message);
    return article;
  });
  if (!articles.length) {
    const empty = document.createElement("p");
    empty.className = "quiet";
    empty.textContent = "Nothing has been said yet. Enter sends, Shift+Enter begins a line.";
    articles.push(empty);
  }
  $("messages").replaceChildren(...articles);
  $("messages").scrollTop = $("messages").scrollHeight;
}

function edit(index) {
  if (running) return;
  $("message").value = current.messages[index].content;
  current.messages.length = index;
  draw();
  grow();
  $("message").focus();
}

function regenerate(index) {
  if (running) return;
  current.messages.length = index;
  answer();
}

// Answers.

function prompt() {
  const messages = current.messages.map(({role, content}) => ({role, content}));
  if (settings.system) messages.unshift({role: "system", content: settings.system});
  return messages;
}

function showUse(used) {
  $("context").max = context || 1;
  $("context").value = used;
  $("context-text").textContent = context ? `${used} of ${context} tokens` : "";
}

function describeGuesses(usage) {
  const {accepted_prediction_tokens: right, rejected_prediction_tokens: wrong} =
    usage.completion_tokens_details;
  return right + wrong > 0 ? ` · ${right} of ${right + wrong} guesses right` : "";
}

function stop() {
  running?.abort();
}

async function answer() {
  const conversation = current;
  const messages = prompt();
  const message = {role: "assistant", content: "", reasoning: ""};
  conversation.messages.push(message);
  draw();
  const article = $("messages").lastElementChild;
  article.classList.add("streaming");
  const controller = running = new AbortController();
  $("send").hidden = true;
  $("stop").hidden = false;
  $("status").textContent = "The model is answering.";

  const begun = performance.now();
  let first = 0;
  let tokens = 0;
  let guesses = "";
  let drawn = true;
  const speed = () => {
    const seconds = (performance.now() - first) / 1000;
    const rate = tokens > 1 && seconds > 0 ? `${((tokens - 1) / seconds).toFixed(1)} tokens/s · ` : "";
    return `${rate}first token after ${((first - begun) / 1000).toFixed(2)} s`;
  };
  const redraw = () => {
    drawn = true;
    if (current !== conversation) return;
    const box = $("messages");
    const follows = box.scrollHeight - box.scrollTop - box.clientHeight < 80;
    fill(article, message);
    if (follows) box.scrollTop = box.scrollHeight;
    if (first) $("speed").textContent = speed();
  };

  let outcome = "The answer is complete.";
  try {
    for await (const event of api.chat(messages, controller.signal, mostGuesses)) {
      const choice = event.choices[0];
      if (choice?.delta.content || choice?.delta.reasoning_content) {
        first ||= performance.now();
        ++tokens;
        message.content += choice.delta.content ?? "";
        message.reasoning += choice.delta.reasoning_content ?? "";
        if (drawn) {
          drawn = false;
          requestAnimationFrame(redraw);
        }
      }
      if (choice?.finish_reason === "length") outcome = "The answer was cut off at the limit.";
      if (event.usage) {
        tokens = event.usage.completion_tokens;
        guesses = describeGuesses(event.usage);
        showUse(event.usage.total_tokens);
      }
    }
  } catch (error) {
    if (error.name === "AbortError") {
      outcome = "Stopped.";
    } else {
      outcome = "";
      show("problem", error.message);
      if (!message.content) conversation.messages.pop();
    }
  }
  if (first) message.note = `${tokens} tokens · ${speed()}${guesses}`;
  if (conversation.title === "New conversation") {
    conversation.title = messages.find(({role}) => role === "user").content.slice(0, 40);
  }
  if (running === controller) running = null;
  saveConversations();
  $("send").hidden = false;
  $("stop").hidden = true;
  $("status").textContent = outcome;
  const problem = $("problem").textContent;
  if (current === conversation) draw();
  show("problem", problem);
  $("message").focus();
}

function send() {
  const text = $("message").value.trim();
  if (!text || running) return;
  $("message").value = "";
  grow();
  current.messages.push({role: "user", content: text});
  answer();
}

function grow() {
  const box = $("message");
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
}

// Settings.

function openSettings() {
  for (const [name, value] of Object.entries(settings)) {
    const field = $("settings").querySelector(`[name="${name}"]`);
    if (field) field.value = value ?? "";
  }
  $("settings").returnValue = "";
  $("settings").showModal();
}

function keepSettings() {
  if ($("settings").returnValue !== "save") return;
  for (const field of $("settings").querySelectorAll("[name]")) {
    const text = field.value;
    settings[field.name] = field.type !== "number" ? text : text === "" ? null : Number(text);
  }
  saveSettings();
  load();
}

async function load() {
  try {
    const model = await api.model();
    context = model.context_length;
    mostGuesses = model.draft_tokens;
    $("guessing").hidden = $("guessing").disabled = mostGuesses === 0;
    $("settings").querySelector("[name=draft_tokens]").max = mostGuesses;
    $("model").textContent = model.id;
    show("problem", "");
    showUse($("context").value);
  } catch (error) {
    $("model").textContent = "";
    show("problem", error.status === 401 ? "The server asks for an API key: enter it in the settings."
                                         : error.message);
  }
}

$("new").addEventListener("click", () => { closeList(); start(); });
$("toggle-list").addEventListener("click", () => {
  const open = $("list").classList.toggle("open");
  $("toggle-list").setAttribute("aria-expanded", String(open));
});
$("open-settings").addEventListener("click", openSettings);
$("settings").addEventListener("close", keepSettings);
$("composer").addEventListener("submit", (event) => { event.preventDefault(); send(); });
$("stop").addEventListener("click", stop);
$("message").addEventListener("input", grow);
$("message").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    send();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || $("settings").open) return;
  stop();
  closeList();
});

if (conversations.length) choose(conversations[0]);
else start();
load();
