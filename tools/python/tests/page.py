#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=90
"""The page of rashpa-web in Chromium: page.py [FOLDER]. The driver is files (librashpa-fake.so), answers of
rashpactl are made here, the experiment is a real one. Writes pictures of the page to FOLDER, if it is given. TAP."""
import asyncio
import contextlib
import ctypes
import itertools
import json
import os
import re
import socket
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
os.environ["PYTHONPATH"] = str(TOOLS / "python")
os.environ["PATH"] = f"{TOOLS}:{os.environ['PATH']}"
sys.path.insert(0, str(TOOLS / "python"))

import aiohttp
import numpy
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

import rashpa
from rashpa.web import look, machine, server

PATIENCE = 60 * int(os.environ.get("RASHPA_SLOW", 1))
STREAMS = "ring0", "big0", "peaks0", "profile0"
HOSTILE = "<img src=x onerror=alert(1)>\"'&"
HANDSHAKE = ("GET /link HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
BEGIN = time.monotonic()
tests = []


def ok(right, name, note=""):
    tests.append(bool(right))
    if not right and note != "":
        print("#", *str(note).splitlines(), sep="\n# ")
    print(f"# {time.monotonic() - BEGIN:.1f} s")
    print("ok" if right else "not ok", len(tests), "-", name, flush=True)


# --- a machine: streams in files, and answers of rashpactl ---

class Answers:
    """Takes the place of functions that run rashpactl."""

    def __init__(self):
        machine.each, machine.whole = self.each, self.whole
        self.states = {**dict.fromkeys(STREAMS, "running"), HOSTILE: "dead"}
        self.lost = 0

    async def each(self, command, line):
        if "top" in command:
            for n in itertools.count(1):
                line(self.top(n))
                await asyncio.sleep(0.1)
        for n, event in enumerate(("quiesced", "reset", "stuck")):
            line({"time_ns": time.monotonic_ns(), "kind": "device", "label": "device", "value": n, "event": event, "records_lost": 0})
        await asyncio.Event().wait()

    def top(self, n):
        work = {"engine": "cpu", "images": 1000 * n, "dark": 10, "vetoed": 900 * n, "overflow": 0, "lost": 0, "late": 3,
                "queue": {"stacks": 4, "fill": 1, "full": 0}, "sinks": [],
                "stages": [{"name": "peaks", "images": 1000 * n, "lost": 0, "seconds": 2.5 * n, "bytes_in": 10**9}]}
        return {"streams": [{
            "buffer": name, "state": state, "why": None, "fpga": 0, "content": name.strip("0") if name[0] == "p" else "image", "slots": 8, "images_per_second": 1234.5, "bytes_per_second": 2.5e9,
            "stacks": 10, "lag_stacks": 2, "lost": self.lost if name == "ring0" else 0, "latency_ns": {"p50": 12300, "p99": 45600},
            "processing": work if name == "ring0" else None} for name, state in self.states.items()]}

    def whole(self, command):
        if "buffer" in command:
            return [{"name": "ring0", "owner": "root", "group": "rashpa", "mode": "0660", "length_bytes": 8 << 20, "backend": "contig",
                     "numa_node": 0, "importers": 1, "mappings": 2, "leases": 1}], None
        return {"devices": [{
            "node": "fpga0", "bdf": "0000:03:00.0", "name": HOSTILE, "numa_node": 0, "iommu": True, "profile": True, "master": True,
            "state": "ready", "maps": 2, "windows": 1, "interrupts": 123456}],
            "holdings": [{"resource": "memory", "user": "root", "pid": 4711, "command": "remu", "amount": 1, "memory_bytes": 8 << 20,
                          "name": "ring0", "orphan": False}]}, None


@contextlib.contextmanager
def source(name, make, dtype="u2", images=0, **fields):
    """A producer whose images go on until the end of "with"."""
    alive = ctypes.c_bool.in_dll(ctypes.CDLL(os.environ["RASHPA_LIBRARY"]), "fake_has_producer")
    alive.value = False     # else it is refused
    producer = rashpa.Producer(name, make(0).shape, dtype, policy="overwrite", **fields)
    alive.value = True
    one, done = types.SimpleNamespace(name=name, images=images, last=None, frame=None), threading.Event()

    def run():
        n = 0
        while not done.wait(0.02):
            if not one.images or n < one.images:
                with producer.slot(PATIENCE) as slot:
                    slot.images[0] = one.last = make(n)
                    one.frame = slot.frame
                n += 1

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield one
    done.set()
    thread.join()
    producer.close()


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


# --- a browser ---

class Browser:
    def __init__(self, folder, pictures):
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for option in "headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", f"user-data-dir={folder}/profile":
            options.add_argument("--" + option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
        self.driver.set_page_load_timeout(PATIENCE)
        self.pictures = pictures
        self.run = self.driver.execute_script
        self.width(1280)

    def width(self, width, height=900):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def picture(self, view, width=1280, height=900):
        if self.pictures:
            time.sleep(1)       # two rows of rates more
            self.width(width, height)
            self.driver.save_screenshot(str(self.pictures / f"{view}{'' if width == 1280 else -width}.png"))
            self.width(width)

    def wait(self, condition):
        """Wait until condition() is true; False after a long time."""
        with contextlib.suppress(Exception):
            return WebDriverWait(self.driver, PATIENCE, 0.1).until(lambda _: condition())
        return False

    def text(self, place="body"):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", place)

    def shows(self, name, place, *words):
        """A test: these words come."""
        ok(self.wait(lambda: all(word in self.text(place) for word in words)), name, self.text(place))

    def number(self, title, place="#numbers"):
        """The value next to a title."""
        lines = self.text(place).splitlines()
        return lines[lines.index(title) + 1].replace("\u202f", "") if title in lines else ""

    def go(self, view):
        self.run("location.hash = arguments[0]", view)
        return self.wait(lambda: self.run("return !document.getElementById(arguments[0]).hidden", view.split("=")[0]))

    def choose(self, select, value):
        Select(self.driver.find_element(By.ID, select)).select_by_value(value)

    def press(self, *keys):
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def value(self, source, name, x=None, y=None):
        """A test: the value of the pixel, which the pointer shows at this part of the image, is the buffer's."""
        if x:
            self.run("""const [x, y] = arguments, c = document.getElementById('image'), r = c.getBoundingClientRect();
c.dispatchEvent(new PointerEvent('pointermove', {clientX: r.left + x * r.width, clientY: r.top + y * r.height, pointerId: 1}))""", x, y)
        self.wait(lambda: "–" not in (self.number("Value", "#sums") or "–"))
        at, found = [int(n) for n in self.number("Pixel x, y", "#sums").split(", ")], self.number("Value", "#sums")
        ok(found == f"{source.last[at[1], at[0]]} counts", name, (at, found))
        return at

    def faults(self, own):
        """(errors of the console, requests to other hosts)"""
        errors = [e["message"] for e in self.driver.get_log("browser")]
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        urls = [e["params"].get("url") or e["params"]["request"]["url"] for e in events
                if e["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated")]
        return errors, [url for url in urls if not url.startswith((own, own.replace("http", "ws"), "data:", "chrome:"))]


def overview(browser):
    browser.shows("connected: the page has its token from the address, and connects", "#link", "connected")
    ok("token" not in browser.driver.current_url, "hidden: the address shows no token any more")
    browser.shows("overview/streams: state, rate, lag and latency, with units", "#streams", "ring0", "running", "GB/s", "1234.5",
                  "2.500", "2 of 8", "12.3", "45.6")
    browser.shows("overview/boards: the board", "#boards", "fpga0", "0000:03:00.0", "ready")
    browser.shows("overview/buffers: the buffer", "#buffers", "8 MiB", "root:rashpa", "0660")
    browser.shows("overview/holdings: the holders", "#holdings", "remu (4711)")
    ok(HOSTILE in browser.text("#streams") and HOSTILE in browser.text("#boards") and not browser.run("return document.images.length"),
       "hostile/names: a name is a text, not HTML")
    browser.picture("overview")


def live(browser, ring, large):
    browser.go("stream=ring0")
    browser.shows("stream/geometry: the stream's geometry", "#stream", "384 × 256 pixels, uint16", "running")
    first = browser.wait(lambda: browser.number("Image number"))
    ok(browser.wait(lambda: browser.number("Image number") != first), "stream/live: another image comes", first)
    ring.images = 1       # stands still for values
    ok(browser.wait(lambda: browser.number("Image number") == str(ring.frame)), "stream/last: the last image is shown", ring.frame)
    colours = browser.run("""const c = document.getElementById('image'), p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
return new Set(new Uint32Array(p.buffer)).size""")
    ok(colours > 20, "stream/colours: the image has colours", colours)
    for place in (0.3, 0.3), (0.6, 0.2), (0.5, 0.5):
        before = browser.value(ring, f"stream/value-{place[0]}: a pixel's value is the buffer's", *place)
    browser.run("document.getElementById('image').focus()")
    browser.press(Keys.ARROW_RIGHT)
    browser.wait(lambda: browser.number("Pixel x, y", "#sums") == f"{before[0] + 1}, {before[1]}")
    x, y = browser.value(ring, "keyboard/pixel: an arrow moves the pixel")
    ok([x, y] == [before[0] + 1, before[1]], "keyboard/one: by one", (before, x, y))
    webdriver.ActionChains(browser.driver).key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN).key_up(Keys.SHIFT).perform()
    browser.shows("keyboard/region: the sum of a region is that of the buffer", "#sums", "2 × 2", f"{ring.last[y:y + 2, x:x + 2].sum()} counts")
    browser.press("+", "+")
    ok(browser.wait(lambda: browser.number("Part") not in ("", "whole image")), "keyboard/zoom: + zooms", browser.text("#numbers"))
    browser.value(ring, "stream/zoomed: values of a part are right, too", 0.4, 0.5)
    browser.press("0", "l")
    browser.shows("keyboard/scale: L is logarithmic", "#legend", "logarithmic")
    browser.shows("keyboard/whole: 0 shows the whole image", "#numbers", "whole image")
    browser.press("l", "c", "m")
    ok(browser.run("return [document.getElementById('contrast').value, document.getElementById('mean').value, document.getElementById('limits').hidden]")
       == ["fixed", "5", False], "keyboard/contrast: C fixes the contrast, M takes a mean")
    ring.images = 0
    browser.shows("stream/mean: a mean of images", "#numbers", "5 images")
    browser.press("c", "m", "m")
    browser.choose("palette", "inferno")
    ok(browser.wait(lambda: "123" in browser.run("return document.getElementById('rate').getAttribute('aria-label')")), "stream/rate: the rate is plotted")
    browser.choose("overlay", "peaks0")
    ok(browser.wait(lambda: browser.number("Peaks") == "5"), "processing/overlay: peaks are drawn over the image", browser.text("#numbers"))
    browser.picture("stream")
    browser.go("stream=big0")
    browser.shows("binned/said: the page says that it bins", "#numbers", "maximum of 2 × 2 pixels")
    browser.value(large, "binned/value: the value is that of the pixel, not of the bin", 0.45, 0.55)
    browser.run("document.getElementById('image').focus()")
    browser.press(*"++++++++")
    browser.shows("binned/zoom: zoomed in, each pixel is shown", "#numbers", "each pixel")


def others(browser, answers):
    browser.go("processing")
    browser.shows("processing/work: hit rate, queue and late results", "#work", "cpu", "10.0", "1 of 4", "Late results")
    browser.shows("processing/stages: milliseconds per image", "#stages", "2.500")
    browser.shows("processing/results: hit rate and profile", "#results", "Hit rate of ring0", "Profile of image")
    browser.picture("processing")
    browser.go("events")
    browser.shows("events/device: events of the board", "#list", "device: stuck", "device: reset", "device: quiesced")
    ok(re.search(r"device: stuck.*device: reset.*device: quiesced", browser.text("#list"), re.S) and
       re.search(r"\b\d\d:\d\d:\d\d\.\d{3}\b", browser.text("#list")), "events/order: the newest is the first, with times", browser.text("#list"))
    answers.lost = 7
    browser.shows("events/lost: a loss is an event", "#list", "7 images lost")
    browser.choose("which", "bad")
    ok(browser.wait(lambda: "reset" not in browser.text("#list")) and "7 images lost" in browser.text("#list"), "events/errors: only errors and losses")
    browser.picture("events")


def control(browser, experiment, loop):
    """A manager leads daemons of remu and romulu."""
    browser.go("experiment")
    browser.shows("experiment/plan: parts, flows and settings", "#experiment", "board", "judge", "idle", "memory", "images")
    ok(not browser.run("return document.getElementById('start').checkVisibility()"), "control/read-only: without --control there is no button")
    experiment.control = True
    loop.call_soon_threadsafe(experiment._changed)
    for word, state in ("start", "running"), ("pause", "paused"), ("resume", "running"), ("stop", "ended"):
        button = browser.driver.find_element(By.ID, word)
        ok(browser.wait(lambda: button.is_displayed() and button.is_enabled()) and not button.click()
           and browser.wait(lambda: state in browser.text("#parties")), f"control/{word}: the detector is {state}", browser.text("#experiment"))
        if state == "running":
            browser.shows(f"control/{word}-counts: images are counted", "#parties", "Images/s")
            browser.picture("experiment")
    browser.shows("control/report: the manager's report", "#said", "UNACCOUNTED", "stopped")
    experiment.control = False


def narrow(browser):
    """Keys choose a view, and each fits into 400 pixels."""
    wrong = []
    browser.width(400)
    for n, view in enumerate(("overview", "stream", "processing", "events", "experiment"), 1):
        browser.run("document.activeElement.blur()")
        browser.press(str(n))
        shown = browser.wait(lambda: browser.run("return !document.getElementById(arguments[0]).hidden", view))
        width, height = browser.run("const e = document.scrollingElement; return [e.scrollWidth, e.scrollHeight]")
        wrong += [] if shown and width <= 400 else [(view, shown, width)]
        browser.picture(view, 400, min(height, 2500))
    ok(not wrong, "narrow: 1 to 5 choose a view, none of which is wider than 400 pixels", wrong)
    browser.width(1280)
    browser.go("overview")
    browser.run("document.querySelector('nav a').focus()")
    for _ in range(12):
        browser.press(Keys.TAB)
        if browser.run("return document.activeElement.textContent").endswith("big0"):
            break
    browser.press(Keys.ENTER)
    ok(browser.wait(lambda: browser.driver.current_url.endswith("stream=big0")), "keyboard/links: Tab and Enter open a stream", browser.driver.current_url)


def life(browser, answers):
    """The stream ends, another begins, and its producer dies."""
    browser.go("stream=ring0")
    browser.shows("life/ended: the end is said", "#state", "ended")
    ok(browser.wait(lambda: browser.number("Image number")), "life/last: the last image of an ended stream is shown")
    with source("ring0", lambda n: frame(n, (100, 120))) as other:
        browser.shows("life/again: the next stream is shown", "#numbers", "120 × 100", "Image number")
        other.images = 1
        browser.wait(lambda: browser.number("Image number") == str(other.frame))
        browser.value(other, "life/value: with its values", 0.5, 0.5)
        browser.go("overview")
        answers.states["ring0"] = "dead"
        browser.shows("life/dead: a dead producer has its word", "#streams", "dead")
        browser.go("events")
        browser.choose("which", "all")
        browser.shows("life/event: and is an event", "#list", "stream: running to dead")


    wild = [numpy.nan, numpy.inf, -numpy.inf, 1e308, 1e308, -1e308, 5e-324]
    browser.go("stream=ring0")
    with source("ring0", lambda n: numpy.array([wild]), "f8"):
        browser.shows("hostile/pixels: numbers without a sum or a range are shown", "#numbers", "7 × 1 pixels, float64", "Image number")
        webdriver.ActionChains(browser.driver).click_and_hold(browser.driver.find_element(By.ID, "image")).move_by_offset(300, 0).release().perform()
        browser.shows("hostile/sum: the other numbers of a region without a sum", "#sums", "Region", "-1e+308, 1e+308 counts")


def tutorial(browser, folder):
    """Commands of "See it in a browser"."""
    opener, opened = folder / "opener", folder / "opened.html"
    opener.write_text(f'#!/bin/sh\ncp "${{1#file://}}" {folder}/part && mv {folder}/part {opened}\n', encoding="utf-8")
    opener.chmod(0o755)
    environment = {**os.environ, "BROWSER": str(opener), "RASHPA_LIBRARY": str(TOOLS / "librashpa.so.0")}
    detector = ["remu", "--transport", "memory", "--buffer", f"{folder}/ring0", "--rate", "20", "--images", "100000"]
    with subprocess.Popen(detector) as remu, subprocess.Popen([sys.executable, "-m", "rashpa.view", f"{folder}/ring0"], env=environment) as view:
        browser.wait(opened.exists)
        browser.driver.get(f"file://{opened}")
        browser.shows("tutorial: rashpa.view opens the page of a stream in a file, which remu makes", "#stream", "1024 × 512", "running", "Image number")
        remu.terminate()
        browser.shows("tutorial/ended: its end is shown", "#state", "ended")
        view.terminate()


# --- hostile programs ---

class Visitor:
    """A program that sends requests."""

    def __init__(self, session, url):
        self.session, self.base = session, url.split("#")[0]
        self.own = {"Origin": self.base.rstrip("/")}

    async def asks(self, path="", method="GET", **options):
        async with self.session.request(method, self.base + path, **options) as answer:
            return answer.status, dict(answer.headers), await answer.text()

    def link(self):
        return self.session.ws_connect(self.base + "link", headers=self.own, max_msg_size=1 << 24)

    async def closed(self, *messages):
        """Why the server ends a link that sends this."""
        async with self.link() as ws:
            for text in messages:
                await ws.send_str(text)
            async with asyncio.timeout(PATIENCE):
                async for _ in ws:
                    pass
            return ws.close_code

    async def images(self, token, name, count):
        """View a stream until there are so many images."""
        async with self.link() as ws:
            await ws.send_str(token)
            await ws.send_str(json.dumps({"want": [[name, None]]}))
            async for message in ws:
                count -= message.type == aiohttp.WSMsgType.BINARY
                if not count:
                    return True


async def hostile(page, url, token):
    """Requests that no page makes."""
    async with aiohttp.ClientSession() as session:
        visitor = Visitor(session, url)
        found = await visitor.asks()
        ok(found[0] == 200 and found[1]["Content-Security-Policy"].startswith("default-src 'self'")
           and found[1]["X-Content-Type-Options"] == "nosniff", "hostile/headers: the policy of the page", found[1])
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": 22 * "A" + "=="}
        for name, status, why, request in (
                ("host", 421, "host", {"headers": {"Host": "evil.example"}}),
                ("files", 404, "file", {"path": "%2e%2e/server.py"}),
                ("passwd", 404, "file", {"path": "static/../../../../etc/passwd"}),
                ("method", 405, "GET", {"method": "POST", "data": b"x" * (1 << 16)}),
                ("long", 400, "", {"path": "x" * 20000}),
                ("origin", 403, "site", {"path": "link", "headers": {"Origin": "http://evil.example", **upgrade}}),
                ("origin-null", 403, "site", {"path": "link", "headers": {"Origin": "null", **upgrade}}),
                ("origin-like", 403, "site", {"path": "link", "headers": {"Origin": visitor.own["Origin"] + ".evil.example", **upgrade}}),
                ("plain", 400, "WebSocket", {"path": "link", "headers": visitor.own})):
            found = await visitor.asks(**request)
            ok(found[0] == status and why in found[2], f"hostile/{name}: {status}", found)
        ok(await visitor.closed("wrong") == 4403 and not page.viewers, "hostile/token: a wrong token is refused")
        for name, code, *messages in (
                ("json", 4400, "{"), ("want", 4400, '{"want": 1}'), ("one", 4400, '{"want": [["x"]]}'), ("name", 4400, '{"want": [[1, null]]}'),
                ("region", 4400, '{"want": [["x", [1, 2, 3]]]}'), ("surrogate", 4400, '{"want": [["\\ud800", null]]}'), ("list", 4400, "[]"),
                ("sums", 4400, '{"sums": ["x", 1]}'), ("deep", 4400, 2000 * "["), ("path", 4400, '{"want": [["/etc/passwd", null]]}'),
                ("big", 1009, "x" * 10000), ("often", 4400, *100 * ["{}"]), ("control", 4400, '{"control": "start"}', "{")):
            found = await visitor.closed(token, *messages)
            ok(found == code, f"hostile/link-{name}: {code}", found)
        ok(not page.experiment.value()["manager"], "hostile/no-control: without --control no experiment starts")
        async with visitor.link() as ws:
            await ws.send_str(token)
            await ws.send_str(json.dumps({"want": [[f"none{n}", None] for n in range(100)]}))
            while not page.looks:
                await asyncio.sleep(0.01)
            ok(len(page.looks) <= server.MOST_IMAGES, "hostile/streams: few streams of a page", len(page.looks))
        while page.looks:
            await asyncio.sleep(0.01)
        ok(True, "cost/nobody: without viewers nothing is looked at")
    # a message that has no end, before the token
    reader, writer = await asyncio.open_connection("127.0.0.1", int(visitor.base.strip("/").rsplit(":", 1)[1]))
    writer.write(HANDSHAKE.format(url.split("/")[2]).encode() + b"\x81\xff" + (1 << 40).to_bytes(8) + bytes(1 << 20))
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(PATIENCE):
            await reader.read()
    ok(writer.is_closing() or reader.at_eof(), "hostile/endless: an endless message is cut off")
    # as fast as a program can, which is why it is another one
    crowd = await asyncio.create_subprocess_exec(sys.executable, "-c", """import socket, sys
links = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(500)]
for link in links:
    link.setblocking(False)
print("there", flush=True)
sys.stdin.readline()
refused = 0
for link in links:
    try:
        refused += link.recv(12) == b"HTTP/1.1 503"
    except OSError:
        pass
print(refused)""", visitor.base.strip("/").rsplit(":", 1)[1], stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    await crowd.stdout.readline()
    while len(page.links) < server.MOST_LINKS:
        await asyncio.sleep(0.05)
    refused = int((await crowd.communicate(b"\n"))[0])
    ok(refused >= 500 - server.MOST_LINKS and len(page.links) <= server.MOST_LINKS, "crowd/500: more than enough connections are refused",
       (refused, len(page.links)))
    while len(page.links) > 5:
        await asyncio.sleep(0.05)
    ok(True, "crowd/after: their places are free again")


async def slow(page, url, token, name):
    """A page that does not read leaves images out, and others get theirs, all the same ones."""
    made = []
    look.binned, binned = lambda *parts: made.append(1) or binned(*parts), look.binned
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    place = url.split("/")[2]
    s.connect(("127.0.0.1", int(place.split(":")[1])))
    s.sendall(HANDSHAKE.format(place).encode())
    await asyncio.to_thread(s.recv, 4096)
    for text in token, json.dumps({"want": [[name, None]]}):
        s.sendall(bytes([0x81, 0x80 | len(text)]) + bytes(4) + text.encode())
    while not any(viewer.left_out > 3 for viewer in page.viewers):
        await asyncio.sleep(0.05)
    made.clear()
    async with aiohttp.ClientSession() as session:
        ok(all(await asyncio.gather(*(Visitor(session, url).images(token, name, 5) for _ in range(20)))),
           "slow: a page that does not read leaves images out, others have them")
    ok(len(made) < 40, "cost/once: an image is made once for 20 pages", len(made))
    ok(all(len(viewer._waiting) < 10 for viewer in page.viewers), "slow/bounded: and its queue is short")
    s.close()


# --- the program ---

def program(folder):
    """rashpa-web itself: where it listens, and its token."""
    @contextlib.contextmanager
    def started(*words, before=(sys.executable, "-u", "-m", "rashpa.web")):
        with subprocess.Popen([*before, *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            yield process
            process.terminate()

    def answers(path):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(PATIENCE)
            s.connect(path)
            s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return b"200" in s.makefile("rb").readline()

    token, place = folder / "token", folder / "page"
    for name in "made", "read":
        with started("--listen", f"unix:{place}", "--token", str(token)) as process:
            line = process.stdout.readline()
            ok(line.endswith(f"token {token.read_text().strip()}\n") and answers(str(place)) and
               [file.stat().st_mode & 0o777 for file in (token, place)] == [0o600, 0o660],
               f"program/token-{name}: the token's file is {name}, and the UNIX socket answers", line)
        ok(process.returncode == 0, f"program/end-{name}: SIGTERM ends it", process.returncode)
    with started(f"{folder}/activated", sys.executable, "-m", "rashpa.web", before=("systemd-socket-activate", *(
            f"--setenv={name}" for name in ("PYTHONPATH", "RASHPA_LIBRARY", "PATH")), "-l")) as process:
        while "Listening" not in process.stderr.readline():
            pass
        ok(answers(f"{folder}/activated"), "program/systemd: it takes the socket of systemd")
    for why, *words in (("proxy", "--listen", "0.0.0.0:0"), ("nowhere", "--listen", "nowhere"), ("--rate", "--rate", "99"),
                        ("--experiment", "--control"), ("rashpa-web", "--experiment", "/dev/null"), ("short", "--token", str(folder / "short"))):
        (folder / "short").write_text("short")
        with started(*words) as process:
            said, status = process.stderr.read(), process.wait(PATIENCE)
        ok(why in said and "Traceback" not in said and status in (1, 2), f"program/refused: {' '.join(words[:2])}", said)


async def main():
    pictures = Path(sys.argv[1]) if sys.argv[1:] else None
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
    token = "a token of the test"
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as ends:
        folder = Path(name)
        answers, driver = Answers(), ctypes.CDLL(os.environ["RASHPA_LIBRARY"])
        driver.fake_buffer.restype = ctypes.c_void_p
        assert not driver.fake_driver_load()
        for name in STREAMS:    # less than 2 MiB, which the library would align
            assert driver.fake_buffer(name.encode(), ctypes.c_uint64((2 << 20) - (1 << 16)))
        (folder / "ring").write_bytes(bytes(64 << 20))
        (folder / "first.xml").write_text(f"""<experiment xmlns="urn:rashpa:1" version="1.0" name="first">
<detector name="board" at="unix:{folder}/remu"><dataset>generate</dataset><images>1000000</images><rate>100</rate></detector>
<receiver name="judge" at="unix:{folder}/romulu"><buffer>{folder}/ring</buffer></receiver>
<flow from="board" to="judge" transport="memory"/></experiment>""", encoding="utf-8")
        for name in "remu", "romulu":
            daemon = ends.enter_context(subprocess.Popen([name, "--daemon", f"unix:{folder}/{name}"]))
            ends.callback(daemon.terminate)
        page = server.Page(server.arguments(["--experiment", str(folder / "first.xml")]), token)
        url = await page.start("127.0.0.1:0")

        def browse():
            browser = Browser(folder, pictures)
            ends.callback(browser.driver.quit)
            with source("ring0", frame) as ring, \
                 source("peaks0", peak_list, "f4", content="peaks"), \
                 source("profile0", profile, "f8", content="profile", dataset="q_nm^-1"), \
                 source("big0", lambda n: frame(n, (768, 1024)), "u1", images=2) as big:
                browser.driver.get(url)
                overview(browser)
                live(browser, ring, big)
                others(browser, answers)
                narrow(browser)
            life(browser, answers)
            control(browser, page.experiment, page.loop)
            errors, hosts = browser.faults(url.split("#")[0])
            ok(not errors, "console: no error in the browser's console", "\n".join(errors))
            ok(not hosts, "hosts: nothing is loaded from another host", hosts)
            browser.run("sessionStorage.clear(); location.reload()")
            browser.shows("token: without a token the page asks for it", "#enter", "Token")
            tutorial(browser, folder)
            browser.driver.get("data:,")
        await asyncio.to_thread(browse)
        await asyncio.to_thread(program, folder)
        await hostile(page, url, token)
        with source("big0", noise):
            await slow(page, url, token, "big0")
        await page.end()
        driver.fake_driver_unload()
    print(f"1..{len(tests)}")
    sys.exit(not all(tests))


if __name__ == "__main__":
    asyncio.run(main())
