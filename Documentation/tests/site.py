#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=60
"""Runs inside the lab's root: the documentation's site in Chromium, from its folder, without a server. TAP."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE = 60 * int(os.environ.get("RASHPA_SLOW", 1))
WIDTHS = 900, 400
LOOK = """
const all = (what, of) => Array.from(document.querySelectorAll(what), of);
return {links: all('a[href]', a => a.href), ids: all('[id]', e => e.id),
        pictures: all('img', i => [i.src, i.complete && i.naturalWidth > 0, i.alt]),
        text: document.body.innerText.length};
"""
PLANTED = """<!DOCTYPE html><title>planted</title><img src="nowhere.svg"><a href="nowhere.html">x</a>
<a href="#nowhere">x</a><div style="width: 700px">x</div><script>nowhere()</script>
<script src="http://localhost:1/x.js"></script>"""
tests = []


def ok(found, name):
    tests.append(not found)
    for line in found:
        print("#", line)
    print("not ok" if found else "ok", len(tests), "-", name, flush=True)


def start(folder):
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for option in "headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", f"user-data-dir={folder}/profile":
        options.add_argument("--" + option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
    browser.set_page_load_timeout(PATIENCE)
    return browser


def page_of(url):
    parts = urlsplit(url)
    return Path(unquote(parts.path)), parts.fragment


def look(browser, paths):
    """{kind of defect: [lines]} of these pages."""
    seen, found = {}, {kind: [] for kind in ("link", "picture", "alternative", "console", "host", "width", "empty")}
    for path in paths:
        browser.get(path.as_uri())
        seen[path] = page = browser.execute_script(LOOK)
        found["picture"] += [f"{path}: {source}" for source, loaded, _ in page["pictures"] if not loaded]
        found["alternative"] += [f"{path}: {source}" for source, _, text in page["pictures"]
                                 if Path(text).name in ("", Path(source).name)]  # Sphinx gives the name of the file
        found["console"] += [f"{path}: {entry['message']}" for entry in browser.get_log("browser")]
        for entry in browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith(("file:", "data:", "chrome:")):  # chrome: the first tab
                    found["host"].append(f"{path}: {url}")
        for width in WIDTHS:
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False})
            real = browser.execute_script("return document.scrollingElement.scrollWidth")
            if real > width:
                found["width"].append(f"{path}: {real} pixels of {width}")
        if page["text"] < 100:
            found["empty"].append(str(path))
    for path, page in seen.items():
        for url in sorted(set(page["links"])):
            if not url.startswith("file:"):
                continue
            target, fragment = page_of(url)
            if not target.is_file() or fragment and target in seen and unquote(fragment) not in seen[target]["ids"]:
                found["link"].append(f"{path}: {url}")
    return found


def results(browser, index, word):
    """Names of pages that the search field of the first page finds."""
    browser.get(index.as_uri())
    browser.execute_script("const q = document.querySelector('input[name=q]'); q.value = arguments[0]; q.form.submit();", word)
    # the list ends with its summary, which has a number if there are results
    WebDriverWait(browser, PATIENCE).until(lambda b: "searching" not in b.title.lower() and [
        e for e in b.find_elements(By.CSS_SELECTOR, "p.search-summary") if any(c.isdigit() for c in e.text) or "did not" in e.text])
    return {page_of(a.get_attribute("href"))[0].relative_to(index.parent).as_posix()
            for a in browser.find_elements(By.CSS_SELECTOR, "ul.search li a")}


def main():
    top = Path(__file__).resolve().parents[2]
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([top / "Documentation/build.sh", folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        ok(made.stdout.splitlines() if made.returncode else [], "site: the site can be made")
        html = Path(folder, "html")
        pages = sorted(path for path in html.rglob("*.html") if "files" not in path.relative_to(html).parts)
        browser = start(folder)
        try:
            found = look(browser, pages)
            ok([] if len(pages) > 50 else [f"{len(pages)} pages"], "pages: there are pages to look at")
            ok(found["link"], "links: no link leads nowhere")
            ok(found["picture"], "pictures: each picture is there")
            ok(found["alternative"], "alternatives: each picture has an alternative text")
            ok(found["console"], "console: no page has an error in the browser's console")
            ok(found["host"], "hosts: no page loads anything from another host")
            ok(found["width"], "narrow: no page is wider than the screen")
            ok(found["empty"], "empty: each page has a text")
            for word, page in (("doorbell", "events.html"), ("solicited", "man/rashpa-bench.1.html"),
                               ("eventfd", "uapi-reference.html")):
                names = results(browser, html / "index.html", word)
                ok([] if page in names else [f"found: {sorted(names)}"], f"search/{word}: the search finds it in {page}")
            planted = Path(folder, "planted.html")
            planted.write_text(PLANTED, encoding="utf-8")
            found = look(browser, [planted])
            ok([kind for kind, lines in found.items() if not lines], "planted: each defect of a planted page is found")
        finally:
            browser.quit()
    print(f"1..{len(tests)}")
    sys.exit(not all(tests))


if __name__ == "__main__":
    main()
