#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=90
"""The page of rashpa-web in Chromium: page.py [FOLDER]. The driver is files (librashpa-fake.so), rashpactl a script here.
Writes pictures of the page to FOLDER, if it is given. TAP."""
import asyncio
import contextlib
import ctypes
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
TOOLS = TOP / "build/tools"
os.environ["RASHPA_LIBRARY"] = str(TOOLS / "librashpa-fake.so")
sys.path.insert(0, str(TOOLS / "python"))

import aiohttp
import numpy
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

import rashpa
from rashpa.web import look, server
from rashpa.web.experiment import Experiment

PATIENCE = 60 * int(os.environ.get("RASHPA_SLOW", 1))
STREAMS = "ring0", "big0", "peaks0", "profile0"
HOSTILE = "<img src=x onerror=alert(1)>\"'&"
COMMAND = """#!/usr/bin/env python3
import os, sys, time
folder, words = os.path.dirname(sys.argv[0]), [w for w in sys.argv[1:] if not w.startswith("-")]
if words[0] == "top":
    for n in range(1, 1 << 30):
        with open(folder + "/top.json") as file:
            text = file.read().replace("NOW", str(time.monotonic_ns()))
        print(text.replace("-IMAGES", str(1000 * n)).replace("-VETOED", str(900 * n)).replace("-SECONDS", str(2.5 * n)), flush=True)
        time.sleep(0.1)
elif words[0] == "event":
    with open(folder + "/events.json") as file:
        print(file.read().replace("NOW", str(time.monotonic_ns())), end="", flush=True)
    while os.getppid() != 1:
        time.sleep(0.1)
else:
    with open(folder + "/" + words[0] + ".json") as file:
        print(file.read())
"""
BEGIN = time.monotonic()
tests = []


def ok(right, name, note=""):
    tests.append(bool(right))
    if not right and note != "":
        print("#", *str(note).splitlines(), sep="\n# ")
    print(f"# {time.monotonic() - BEGIN:.1f} s")
    print("ok" if right else "not ok", len(tests), "-", name, flush=True)


# --- a machine: streams in files, and answers of rashpactl ---

class Machine:
    def __init__(self, folder):
        self.folder = folder
        self.driver = ctypes.CDLL(os.environ["RASHPA_LIBRARY"])
        self.driver.fake_buffer.restype = ctypes.c_void_p
        assert not self.driver.fake_driver_load()
        for name in STREAMS:    # less than 2 MiB, which the library would align
            assert self.driver.fake_buffer(name.encode(), ctypes.c_uint64((2 << 20) - (1 << 16)))
        command = folder / "rashpactl"
        command.write_text(COMMAND, encoding="utf-8")
        command.chmod(0o755)
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
        self.states = {**dict.fromkeys(STREAMS, "running"), HOSTILE: "dead"}
        self.lost = 0
        self.write()
        self.put("list", {"devices": [{
            "node": "fpga0", "number": 0, "bdf": "0000:03:00.0", "vendor": "1d0f", "device": "0001", "name": HOSTILE,
            "numa_node": 0, "iommu": True, "profile": True, "master": True, "state": "ready", "maps": 2, "windows": 1,
            "interrupts": 123456}], "candidates": [], "holdings": [{
                "resource": "memory", "uid": 0, "user": "root", "pid": 4711, "command": "remu", "amount": 1,
                "memory_bytes": 8 << 20, "since_ns": 1, "name": "ring0", "orphan": False}]})
        self.put("buffer", [{"name": "ring0", "uid": 0, "owner": "root", "group": "rashpa", "mode": "0660",
                             "length_bytes": 8 << 20, "backend": "contig", "numa_node": 0, "importers": 1, "mappings": 2,
                             "leases": 1}])
        text = "".join(json.dumps({"time_ns": "NOW", "kind": "device", "source": 1, "label": "device", "sequence": n, "value": n,
                                   "event": event, "records_lost": 0}) + "\n" for n, event in enumerate(("quiesced", "reset", "stuck")))
        (folder / "events.json").write_text(text.replace('"NOW"', "NOW"), encoding="utf-8")

    def put(self, name, value):
        """In one step, as the script reads it at any time."""
        file = self.folder / f"{name}.new"
        file.write_text(re.sub('"(NOW|-[A-Z]+)"', r"\1", json.dumps(value)), encoding="utf-8")
        file.rename(self.folder / f"{name}.json")

    def write(self):
        work = {"time_ns": 1, "engine": "cpu", "images": "-IMAGES", "dark": 10, "vetoed": "-VETOED", "overflow": 0, "lost": 0, "late": 3,
                "queue": {"stacks": 4, "fill": 1, "most": 2, "full": 0}, "sinks": [],
                "stages": [{"name": "peaks", "images": "-IMAGES", "lost": 0, "seconds": "-SECONDS", "bytes_in": 10**9, "bytes_out": 1}]}
        self.put("top", {"time_ns": "NOW", "skipped": [], "rings": [], "streams": [{
            "buffer": name, "state": state, "why": None, "fpga": 0, "vector": 0, "paced": False, "dtps": 1, "bunch": 1, "slots": 8,
            "seconds": 1.0, "images_per_second": 1234.5, "bytes_per_second": 2.5e9, "stacks": 10, "consumed": 8, "lag_stacks": 2,
            "skew_stacks": 0, "lost": self.lost if name == "ring0" else 0, "events": 5,
            "latency_ns": {"samples": 5, "p50": 12300, "p99": 45600, "max": 99999},
            "processing": work if name == "ring0" else None} for name, state in self.states.items()]})

    def state(self, name, state):
        self.states[name] = state
        self.write()


class Source(threading.Thread):
    """A producer whose images go on until the end of "with"."""

    def __init__(self, name, make, dtype="u2", images=0, **fields):
        super().__init__(daemon=True)
        self.make, self.images, self.done = make, images, threading.Event()
        self.last = self.frame = None
        self.name = name
        alive = ctypes.c_bool.in_dll(ctypes.CDLL(os.environ["RASHPA_LIBRARY"]), "fake_has_producer")
        alive.value = False     # else it is refused
        self.producer = rashpa.Producer(name, make(0).shape, dtype, policy="overwrite", **fields)
        alive.value = True

    def run(self):
        n = 0
        while not self.done.wait(0.02):
            if self.images and n >= self.images:
                continue
            with self.producer.slot(PATIENCE) as slot:
                slot.images[0] = self.last = self.make(n)
                self.frame = slot.frame
            n += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.join()
        self.producer.close()


def frame(n, shape=(256, 384)):
    y, x = numpy.indices(shape)
    rings = 200 * numpy.exp(-((numpy.hypot(x - shape[1] / 2, y - shape[0] / 2) % (shape[0] / 6) - 20) / 6) ** 2)
    return (rings + (x * 7 + y * 13 + n) % 50 + (n % 100)).astype("u2")


def noise(n):
    """It cannot be compressed."""
    return numpy.random.default_rng(n).integers(0, 1 << 16, (512, 900), "u2")


def peak_list(n):
    lines = numpy.full((20, 6), numpy.nan, "f4")
    lines[:5] = [[40 + 60 * i + n % 7, 50 + 30 * i, 1000, 5, 8, 9] for i in range(5)]
    return lines


def profile(n):
    q = numpy.linspace(0.1, 5, 200)
    return numpy.array([q, 1000 / (1 + q) + 200 * numpy.exp(-(q - 2) ** 2 * 20) + n % 10, numpy.sqrt(q)])


# --- a daemon ---

async def daemon(reader, writer):
    """A detector that says hello, and a status twice."""
    def send(content):
        text = f'<telegram xmlns="urn:rashpa:1" version="1.0" id="1">{content}</telegram>'.encode()
        writer.write(struct.pack(">I", len(text)) + text)

    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        await reader.readexactly(struct.unpack(">I", await reader.readexactly(4))[0])
        send('<capabilities role="detector" state="running"/>')
        for n in range(1000):
            send(f'<status state="running"><count name="images">{100 * n}</count></status>')
            await writer.drain()
            await asyncio.sleep(0.2)


# --- a browser ---

class Browser:
    def __init__(self, folder, url):
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for option in "headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", f"user-data-dir={folder}/profile":
            options.add_argument("--" + option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
        self.driver.set_page_load_timeout(PATIENCE)
        self.width(1280)
        self.driver.get(url)

    def width(self, width, height=900):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def wait(self, condition):
        """Wait until condition() is true; False after a long time."""
        with contextlib.suppress(Exception):
            return WebDriverWait(self.driver, PATIENCE, 0.1).until(lambda _: condition())
        return False

    def text(self, place="body"):
        return self.driver.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", place)

    def has(self, *words, place="body"):
        return self.wait(lambda: all(word in self.text(place) for word in words))

    def number(self, title, place="#numbers"):
        """The value next to a title."""
        lines = self.text(place).splitlines()
        return lines[lines.index(title) + 1].replace("\u202f", "") if title in lines else ""

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def go(self, view):
        self.run("location.hash = arguments[0]", view)

    def stream(self, name):
        self.run("location.hash = '#stream/' + encodeURIComponent(arguments[0])", name)

    def press(self, *keys):
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def faults(self):
        """(errors of the console, requests to other hosts)"""
        errors = [e["message"] for e in self.driver.get_log("browser")]
        urls = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                urls.append(message["params"].get("url") or message["params"]["request"]["url"])
        return errors, [url for url in urls if not url.startswith((self.own, self.own.replace("http", "ws"), "data:", "chrome:"))]


def click_at(browser, x, y):
    """Point at a pixel of the image with the pointer."""
    browser.run("""
const [x, y] = arguments, c = document.getElementById('image'), r = c.getBoundingClientRect();
for (const kind of ['pointermove'])
    c.dispatchEvent(new PointerEvent(kind, {clientX: r.left + x * r.width, clientY: r.top + y * r.height, pointerId: 1}));
""", x, y)


def value(browser):
    """(x, y, value) of the pixel, when there is a value."""
    def seen():
        text, at = browser.number("Value", "#sums"), browser.number("Pixel x, y", "#sums")
        return text and "–" not in text and [int(n) for n in at.split(", ")] + [int(text.split()[0])]
    return browser.wait(seen)


def views(browser, machine):
    ok(browser.has("connected", place="#link"), "connected: the page has its token from the address, and connects")
    ok("token" not in browser.driver.current_url, "hidden: the address shows no token any more")
    ok(browser.has("ring0", "running", "1234.5", "2.500", "2 of 8", "12.3", "45.6", place="#streams"),
       "overview/streams: state, rate, lag and latency", browser.text("#streams"))
    ok(browser.has("GB/S" if "GB/S" in browser.text("#streams") else "GB/s", place="#streams"), "overview/units: columns have units")
    ok(browser.has("fpga0", "0000:03:00.0", "ready", place="#boards"), "overview/boards: the board", browser.text("#boards"))
    ok(browser.has("8 MiB", "root:rashpa", "0660", place="#buffers"), "overview/buffers: the buffer", browser.text("#buffers"))
    ok(browser.has("remu (4711)", place="#holdings"), "overview/holdings: who holds what", browser.text("#holdings"))
    ok(HOSTILE in browser.text("#streams") and HOSTILE in browser.text("#boards") and not browser.run("return document.images.length"),
       "hostile/names: a name is a text, not HTML")


def live(browser, source, images):
    browser.stream("ring0")
    ok(browser.has("384 × 256 pixels, uint16", "running", place="#stream"), "stream/geometry: the stream's geometry", browser.text("#stream"))
    first = browser.wait(lambda: browser.number("Image number"))
    ok(browser.wait(lambda: browser.number("Image number") != first), "stream/live: another image comes", first)
    # stands still for values
    source.images = 1
    ok(browser.wait(lambda: browser.number("Image number") == str(source.frame)), "stream/last: the last image is shown",
       (source.frame, browser.text("#numbers")))
    drawn = browser.run("""const c = document.getElementById('image'), p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
return new Set(new Uint32Array(p.buffer)).size""")
    ok(drawn > 20, "stream/colours: the image has colours", drawn)
    for place in (0.3, 0.3), (0.5, 0.5), (0.6, 0.2):
        click_at(browser, *place)
        found = value(browser)
        ok(found and source.last[found[1], found[0]] == found[2], f"stream/value-{place[0]}: a pixel's value is the buffer's", found)
    browser.run("document.getElementById('image').focus()")
    before = value(browser)
    browser.press(Keys.ARROW_RIGHT)
    after = browser.wait(lambda: (v := value(browser)) and v[0] == before[0] + 1 and v)
    ok(after and source.last[after[1], after[0]] == after[2], "keyboard/pixel: an arrow moves the pixel", (before, after))
    browser.run("document.getElementById('image').blur(); document.getElementById('image').focus()")
    webdriver.ActionChains(browser.driver).key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN).key_up(Keys.SHIFT).perform()
    x, y = after[:2]
    right = source.last[y:y + 2, x:x + 2].sum()
    ok(browser.wait(lambda: browser.number("Region", "#sums").startswith("2 × 2") and browser.number("Sum", "#sums") == f"{right} counts"),
       "keyboard/region: the sum of a region is that of the buffer", (right, browser.text("#sums")))
    browser.press("+", "+")
    ok(browser.wait(lambda: browser.number("Part") not in ("", "whole image")), "keyboard/zoom: + zooms", browser.text("#numbers"))
    click_at(browser, 0.4, 0.5)
    found = value(browser)
    ok(found and source.last[found[1], found[0]] == found[2], "stream/zoomed: values of a part are right, too", found)
    browser.press("0", "l")
    ok(browser.wait(lambda: browser.number("Part") == "whole image" and browser.has("logarithmic", place="#legend")),
       "keyboard/scale: 0 shows the whole image, L is logarithmic")
    browser.press("l", "c", "m")
    ok(browser.run("return [document.getElementById('contrast').value, document.getElementById('mean').value, document.getElementById('limits').hidden]")
       == ["fixed", "5", False], "keyboard/contrast: C fixes the contrast, M takes a mean")
    browser.press("c", "m", "m")
    Select(browser.driver.find_element(By.ID, "palette")).select_by_value("inferno")
    source.images = 0
    ok(browser.wait(lambda: browser.run("return document.getElementById('rate').getAttribute('aria-label')").endswith("1234")
                    or "123" in browser.run("return document.getElementById('rate').getAttribute('aria-label')")),
       "stream/rate: the rate is plotted")
    Select(browser.driver.find_element(By.ID, "overlay")).select_by_value("peaks0")
    ok(browser.wait(lambda: browser.number("Peaks") == "5"), "processing/overlay: peaks are drawn over the image", browser.text("#numbers"))
    browser.picture("stream")


def large(browser, source):
    browser.stream("big0")
    ok(browser.has("maximum of 2 × 2 pixels", place="#numbers"), "binned/said: the page says that it bins", browser.text("#numbers"))
    click_at(browser, 0.45, 0.55)
    found = value(browser)
    ok(found and source.last[found[1], found[0]] == found[2], "binned/value: the value is that of the pixel, not of the bin", found)
    browser.run("document.getElementById('image').focus()")
    browser.press(*"++++++++")
    ok(browser.has("each pixel", place="#numbers"), "binned/zoom: zoomed in, each pixel is shown", browser.text("#numbers"))


def others(browser, machine):
    browser.go("#processing")
    ok(browser.has("cpu", "10.0", "1 of 4", place="#work"), "processing/work: hit rate and queue", browser.text("#work"))
    ok(browser.has("2.500", place="#stages"), "processing/stages: milliseconds per image", browser.text("#stages"))
    ok(browser.has("Profile of image", "peaks of image", place="#results"), "processing/results: profile and peaks", browser.text("#results"))
    browser.picture("processing")
    browser.go("#events")
    ok(browser.has("device: stuck", "device: reset", "device: quiesced", place="#list"), "events/device: events of the board")
    ok(re.search(r"\b\d\d:\d\d:\d\d\.\d{3}\b", browser.text("#list")), "events/time: with their times", browser.text("#list"))
    order = [browser.text("#list").find(word) for word in ("device: stuck", "device: reset", "device: quiesced")]
    ok(order == sorted(order), "events/order: the newest is the first", order)
    machine.lost = 7
    machine.write()
    ok(browser.has("7 images lost", place="#list"), "events/lost: a loss is an event")
    Select(browser.driver.find_element(By.ID, "which")).select_by_value("bad")
    ok(browser.wait(lambda: "reset" not in browser.text("#list")) and "7 images lost" in browser.text("#list"),
       "events/errors: only errors and losses")
    browser.picture("events")
    browser.go("#experiment")
    ok(browser.has("first", "board", "running", "50", place="#experiment"), "experiment/state: the detector's state", browser.text("#experiment"))
    ok(browser.wait(lambda: any(float(line) > 0 for line in browser.text("#parties").replace("\u202f", "").split() if line.replace(".", "").isdigit())),
       "experiment/counts: counts come")
    ok(not browser.run("return document.getElementById('start').checkVisibility()"), "experiment/read-only: without --control there is no button")
    browser.picture("experiment")


def narrow(browser):
    wide = {}
    for width in 400, 1280:
        browser.width(width)
        for view in "overview", "stream", "processing", "events", "experiment":
            browser.go("#" + view)
            browser.wait(lambda: browser.run("return !document.getElementById(arguments[0]).hidden", view))
            real = browser.run("return document.scrollingElement.scrollWidth")
            if real > width:
                wide[view, width] = real
            if width == 400:
                browser.picture(view, "-400")
    ok(not wide, "narrow: no view is wider than 400 pixels", wide)


def keyboard(browser):
    browser.run("document.activeElement.blur()")
    for n, view in enumerate(("overview", "stream", "processing", "events", "experiment"), 1):
        browser.press(str(n))
        if not browser.wait(lambda: browser.run("return !document.getElementById(arguments[0]).hidden", view)):
            break
    ok(view == "experiment" and n == 5, "keyboard/views: 1 to 5 choose a view", (n, view))
    browser.press("1")
    browser.has("Streams", place="#overview")
    browser.run("document.querySelector('nav a').focus()")
    for _ in range(12):
        browser.press(Keys.TAB)
        if browser.run("return document.activeElement.textContent").endswith("big0"):
            break
    browser.press(Keys.ENTER)
    ok(browser.wait(lambda: browser.driver.current_url.endswith("big0")), "keyboard/links: Tab and Enter open a stream",
       browser.driver.current_url)


def life(browser, machine, images):
    """The stream ends, another begins, and its producer dies."""
    browser.stream("ring0")
    ok(browser.has("ended", place="#state"), "life/ended: the end is said", browser.text("#state"))
    ok(browser.wait(lambda: browser.number("Image number")), "life/last: the last image of an ended stream is shown")
    with Source("ring0", lambda n: images(n, (100, 120))) as source:
        ok(browser.has("running", place="#state") and browser.has("120 × 100", place="#numbers"), "life/again: the next stream is shown",
           browser.text("#numbers"))
        browser.wait(lambda: browser.number("Image number"))
        ok(source.last is not None, "life/images: with its images")
        browser.go("#overview")
        machine.state("ring0", "dead")
        ok(browser.has("dead", place="#streams"), "life/dead: a dead producer has its word")
        browser.go("#events")
        Select(browser.driver.find_element(By.ID, "which")).select_by_value("all")
        ok(browser.has("stream: running to dead", place="#list"), "life/event: and is an event")


# --- hostile programs ---

async def hostile(page, url, token):
    """Requests that no page makes."""
    base = url.split("#")[0]
    own = {"Origin": base.rstrip("/")}
    link = base + "link"
    async with aiohttp.ClientSession() as session:
        async def status(*arguments, method="GET", **options):
            async with session.request(method, *arguments, **options) as answer:
                return answer.status, dict(answer.headers), await answer.text()

        found = await status(base, headers={"Host": "evil.example"})
        ok(found[0] == 421 and "host" in found[2], "hostile/host: another host's name is refused", found)
        found = await status(base)
        ok(found[0] == 200 and found[1]["Content-Security-Policy"].startswith("default-src 'self'")
           and found[1]["X-Content-Type-Options"] == "nosniff", "hostile/headers: the policy of the page", found[1])
        for path in "../server.py", "%2e%2e/server.py", "static/../../server.py", "etc/passwd":
            found = await status(base + path)
            if found[0] != 404:
                break
        ok(found[0] == 404, "hostile/files: no other file", found)
        found = await status(base, method="POST", data=b"x" * (1 << 16))
        ok(found[0] == 405, "hostile/method: no other method", found)
        found = await status(base + "x" * 20000)
        ok(found[0] in (400, 414), "hostile/long: a long address is refused", found[0])
        for origin in "http://evil.example", "null", base.rstrip("/") + ".evil.example":
            found = await status(link, headers={"Origin": origin, "Connection": "Upgrade", "Upgrade": "websocket",
                                                "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="})
            if found[0] != 403:
                break
        ok(found[0] == 403 and "site" in found[2], "hostile/origin: another site's page is refused", found)

        async def closed(first, *more):
            async with session.ws_connect(link, headers=own) as ws:
                await ws.send_str(first)
                for text in more:
                    await ws.send_str(text)
                with contextlib.suppress(asyncio.TimeoutError):
                    async with asyncio.timeout(PATIENCE):
                        async for _ in ws:
                            pass
                return ws.close_code
        ok(await closed("wrong") == 4403 and not page.viewers, "hostile/token: a wrong token is refused")
        ok(await closed(token, "{") == 4400, "hostile/json: no JSON")
        for text in '{"want": 1}', '{"want": [["x"]]}', '{"want": [[1, null]]}', '{"want": [["x", [1, 2, 3]]]}', '{"want": [["\\ud800", null]]}', "[]", '{"sums": "x"}':
            code = await closed(token, text)
            if code != 4400:
                break
        ok(code == 4400, "hostile/request: requests of another form", (text, code))
        ok(await closed(token, "x" * 10000) == 1009, "hostile/big: a big request")
        ok(await closed(token, *100 * ["{}"]) == 4400, "hostile/often: too many requests")
        ok(await closed(token, '{"control": "start"}', "{") == 4400 and page.experiment.manager is None,
           "hostile/control: without --control no experiment starts")

        async with session.ws_connect(link, headers=own) as ws:
            await ws.send_str(token)
            await ws.send_str(json.dumps({"want": [[f"none{n}", None] for n in range(100)]}))
            await ws.receive()
            await asyncio.sleep(0)
            while not page.looks:
                await asyncio.sleep(0.01)
            ok(len(page.looks) <= server.MOST_IMAGES, "hostile/streams: few streams of a page", len(page.looks))
        while page.looks:
            await asyncio.sleep(0.01)
        ok(True, "cost/nobody: without viewers nothing is looked at")
    await crowd(page, base)


async def crowd(page, base):
    """500 connections, and a page that does not read."""
    port = int(base.rsplit(":", 1)[1].strip("/"))
    links = [await asyncio.open_connection("127.0.0.1", port) for _ in range(500)]
    refused = 0
    for reader, _ in links:
        with contextlib.suppress(asyncio.TimeoutError, ConnectionError):
            refused += (await asyncio.wait_for(reader.read(20), 0.01)).startswith(b"HTTP/1.1 503")
    ok(refused >= 500 - server.MOST_LINKS and len(page.links.born) <= server.MOST_LINKS, "crowd/500: more than enough connections are refused",
       (refused, len(page.links.born)))
    for _, writer in links:
        writer.close()
    while len(page.links.born) > 5:
        await asyncio.sleep(0.05)
    ok(True, "crowd/after: their places are free again")


async def slow(page, url, token, source):
    """A page that does not read leaves images out, and others get theirs."""
    port, host = int(url.split("#")[0].rsplit(":", 1)[1].strip("/")), url.split("/")[2]
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(("127.0.0.1", port))
    s.sendall(f"GET /link HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
              "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode())

    def text(message):
        data = message.encode()
        s.sendall(bytes([0x81, 0x80 | len(data)]) + bytes(4) + data)
    await asyncio.to_thread(s.recv, 4096)
    text(token)
    text(json.dumps({"want": [[source.name, None]]}))
    while not any(viewer.left_out > 3 for viewer in page.viewers):
        await asyncio.sleep(0.05)
    async with aiohttp.ClientSession() as session, session.ws_connect(url.split("#")[0] + "link", headers={"Origin": f"http://{host}"},
                                                                      max_msg_size=1 << 24) as ws:
        await ws.send_str(token)
        await ws.send_str(json.dumps({"want": [[source.name, None]]}))
        images = 0
        async for message in ws:
            images += message.type == aiohttp.WSMsgType.BINARY
            if images == 3:
                break
    ok(images == 3, "slow: a page that does not read leaves images out, another one has them")
    ok(all(len(viewer._waiting) < 10 for viewer in page.viewers), "slow/bounded: and its queue is short")
    s.close()


async def control(folder):
    """With --control a page starts rashpa-manager, and stops it."""
    script = folder / "rashpa-manager"
    script.write_text("#!/bin/sh\ntrap 'echo stopped; exit 0' INT\necho started $1 $4\nwhile :; do sleep 0.1; done\n", encoding="utf-8")
    script.chmod(0o755)
    told = []
    one = Experiment(folder / "first.xml", lambda _, value: told.append(dict(value)), lambda *_: None, control=True)
    refused = [await one.command("stop"), await one.command("start"), await one.command("start"), await one.command("x")]
    ok([bool(r) for r in refused] == [True, False, True, True], "control/refused: no stop before, no second start, no other word", refused)
    while "started run" not in one.value()["said"]:
        await asyncio.sleep(0.05)
    ok(one.value()["manager"] and str(folder / "first.xml") in one.value()["said"], "control/start: the manager runs the experiment", one.value())
    await one.command("stop")
    while one.value()["manager"] or "stopped" not in one.value()["said"]:
        await asyncio.sleep(0.05)
    ok(told and not one.value()["manager"], "control/stop: and is stopped in order", one.value())


# --- cost ---

class Large:
    """A stream of 4 Mpixel that always has another image; of rashpa.Stream that much that a page needs."""

    images = numpy.random.default_rng(1).poisson(20, (1, 2048, 2048)).astype("u2")
    about = types.SimpleNamespace(**{**dict.fromkeys(look.ABOUT, 0), "content": "image", "dtype": images.dtype})
    run = number = lost = skipped = missing = incomplete = wrong = time_ns = 0
    user, roles = 8 * (0,), [0]

    def __init__(self, *_, **__):
        pass

    def latest(self, _):
        self.number += 1
        return self

    def __len__(self):
        return 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def intact(self):
        return True

    frame = property(lambda self: self.number)


async def viewers(url, token, count):
    """So many pages, until each has 10 images."""
    async def one(session):
        async with session.ws_connect(url + "link", headers={"Origin": url.rstrip("/")}, max_msg_size=1 << 24) as ws:
            await ws.send_str(token)
            await ws.send_str(json.dumps({"want": [["large0", None]]}))
            images = 0
            while images < 10:
                images += (await ws.receive()).type == aiohttp.WSMsgType.BINARY

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(one(session) for _ in range(count)))


async def cost(page, url, token):
    """Processor time of 20 pages and of one page; the pages are another process."""
    used = {}
    look.Stream = Large
    for count in 1, 20:
        begin, processor = time.monotonic(), time.process_time()
        process = await asyncio.create_subprocess_exec(sys.executable, __file__, "viewers", url.split("#")[0], token, str(count))
        await process.wait()
        used[count] = (time.process_time() - processor) / (time.monotonic() - begin)
        while page.viewers:
            await asyncio.sleep(0.05)
    print(f"# one page of 4 Mpixel takes {used[1]:.3f} processors, 20 pages {used[20]:.3f}")
    ok(process.returncode == 0 and used[20] < 1, "cost/20: 20 pages of 4 Mpixel take less than one processor", used)
    look.Stream = rashpa.Stream


# --- the program ---

def program(folder):
    """rashpa-web itself: where it listens, and its token."""
    environment = {**os.environ, "PYTHONPATH": str(TOOLS / "python"), "PYTHONUNBUFFERED": "1"}

    @contextlib.contextmanager
    def started(*words, before=()):
        with subprocess.Popen([*before, sys.executable, "-m", "rashpa.web", *words], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                yield process
            finally:
                process.terminate()

    def ask(path):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(PATIENCE)
            s.connect(path)
            s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return s.makefile("rb").readline()

    token = folder / "token"
    for name in "made", "read":
        with started("--listen", f"unix:{folder}/page", "--token", str(token)) as process:
            line = process.stdout.readline()
            ok(line.endswith(f"token {token.read_text().strip()}\n") and token.stat().st_mode & 0o777 == 0o600
               and b"200" in ask(f"{folder}/page") and (folder / "page").stat().st_mode & 0o777 == 0o660,
               f"program/token-{name}: the token's file is {name}, and the UNIX socket answers", line)
        ok(process.returncode == 0, f"program/end-{name}: SIGTERM ends it", process.returncode)
    with started(before=["systemd-socket-activate", "-E", "PYTHONPATH", "-E", "RASHPA_LIBRARY", "-l", f"{folder}/activated"]) as process:
        while "Listening" not in process.stderr.readline():
            pass
        ok(b"200" in ask(f"{folder}/activated"), "program/systemd: it takes the socket of systemd")
    for words, why in ((["--listen", "0.0.0.0:0"], "proxy"), (["--listen", "nowhere"], "nowhere"), (["--rate", "99"], "--rate"),
                       (["--control"], "--experiment"), (["--experiment", "/dev/null"], "rashpa-web")):
        with started(*words) as process:
            said, status = process.stderr.read(), process.wait(PATIENCE)
        if why not in said or "Traceback" in said or status not in (1, 2):
            break
    else:
        why = None
    ok(not why, "program/refused: wrong options are refused by name", why and said)


async def main():
    pictures = Path(sys.argv[1]) if sys.argv[1:] else None
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
    token = "a token of the test"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        machine = Machine(folder)
        (folder / "first.xml").write_text(f"""<experiment xmlns="urn:rashpa:1" name="first">
<detector name="board" at="unix:{folder}/remu"><images>50</images></detector>
<receiver name="judge" at="unix:{folder}/nobody"><buffer>ring0</buffer></receiver>
<flow from="board" to="judge" transport="pcie"/></experiment>""", encoding="utf-8")
        await asyncio.start_unix_server(daemon, folder / "remu")
        options = server.arguments(["--experiment", str(folder / "first.xml")])
        s = server.listener("127.0.0.1:0")
        url = server.url_of(s, token)
        page = server.Page(options, token)
        await page.start(s)

        def shot(browser):
            browser.own = url.split("#")[0]
            def take(view, suffix=""):
                if pictures:
                    time.sleep(1)
                    height = browser.run("return document.scrollingElement.scrollHeight") if suffix else 900
                    browser.width(400 if suffix else 1280, min(height, 2500))
                    browser.driver.save_screenshot(str(pictures / f"{view}{suffix}.png"))
                    browser.width(400 if suffix else 1280)
            browser.picture = take

        def browse():
            browser = Browser(folder, "data:,")
            try:
                shot(browser)
                with Source("ring0", frame) as source, \
                     Source("peaks0", peak_list, "f4", content="peaks"), \
                     Source("profile0", profile, "f8", content="profile", dataset="q_nm^-1"), \
                     Source("big0", lambda n: frame(n, (768, 1024)), "u1", images=2) as big:
                    browser.driver.get(url)
                    views(browser, machine)
                    browser.picture("overview")
                    live(browser, source, frame)
                    large(browser, big)
                    others(browser, machine)
                    narrow(browser)
                    keyboard(browser)
                life(browser, machine, frame)
                errors, hosts = browser.faults()
                ok(not errors, "console: no error in the browser's console", "\n".join(errors))
                ok(not hosts, "hosts: nothing is loaded from another host", hosts)
                browser.driver.get("data:,")
                browser.driver.get(url.replace(token[:5], "wrong"))
                browser.run("sessionStorage.clear(); location.reload()")
                ok(browser.has("Token", place="#enter"), "token: without a token the page asks for it")
            finally:
                browser.driver.quit()
        await asyncio.to_thread(browse)
        while page.viewers:
            await asyncio.sleep(0.05)
        await asyncio.to_thread(program, folder)
        await hostile(page, url, token)
        with Source("big0", noise) as source:
            await slow(page, url, token, source)
        await control(folder)
        await cost(page, url, token)
        await page.end()
        machine.driver.fake_driver_unload()
    print(f"1..{len(tests)}")
    sys.exit(not all(tests))


if __name__ == "__main__":
    asyncio.run(viewers(*sys.argv[2:4], int(sys.argv[4])) if sys.argv[1:2] == ["viewers"] else main())
