#!/usr/bin/env python3
"""Checks the web page in a headless Chromium, and takes the screenshots of docs/.

    web_page_check.py PROGRAM MODEL [--chromium /usr/bin/chromium] [--screenshots FOLDER]

Needs the packages playwright and axe-playwright-python, and Debian's chromium. Run by hand.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

HOSTILE = """# Title <script>window.broken = 1</script>
<img src=x onerror="window.broken = 1"> [click](javascript:window.broken=1) [ok](https://example.org/a)
```html
<script>window.broken = 1</script>
```
| a | b |
|---|---|
| <b>x</b> | **y** |

- one <svg onload="window.broken=1">
  - two `<i>`
> quoted *text*
"""


def check_rendering(page):
    """What a model writes never becomes markup of its own."""
    found = page.evaluate("""async (text) => {
      const {render} = await import("/markdown.js");
      const box = document.createElement("div");
      box.append(...render(text));
      document.body.append(box);
      await new Promise((resolve) => setTimeout(resolve, 100));
      const result = {
        broken: window.broken ?? 0,
        names: [...new Set([...box.querySelectorAll("*")].map((node) => node.localName))].sort(),
        links: [...box.querySelectorAll("a")].map((node) => node.href),
        code: box.querySelector("pre code").textContent,
      };
      box.remove();
      return result;
    }""", HOSTILE)
    assert found["broken"] == 0
    assert found["links"] == ["https://example.org/a"], found
    assert "<script>" in found["code"]
    forbidden = {"script", "img", "svg", "i", "b", "iframe", "style"} & set(found["names"])
    assert not forbidden, forbidden
    for name in ("table", "ul", "blockquote", "em", "strong", "h4"):
        assert name in found["names"], name


def serious(page):
    """Serious findings of axe-core."""
    violations = Axe().run(page).response["violations"]
    return [(v["id"], v["impact"], [node["html"] for node in v["nodes"]][:3])
            for v in violations if v["impact"] in ("serious", "critical")]


def wait_for_end(page):
    page.wait_for_selector("#send:visible", timeout=120_000)


def use(page, url):
    # Answers that end, and are long enough to be stopped.
    page.add_init_script("""localStorage["edgerunner.settings"] ??= JSON.stringify(
        {temperature: 0, max_tokens: 400})""")
    page.goto(url)
    expect(page.locator("#model")).to_contain_text("SmolLM2")
    box = page.get_by_label("Your message")
    box.fill("What is the capital of France?")
    box.press("Enter")
    page.wait_for_selector("#stop:visible")
    wait_for_end(page)
    answer = page.locator("article.assistant .text").last
    assert answer.inner_text().strip(), "no answer"
    assert "tokens/s" in page.locator("article.assistant .actions").last.inner_text()
    assert "of" in page.locator("#context-text").inner_text()

    page.get_by_role("button", name="Regenerate").last.click()
    page.wait_for_selector("#stop:visible")
    wait_for_end(page)
    assert page.locator("article").count() == 2

    box.fill("Write a very long story about a lighthouse.")
    box.press("Enter")
    expect(page.locator("article.assistant .text").nth(1)).to_have_text(re.compile(r"\w.{40,}", re.S))
    page.keyboard.press("Escape")
    wait_for_end(page)
    assert page.locator("#status").inner_text() == "Stopped."

    page.get_by_role("button", name="Edit").last.click()
    assert box.input_value() == "Write a very long story about a lighthouse."
    assert page.locator("article").count() == 2
    box.fill("")

    page.reload()  # what was edited and not sent is as it was
    assert page.locator("article").count() == 4, "the conversation was not kept"
    assert not serious(page), serious(page)

    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Temperature").fill("0")
    page.get_by_label("System prompt").fill("Answer in one word.")
    assert not serious(page), serious(page)
    page.get_by_role("button", name="Save").click()
    page.wait_for_timeout(300)  # the dialog tells of its end a little later
    assert json.loads(page.evaluate("localStorage['edgerunner.settings']"))["temperature"] == 0


def check_guessing(page, url):
    """Tokens are guessed ahead where the settings say so, which are there where the server can."""
    def choose(how):
        page.get_by_role("button", name="Settings").click()
        page.get_by_label("Guess ahead").select_option(how)
        page.get_by_label("Most guesses").fill("4")
        assert not serious(page), serious(page)
        page.get_by_role("button", name="Save").click()

    def ask():
        page.get_by_role("button", name="Regenerate").last.click()
        page.wait_for_selector("#stop:visible")
        wait_for_end(page)
        return (page.locator("article.assistant .text").last.inner_text(),
                page.locator("article.assistant .actions").last.inner_text())

    page.locator("#new").evaluate("node => node.click()")  # in a list that a narrow page hides
    page.get_by_label("Your message").fill("Repeat these words: one two three one two three one two three")
    page.get_by_label("Your message").press("Enter")
    wait_for_end(page)
    sent = []
    page.on("request", lambda r: sent.append(r.post_data_json) if r.method == "POST" else None)
    choose("off")
    plain, note = ask()
    assert "guesses" not in note and sent[-1]["speculate"] == "off", (note, sent)
    choose("lookup")
    guessed, note = ask()
    assert re.search(r"\d+ of \d+ guesses right", note), note
    assert guessed == plain and sent[-1]["speculate"] == "lookup" and sent[-1]["draft_tokens"] == 4, sent

    def without_room(route):
        models = route.fetch().json()
        models["data"][0]["draft_tokens"] = 0
        route.fulfill(json=models)
    page.route("**/v1/models", without_room)
    page.reload()
    expect(page.locator("#model")).to_contain_text("SmolLM2")
    page.get_by_role("button", name="Settings").click()
    expect(page.get_by_label("Guess ahead")).to_be_hidden()
    page.get_by_role("button", name="Save").click()
    ask()
    assert "speculate" not in sent[-1] and "draft_tokens" not in sent[-1], sent[-1]
    page.unroute("**/v1/models")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--screenshots")
    arguments = parser.parse_args()
    server = subprocess.Popen([arguments.program, "serve", arguments.model, "--port", "0", "--json"],
                              stdout=subprocess.PIPE, text=True)
    try:
        url = f"http://127.0.0.1:{json.loads(server.stdout.readline())['port']}/"
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=arguments.chromium, args=["--no-sandbox"])
            for name, width, height, scheme in (("wide", 1100, 700, "light"), ("narrow", 360, 640, "dark")):
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                foreign, problems = [], []
                page.on("request", lambda r: foreign.append(r.url) if not r.url.startswith((url, "data:")) else None)
                page.on("pageerror", lambda error: problems.append(str(error)))
                use(page, url)
                if arguments.screenshots:
                    page.screenshot(path=pathlib.Path(arguments.screenshots) / f"web-{name}.png")
                check_guessing(page, url)
                check_rendering(page)
                overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                assert overflow <= 0, f"{name}: {overflow} pixels too wide"
                assert not foreign and not problems, (foreign, problems)
                print(f"ok {name}")
            browser.close()
    finally:
        server.terminate()
        server.wait(timeout=60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
