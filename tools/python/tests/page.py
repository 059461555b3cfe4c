#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=90
"""The page of rashpa-web in Chromium: page.py [FOLDER]. The driver is files (librashpa-fake.so), answers of
rashpactl are made here, the experiment is a real one. Writes a picture, stream.png, to FOLDER. TAP."""
import asyncio
import contextlib
import ctypes
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

TOOLS = Path(__file__).resolve().parents[3] / "build/tools"
os.environ.update(RASHPA_LIBRARY=str(TOOLS / "librashpa-fake.so"), PYTHONPATH=str(TOOLS / "python"),
                  PATH=f"{TOOLS}:{os.environ['PATH']}")
sys.path.insert(0, str(TOOLS / "python"))

import aiohttp
import numpy
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

import rashpa
from rashpa.web import look, machine, server

PATIENCE = 60 * int(os.environ.get("RASHPA_SLOW", 1))
STREAMS = "ring0", "big0", "peaks0", "profile0"
HOSTILE = "<img src=x onerror=alert(1)>\"'&"
tests = []


def ok(right, name, note=""):
    tests.append(bool(right))
    if not right and note != "":
        print("#", *str(note).splitlines(), sep="\n# ")
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
            for n in range(1, 1 << 20):
                line({"streams": [self.stream(n, *one) for one in self.states.items()]})
                await asyncio.sleep(0.1)
        for event in "quiesced", "reset", "stuck":
            line({"time_ns": time.monotonic_ns(), "label": "device", "value": 0, "event": event, "records_lost": 0})
        await asyncio.Event().wait()

    def stream(self, n, name, state):
        stage = {"name": "peaks", "images": 1000 * n, "lost": 0, "seconds": 2.5 * n, "bytes_in": 10**9}
        work = {"images": 1000 * n, "vetoed": 900 * n, "lost": 0, "late": 3, "stages": [stage], "sinks": [],
                "queue": {"stacks": 4, "fill": 1, "full": 0}}
        return {"buffer": name, "state": state, "why": None, "fpga": 0, "slots": 8, "stacks": 10, "lag_stacks": 2,
                "content": name.strip("0") if name[0] == "p" else "image", "lost": self.lost if name == "ring0" else 0,
                "images_per_second": 1234.5, "bytes_per_second": 2.5e9, "latency_ns": {"p50": 12300, "p99": 45600},
                "processing": work if name == "ring0" else None}

    async def whole(self, command):
        if "buffer" in command:
            return [{"name": "ring0", "owner": "root", "group": "rashpa", "mode": "0660", "length_bytes": 8 << 20}], ""
        board = {"node": "fpga0", "bdf": "0000:03:00.0", "name": HOSTILE, "state": "ready", "iommu": True, "maps": 2}
        held = {"resource": "memory", "user": "root", "pid": 4711, "command": "remu", "memory_bytes": 8 << 20}
        return {"devices": [board], "holdings": [held]}, None


@contextlib.contextmanager
def source(name, make, dtype="u2", images=0, **fields):
    """A producer whose images go on until the end of "with"."""
    alive = ctypes.c_bool.in_dll(ctypes.CDLL(os.environ["RASHPA_LIBRARY"]), "fake_has_producer")
    alive.value = False     # else it is refused
    producer = rashpa.Producer(name, make(0).shape, dtype, policy="overwrite", **fields)
    alive.value = True
    one, done = types.SimpleNamespace(images=images, last=None, frame=None), threading.Event()

    def run():
        n = 0
        while not done.wait(0.02):
            if not one.images or n < one.images:
                with producer.slot(PATIENCE) as slot:
                    slot.images[0] = one.last = make(n)
                    one.frame, n = slot.frame, n + 1

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield one
    done.set()
    thread.join()
    producer.close()


def frame(n, shape=(256, 384)):
    y, x = numpy.indices(shape)
    rings = numpy.hypot(x - shape[1] / 2, y - shape[0] / 2) % (shape[0] / 6) - 20
    return (200 * numpy.exp(-(rings / 6) ** 2) + (x * 7 + y * 13 + n) % 50 + (n % 100)).astype("u2")


def peak_list(n):
    lines = numpy.full((20, 6), numpy.nan, "f4")
    lines[:5] = [[40 + 60 * i + n % 7, 50 + 30 * i, 1000, 5, 8, 9] for i in range(5)]
    return lines


def profile(n):
    q = numpy.linspace(0.1, 5, 200)
    return numpy.array([q, 1000 / (1 + q) + 200 * numpy.exp(-(q - 2) ** 2 * 20) + n % 10, numpy.sqrt(q)])


# --- a browser ---

class Browser(webdriver.Chrome):
    def __init__(self, folder):
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for option in "headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", f"user-data-dir={folder}/c":
            options.add_argument("--" + option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        super().__init__(options, webdriver.ChromeService("/usr/bin/chromedriver"))
        self.width(1280)

    def width(self, width):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def wait(self, condition):
        """Wait until condition() is true; False after a long time."""
        with contextlib.suppress(Exception):
            return WebDriverWait(self, PATIENCE, 0.1).until(lambda _: condition())
        return False

    def of(self, place, property_):
        return self.execute_script(f"return document.querySelector(arguments[0])?.{property_}", place)

    def text(self, place):
        return self.of(place, "innerText") or ""

    def shows(self, name, place, *words):
        """A test: these words come."""
        ok(self.wait(lambda: all(word in self.text(place) for word in words)), name, self.text(place))

    def number(self, title, place="#numbers"):
        """The value next to a title."""
        lines = self.text(place).splitlines()
        return lines[lines.index(title) + 1].replace("\u202f", "") if title in lines else ""

    def go(self, view):
        self.execute_script("location.hash = arguments[0]", view)
        return self.wait(lambda: not self.of("#" + view.split("=")[0], "hidden"))

    def find(self, name):
        return self.find_element("id", name)

    def keys(self, *keys):
        webdriver.ActionChains(self).send_keys(*keys).perform()

    def value(self, source, name, x=None, y=None):
        """A test: the value of the pixel, which the pointer shows at this part of the image, is the buffer's."""
        if x:
            image = self.find("image")
            move = int((x - 0.5) * image.size["width"]), int((y - 0.5) * image.size["height"])
            webdriver.ActionChains(self).move_to_element_with_offset(image, *move).perform()
        self.wait(lambda: "–" not in (self.number("Value", "#sums") or "–"))
        at, found = [int(n) for n in self.number("Pixel x, y", "#sums").split(", ")], self.number("Value", "#sums")
        ok(found == f"{source.last[at[1], at[0]]} counts", name, (at, found))
        return at

    def stands(self, source):
        """The source makes no further image, and the page shows the last one."""
        source.images = 1
        return self.wait(lambda: self.number("Image number") == str(source.frame))


def overview(browser):
    browser.shows("connected: the page has its token from the address, and connects", "#link", "connected")
    ok("token" not in browser.current_url, "hidden: the address shows no token any more")
    row = "ring0", "running", "GB/s", "1234.5", "2.500", "2 of 8", "12.3", "45.6"
    browser.shows("overview/streams: state, rate, lag and latency, with units", "#streams", *row)
    browser.shows("overview/boards: the board", "#boards", "fpga0", "0000:03:00.0", "ready", HOSTILE)
    browser.shows("overview/buffers: the buffer", "#buffers", "8 MiB", "root:rashpa", "0660")
    browser.shows("overview/holdings: the holders", "#holdings", "remu (4711)")
    ok(HOSTILE in browser.text("#streams"), "hostile/names: a name is a text, not HTML")


def live(browser, ring, large):
    browser.go("stream=ring0")
    browser.shows("stream/geometry: the stream's geometry", "#stream", "384 × 256 pixels, uint16", "running")
    first = browser.wait(lambda: browser.number("Image number"))
    ok(browser.wait(lambda: browser.number("Image number") != first), "stream/live: another image comes")
    ok(browser.stands(ring), "stream/last: the last image is shown", ring.frame)
    colours = browser.of("#image", "getContext('2d').getImageData(0, 0, 384, 256).data.toString()")
    ok(len(set(colours.split(","))) > 20, "stream/colours: the image has colours", colours[:99])
    for place in (0.3, 0.3), (0.6, 0.2), (0.5, 0.5):
        before = browser.value(ring, f"stream/value-{place[0]}: a pixel's value is the buffer's", *place)
    browser.of("#image", "focus()")
    browser.keys(Keys.ARROW_RIGHT)
    browser.wait(lambda: browser.number("Pixel x, y", "#sums") == f"{before[0] + 1}, {before[1]}")
    x, y = browser.value(ring, "keyboard/pixel: an arrow moves the pixel")
    ok([x - 1, y] == before, "keyboard/one: by one", (before, x, y))
    browser.find("image").send_keys(Keys.SHIFT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    region = ring.last[y:y + 2, x:x + 2]
    browser.shows("keyboard/region: the sum is that of the buffer", "#sums", "2 × 2", f"{region.sum()} counts")
    browser.keys("+", "+")
    ok(browser.wait(lambda: browser.number("Part") not in ("", "whole image")), "keyboard/zoom: + zooms")
    browser.value(ring, "stream/zoomed: values of a part are right, too", 0.4, 0.5)
    browser.keys("0", "l")
    browser.shows("keyboard/scale: L is logarithmic", "#legend", "logarithmic")
    browser.shows("keyboard/whole: 0 shows the whole image", "#numbers", "whole image")
    browser.keys("l", "c", "m")
    settings = [browser.of("#" + name, "value") for name in ("contrast", "mean")]
    ok(settings == ["fixed", "5"] and browser.find("low").is_displayed(), "keyboard/contrast: C and M", settings)
    ring.images = 0
    browser.shows("stream/mean: a mean of images", "#numbers", "5 images")
    browser.keys("c", "m", "m")
    Select(browser.find("palette")).select_by_visible_text("inferno")
    ok(browser.wait(lambda: "123" in browser.of("#rate", "ariaLabel")), "stream/rate: the rate is plotted")
    Select(browser.find("overlay")).select_by_visible_text("peaks0")
    ok(browser.wait(lambda: browser.number("Peaks") == "5"), "processing/overlay: peaks are drawn over the image")
    for folder in sys.argv[1:]:
        os.makedirs(folder, exist_ok=True)
        browser.save_screenshot(f"{folder}/stream.png")
    browser.go("stream=big0")
    browser.shows("binned/said: the page says that it bins", "#numbers", "maximum of 2 × 2 pixels")
    browser.value(large, "binned/value: the value is that of the pixel, not of the bin", 0.45, 0.55)
    browser.of("[value='+']", "click()")
    browser.shows("binned/zoom: zoomed in, each pixel is shown", "#numbers", "each pixel")


def others(browser, answers):
    browser.go("processing")
    browser.shows("processing/work: hit rate, queue and late results", "#work", "10.0", "1 of 4", "Late results")
    browser.shows("processing/stages: milliseconds per image", "#stages", "2.500")
    browser.shows("processing/results: plots", "#results", "Hit rate of ring0", "Profile of image")
    browser.go("events")
    browser.shows("events/device: events of the board", "#list", "device: quiesced", "device: stuck")
    order = r"\b\d\d:\d\d:\d\d\.\d{3}\b.*device: stuck.*device: reset.*device: quiesced"
    ok(re.search(order, browser.text("#list"), re.S), "events/order: the newest is the first, with times", order)
    answers.lost = 7
    browser.shows("events/lost: a loss is an event", "#list", "7 images lost")
    Select(browser.find("which")).select_by_visible_text("errors and losses")
    ok(browser.wait(lambda: "reset" not in (text := browser.text("#list")) and "7 images lost" in text),
       "events/errors: only errors and losses")


def control(browser, experiment, loop):
    """A manager leads daemons of remu and romulu."""
    browser.go("experiment")
    browser.shows("experiment/plan: states and plan", "#experiment", "board", "judge", "idle", "memory", "images")
    ok(browser.of("#control", "hidden"), "control/read-only: without --control there is no button")
    experiment.control = True
    loop.call_soon_threadsafe(experiment.changed)
    for word, state in ("start", "running"), ("pause", "paused"), ("resume", "running"), ("stop", "ended"):
        browser.wait(lambda: browser.find(word).click() or True)
        browser.shows(f"control/{word}: the detector is {state}", "#parties", state)
        if state == "running":
            counted = lambda: re.search(r"board\s+detector\s+running\s+[1-9]", browser.text("#parties"))
            ok(browser.wait(counted), f"control/{word}-counts: images are counted")
    browser.shows("control/report: the manager's report", "#said", "UNACCOUNTED", "stopped")
    experiment.control = False


def narrow(browser):
    """Keys choose a view, and each fits into 400 pixels."""
    widths = []
    browser.width(400)
    for n, view in enumerate(("overview", "stream", "processing", "events", "experiment"), 1):
        browser.of(":focus", "blur()")
        browser.keys(str(n))
        widths.append(browser.wait(lambda: not browser.of("#" + view, "hidden")) and browser.of("html", "scrollWidth"))
    ok(all(widths) and max(widths) <= 400, "narrow: 1 to 5 choose a view, each fits into 400 pixels", widths)
    browser.width(1280)
    browser.go("overview")
    browser.wait(lambda: browser.keys(Keys.TAB) or browser.of(":focus", "textContent") == "big0")
    browser.keys(Keys.ENTER)
    browser.shows("keyboard/links: Tab and Enter open a stream", "#stream", "1024 × 768")


def life(browser, answers):
    """The stream ends, another begins, and its producer dies."""
    browser.go("stream=ring0")
    browser.shows("life/ended: the end is said", "#state", "ended")
    ok(browser.wait(lambda: browser.number("Image number")), "life/last: the last image of an ended stream is shown")
    with source("ring0", lambda n: frame(n, (100, 120))) as other:
        browser.shows("life/again: the next stream is shown", "#numbers", "120 × 100", "Image number")
        browser.stands(other)
        browser.value(other, "life/value: with its values", 0.5, 0.5)
        browser.go("overview")
        answers.states["ring0"] = "dead"
        browser.shows("life/dead: a dead producer has its word", "#streams", "dead")
        browser.go("events")
        Select(browser.find("which")).select_by_visible_text("all")
        browser.shows("life/event: and is an event", "#list", "stream: running to dead")
    wild = [numpy.nan, numpy.inf, -numpy.inf, 1e308, 1e308, -1e308, 5e-324]
    browser.go("stream=ring0")
    with source("ring0", lambda n: numpy.array([wild]), "f8"):
        browser.shows("hostile/pixels: without a sum or a range", "#numbers", "7 × 1 pixels, float64", "Image number")
        webdriver.ActionChains(browser).drag_and_drop_by_offset(browser.find("image"), 300, 0).perform()
        browser.shows("hostile/sum: the other numbers of a region", "#sums", "Region", "-1e+308, 1e+308 counts")


def tutorial(browser, folder):
    """Commands of "See it in a browser"."""
    opener, opened = folder / "opener", folder / "opened.html"
    opener.write_text(f'#!/bin/sh\ncp "${{1#file://}}" {folder}/part && mv {folder}/part {opened}\n', encoding="utf-8")
    opener.chmod(0o755)
    detector = ["remu", "--transport", "memory", "--buffer", f"{folder}/ring0", "--rate", "20", "--images", "100000"]
    viewer = ["env", f"BROWSER={opener}", f"RASHPA_LIBRARY={TOOLS}/librashpa.so.0", sys.executable, "-m", "rashpa.view"]
    with started(*detector, before=()) as remu, started(f"{folder}/ring0", before=viewer):
        browser.wait(opened.exists)
        browser.get(f"file://{opened}")
        browser.shows("tutorial: rashpa.view opens the page of remu's file", "#stream", "1024 × 512", "Image number")
        remu.terminate()
        browser.shows("tutorial/ended: its end is shown", "#state", "ended")


# --- hostile programs ---

UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
           "Sec-WebSocket-Key": 22 * "A" + "=="}
REQUESTS = (    # name, status, word of the answer; of the request: method, path, headers
    ("host", 421, "host", "GET", "", {"Host": "evil.example"}), ("files", 404, "file", "GET", "%2e%2e/server.py", {}),
    ("passwd", 404, "file", "GET", "static/../../../../etc/passwd", {}), ("method", 405, "GET", "POST", "", {}),
    ("long", 400, "", "GET", "x" * 20000, {}), ("plain", 400, "WebSocket", "GET", "link", {"Origin": "{}"}),
    ("origin", 403, "site", "GET", "link", {"Origin": "http://evil.example", **UPGRADE}),
    ("origin-null", 403, "site", "GET", "link", {"Origin": "null", **UPGRADE}),
    ("origin-like", 403, "site", "GET", "link", {"Origin": "{}.evil.example", **UPGRADE}))
MESSAGES = (
    ("json", 4400, "{"), ("want", 4400, '{"want": 1}'), ("one", 4400, '{"want": [["x"]]}'),
    ("name", 4400, '{"want": [[1, null]]}'), ("region", 4400, '{"want": [["x", [1, 2, 3]]]}'),
    ("surrogate", 4400, '{"want": [["\\ud800", null]]}'), ("list", 4400, "[]"), ("sums", 4400, '{"sums": ["x", 1]}'),
    ("deep", 4400, 2000 * "["), ("path", 4400, '{"want": [["/etc/passwd", null]]}'), ("big", 1009, "x" * 10000),
    ("often", 4400, *100 * ["{}"]), ("control", 4400, '{"control": "start"}', "{"))


@contextlib.asynccontextmanager
async def link(base, *messages):
    """A program that views, and sends messages."""
    async with aiohttp.ClientSession() as session, session.ws_connect(
            base + "/link", headers={"Origin": base}, max_msg_size=1 << 24) as ws:
        for message in messages:
            await (ws.send_str if isinstance(message, str) else ws.send_json)(message)
        yield ws


async def closed(base, *messages, images=0):
    """Why the server ends a link that sends this; None after so many images."""
    async with asyncio.timeout(PATIENCE), link(base, *messages) as ws:
        async for message in ws:
            images -= message.type == aiohttp.WSMsgType.BINARY
            if not images and message.type == aiohttp.WSMsgType.BINARY:
                return None
        return ws.close_code


async def until(condition):
    """Wait until condition() is true; False after a long time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.02)
            return True
    return False


async def hostile(page, base, token):
    """Requests that no page makes."""
    async with aiohttp.ClientSession() as session:
        async with session.get(base) as answer:
            ok(answer.status == 200 and answer.headers["Content-Security-Policy"].startswith("default-src 'self'")
               and answer.headers["X-Content-Type-Options"] == "nosniff", "hostile/headers: the policy of the page")
        for name, status, why, method, path, headers in REQUESTS:
            headers = {key: value.format(base) for key, value in headers.items()}
            async with session.request(method, f"{base}/{path}", headers=headers) as answer:
                text = await answer.text()
                ok(answer.status == status and why in text, f"hostile/{name}: {status}", (answer.status, text))
        ok(await closed(base, "wrong") == 4403 and not page.viewers, "hostile/token: a wrong token is refused")
        for name, code, *messages in MESSAGES:
            found = await closed(base, token, *messages)
            ok(found == code, f"hostile/link-{name}: {code}", found)
        ok(not page.experiment.value()["manager"], "hostile/no-control: without --control no experiment starts")
        async with link(base, token, {"want": [[f"none{n}", None] for n in range(100)]}):
            ok(await until(lambda: 0 < len(page.looks) <= server.MOST_IMAGES), "hostile/streams: few of a page")
        ok(await until(lambda: not page.looks), "cost/nobody: without viewers nothing is looked at")
        # a message that has no end, before the token
        async with session.get(base + "/link", headers={"Origin": base, **UPGRADE}) as answer:
            transport = answer.connection.transport
            transport.write(b"\x81\xff" + (1 << 40).to_bytes(8) + bytes(1 << 20))
            ok(await until(transport.is_closing), "hostile/endless: an endless message is cut off")
    place = page.server.sockets[0].getsockname()
    links = await asyncio.gather(*(asyncio.open_connection(*place) for _ in range(500)))
    lines, _ = await asyncio.wait([asyncio.ensure_future(reader.readline()) for reader, _ in links], timeout=PATIENCE)
    refused = [one for one in lines if not one.exception() and one.result().startswith(b"HTTP/1.1 503")]
    ok(len(refused) >= 500 - server.MOST_LINKS, "crowd/500: more than enough connections are refused", len(refused))
    ok(await until(lambda: len(page.http.connections) < 5), "crowd/after: their places are free again")


async def slow(page, base, token, name):
    """A page that does not read leaves images out, and others get theirs, all the same ones."""
    made = []
    look.binned, binned = lambda *parts: made.append(1) or binned(*parts), look.binned
    async with link(base, token, {"want": [[name, None]]}):
        await until(lambda: any(viewer.left_out > 3 for viewer in page.viewers))
        made.clear()
        ends = await asyncio.gather(*(closed(base, token, {"want": [[name, None]]}, images=5) for _ in range(20)))
        ok(not any(ends), "slow: a page that does not read leaves images out, others have them", ends)
        ok(len(made) < 40, "cost/once: an image is made once for 20 pages", len(made))
        ok(all(len(viewer.waiting) < 10 for viewer in page.viewers), "slow/bounded: and its queue is short")


# --- the program ---

@contextlib.contextmanager
def started(*words, before=(sys.executable, "-u", "-m", "rashpa.web")):
    with subprocess.Popen([*before, *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        yield process
        process.terminate()


def answers_at(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(path))
        s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return b"200" in s.makefile("rb").readline()


def program(folder):
    """rashpa-web itself: where it listens, and its token."""
    token, place, short = folder / "token", folder / "page", folder / "short"
    for name in "made", "read":
        with started("--listen", f"unix:{place}", "--token", str(token)) as process:
            line = process.stdout.readline()
            modes = [file.stat().st_mode & 0o777 for file in (token, place)]
            ok(line.endswith(f"token {token.read_text().strip()}\n") and answers_at(place) and modes == [0o600, 0o660],
               f"program/token-{name}: the token's file is {name}, and the UNIX socket answers", line)
        ok(process.returncode == 0, f"program/end-{name}: SIGTERM ends it", process.returncode)
    variables = (f"--setenv={name}" for name in ("PYTHONPATH", "RASHPA_LIBRARY", "PATH"))
    with started(str(folder / "activated"), sys.executable, str(TOOLS / "python/rashpa/web/rashpa-web"),
                 before=("systemd-socket-activate", *variables, "-l")) as process:
        while "Listening" not in process.stderr.readline():
            pass
        ok(answers_at(folder / "activated"), "program/systemd: it takes the socket of systemd")
    short.write_text("short")
    for why, *words in (("proxy", "--listen", "0.0.0.0:0"), ("nowhere", "--listen", "nowhere"),
                        ("--rate", "--rate", "99"), ("--experiment", "--control"), ("short", "--token", str(short)),
                        ("rashpa-web", "--experiment", "/dev/null")):
        with started(*words) as process:
            said, status = process.stderr.read(), process.wait(PATIENCE)
        right = why in said and "Traceback" not in said and status in (1, 2)
        ok(right, f"program/refused: {words[0]}, for {why}", said)


EXPERIMENT = """<experiment xmlns="urn:rashpa:1" version="1.0" name="first">
<detector name="board" at="unix:{0}/remu"><dataset>generate</dataset><images>1000000</images><rate>100</rate></detector>
<receiver name="judge" at="unix:{0}/romulu"><buffer>{0}/ring</buffer></receiver>
<flow from="board" to="judge" transport="memory"/></experiment>"""


def browse(folder, page, url):
    answers = Answers()
    with Browser(folder) as browser:
        with source("ring0", frame) as ring, \
             source("peaks0", peak_list, "f4", content="peaks"), \
             source("profile0", profile, "f8", content="profile", dataset="q_nm^-1"), \
             source("big0", lambda n: frame(n, (768, 1024)), "u1", images=2) as big:
            browser.get(url)
            overview(browser)
            live(browser, ring, big)
            others(browser, answers)
            narrow(browser)
        life(browser, answers)
        control(browser, page.experiment, page.loop)
        ok(not (errors := browser.get_log("browser")), "console: no error in the browser's console", errors)
        events = [event["message"] for event in browser.get_log("performance")]
        sent = [text for text in events if re.search(r'"Network.(requestWillBeSent|webSocketCreated)"', text)]
        hosts = set(re.findall(r'"url":"(?:http|ws)s?://([^/"]*)', "".join(sent)))
        ok(hosts == {url.split("/")[2]}, "hosts: nothing is loaded from another host", hosts)
        browser.execute_script("sessionStorage.clear(); location.reload()")
        browser.shows("token: without a token the page asks for it", "#enter", "Token")
        tutorial(browser, folder)


async def main():
    token, driver = "a token of the test", ctypes.CDLL(os.environ["RASHPA_LIBRARY"])
    driver.fake_buffer.restype = ctypes.c_void_p
    assert not driver.fake_driver_load()
    for name in STREAMS:    # less than 2 MiB, which the library would align
        assert driver.fake_buffer(name.encode(), ctypes.c_uint64((2 << 20) - (1 << 16)))
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as ends:
        folder = Path(name)
        (folder / "ring").write_bytes(bytes(64 << 20))
        (folder / "first.xml").write_text(EXPERIMENT.format(folder), encoding="utf-8")
        for daemon in "remu", "romulu":
            ends.enter_context(started("--daemon", f"unix:{folder}/{daemon}", before=[daemon]))
        page = server.Page(server.arguments(["--experiment", str(folder / "first.xml")]), token)
        url = await page.start("127.0.0.1:0")
        await asyncio.to_thread(browse, folder, page, url)
        await asyncio.to_thread(program, folder)
        base = url.split("/#")[0]
        await hostile(page, base, token)
        # it cannot be compressed
        with source("big0", lambda n: numpy.random.default_rng(n).integers(0, 1 << 16, (512, 900), "u2")):
            await slow(page, base, token, "big0")
        await page.end()
        driver.fake_driver_unload()
    print(f"1..{len(tests)}")
    sys.exit(not all(tests))


if __name__ == "__main__":
    asyncio.run(main())
