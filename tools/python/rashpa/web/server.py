# SPDX-License-Identifier: LGPL-2.1-or-later
"""The server: static files, and one WebSocket for each page, whose first message is the token."""
import asyncio
import collections
import hmac
import json
import logging
import optparse
import os
import re
import secrets
import signal
import socket
import sys
import tempfile
import time
import webbrowser
from pathlib import Path
from urllib.parse import quote

from aiohttp import WSMsgType, web
from aiohttp.http_exceptions import HttpProcessingError

from .experiment import Experiment
from .look import Look
from .machine import Machine

PORT = 9880
LOCAL = "localhost", "127.0.0.1", "[::1]"
MOST_LINKS = 256        # connections
MOST_VIEWERS = 64       # pages
MOST_IMAGES = 4         # streams of a page
MOST_LOOKS = 16         # streams that are viewed at a time
MOST_REQUEST = 4096     # bytes of a message of a page
MOST_TAKEN = 1 << 18    # bytes of a connection without such a message
REQUESTS = 60           # messages of a page in a second
PATIENCE = 10           # seconds for a request, and for the token
STALLED = 30            # seconds until a page that does not read loses its link
FILES = Path(__file__).parent / "static"
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
FULL = ("HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
        f"there are {MOST_LINKS} connections already\n")


def four(region):
    """The four integers of a region."""
    if not isinstance(region, list) or [type(n) for n in region] != 4 * [int]:
        raise ValueError(region)
    return tuple(region)


def refuse(status, why):
    return web.Response(status=status, text=why + "\n", headers=HEADERS)


class Viewer:
    """A page. Of each topic only the newest message waits, so a slow page leaves messages out."""

    def __init__(self, socket_):
        self.socket = socket_
        self.left_out = 0
        self.wanted = {}        # name of a buffer: region
        self.waiting = collections.OrderedDict()
        self._wake = asyncio.Event()
        self.times = collections.deque([0] * REQUESTS, REQUESTS)

    def put(self, topic, message):
        self.left_out += self.waiting.pop(topic, None) is not None and topic[0] == "image"
        self.waiting[topic] = message
        self._wake.set()

    def say(self, **values):
        self.put(tuple(values), json.dumps(values))

    async def send(self):
        while await self._wake.wait():
            while self.waiting:
                _, message = self.waiting.popitem(last=False)
                one = self.socket.send_bytes if isinstance(message, bytes) else self.socket.send_str
                await asyncio.wait_for(one(message), STALLED)
            self._wake.clear()


class Link(web.RequestHandler):
    """A connection, with a limited time except for viewers. aiohttp collects requests, and a message of any length,
    before it looks at them."""

    taken = 0       # bytes since the last good message

    def __init__(self, page):
        super().__init__(page.http, loop=page.loop, access_log=None, logger=LOGGER, keepalive_timeout=PATIENCE,
                         lingering_time=0)
        self.timer = page.loop.call_later(PATIENCE, self.end)

    def end(self):
        if self.transport:
            self.transport.abort()      # calls connection_lost()

    def connection_made(self, transport):
        super().connection_made(transport)
        if len(self._manager.connections) > MOST_LINKS:
            transport.write(FULL.encode())
            transport.close()

    def connection_lost(self, exc):
        super().connection_lost(exc)
        self.timer.cancel()

    def data_received(self, data):
        self.taken += len(data)
        if self.taken > MOST_TAKEN:
            self.end()
        else:
            super().data_received(data)


LOGGER = logging.getLogger("rashpa-web")
# anybody can send what is no HTTP
LOGGER.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError)))


class Page:
    """All of it: viewers, and what they view."""

    def __init__(self, options, token):
        self.options, self.token = options, token
        self.viewers, self.looks = set(), {}
        self.machine = Machine(self.tell, [name for name in options.streams if "/" in name])
        self.experiment = options.experiment and Experiment(options.experiment, self.tell, self.machine.event,
                                                            options.control)
        self.following = []
        self.loop = asyncio.get_running_loop()
        self.http = web.Server(self.answer)

    # --- HTTP ---

    async def answer(self, request):
        name = re.sub(r":\d*$", "", request.headers.get("Host", ""))
        if name not in (*self.options.host, *LOCAL):
            return refuse(421, "another host's name: rashpa-web --host NAME permits it")
        if request.method not in ("GET", "HEAD"):
            return refuse(405, "GET only")
        if request.path == "/link":
            return await self.link(request)
        name = request.path[1:] or "index.html"
        if name not in os.listdir(FILES):
            return refuse(404, "there is no such file")
        return web.FileResponse(FILES / name, headers=HEADERS)

    # --- WebSocket ---

    async def link(self, request):
        host = request.headers["Host"]
        if request.headers.get("Origin") not in (f"http://{host}", f"https://{host}"):
            return refuse(403, "a request of another site's page")
        ws = web.WebSocketResponse(max_msg_size=MOST_REQUEST, heartbeat=STALLED, compress=False, timeout=1)
        if not ws.can_prepare(request):
            return refuse(400, "this is a WebSocket")
        await ws.prepare(request)
        try:
            first = await ws.receive(PATIENCE)
            right = first.type == WSMsgType.TEXT and hmac.compare_digest(first.data.encode(), self.token.encode())
        except asyncio.TimeoutError:
            right = False
        if not right:
            await asyncio.sleep(0.2)
            await ws.close(code=4403, message=b"wrong token")
        elif len(self.viewers) >= MOST_VIEWERS:
            await ws.close(code=4503, message=b"too many viewers")
        else:
            request.protocol.timer.cancel()
            await self._serve(ws, request.protocol)
        return ws

    async def _serve(self, ws, link):
        viewer = Viewer(ws)
        self.viewers.add(viewer)
        hello = {"machine_name": socket.gethostname(), "streams": self.options.streams,
                 "experiment": bool(self.experiment)}
        viewer.say(hello=hello, streams=self.machine.streams, machine=self.machine.machine,
                   events=list(self.machine.events), experiment=self.experiment and self.experiment.value())
        both = self.machine, self.experiment
        self.following = self.following or [asyncio.ensure_future(one.follow()) for one in both if one]
        sender = asyncio.ensure_future(viewer.send())
        # a page that does not read
        sender.add_done_callback(lambda task: task.cancelled() or task.exception() and link.end())
        try:
            async for message in ws:
                viewer.times.append(time.monotonic())
                if message.type != WSMsgType.TEXT or viewer.times[-1] - viewer.times[0] < 1:
                    raise ValueError("too many requests, or no text")
                await self._ask(viewer, **json.loads(message.data))
                link.taken = 0
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            await ws.close(code=4400, message=b"not a request of this page, or too many")
        finally:
            sender.cancel()
            self.viewers.discard(viewer)
            self._update()

    async def _ask(self, viewer, want=None, sums=None, control=None):
        if want is not None:
            wanted = {}
            for name, region in want[:MOST_IMAGES]:
                # a page opens no file but these
                if "/" in name and name not in self.options.streams:
                    raise ValueError(name)
                name.encode()       # half a surrogate pair is no name
                wanted[name] = None if region is None else four(region)
            viewer.wanted = wanted
            self._update(viewer)
        if sums is not None:
            name, *places = sums
            places = [four(place) for place in places[:2]]
            if name in self.looks and name in viewer.wanted:
                # the next request of this viewer waits
                viewer.say(sums=await asyncio.to_thread(self.looks[name].sums, places))
        if control is not None and self.experiment:
            viewer.say(refused=self.experiment.command(str(control)) or "")

    def _update(self, viewer=None):
        """Look at what viewers want, and at nothing else."""
        regions = collections.defaultdict(set)
        for one in self.viewers:
            for name, region in one.wanted.items():
                regions[name].add(region)
        for name in self.looks.keys() - regions.keys():
            self.looks.pop(name).want(())
        for name, wanted in regions.items():
            if name not in self.looks and len(self.looks) < MOST_LOOKS:
                self.looks[name] = Look(name, self._show, self.options.rate, self.options.accept)
            look, asked = self.looks.get(name), viewer and name in viewer.wanted
            if asked and not look:
                viewer.say(refused=f"{MOST_LOOKS} streams are viewed already")
            elif asked and look.state:
                self._show(name, "look", json.dumps({"look": look.state}))
            if look and (asked or wanted != look.regions):
                look.want(wanted)
        while not self.viewers and self.following:
            self.following.pop().cancel()

    # --- to viewers ---

    def tell(self, **values):
        for viewer in self.viewers:
            viewer.say(**values)

    def _show(self, name, what, message, region=...):
        """Called in the thread of a look: pass it on to those who want this region."""
        def show():
            for viewer in self.viewers:
                if name in viewer.wanted and region in (..., viewer.wanted[name]):
                    viewer.put((what, name), message)
        self.loop.call_soon_threadsafe(show)

    async def start(self, place):
        """Listen at the socket of systemd, or at ADDRESS:PORT, or unix:PATH; says where."""
        kind, path = self.loop.create_server, {}
        if os.environ.get("LISTEN_PID") == str(os.getpid()):
            path = {"sock": socket.socket(fileno=3)}    # of any family
        elif place.startswith("unix:"):
            kind, path = self.loop.create_unix_server, {"path": place[5:]}
        else:
            address, _, port = place.rpartition(":")
            if address not in LOCAL:
                raise ValueError(f"{place}: only addresses of this machine; a proxy with TLS connects to it")
            path = {"host": address.strip("[]"), "port": int(port)}
        mask = os.umask(0o117)
        self.server = await kind(lambda: Link(self), backlog=512, **path)
        os.umask(mask)
        name = self.server.sockets[0].getsockname()
        if isinstance(name, str):
            return f"unix:{name}, token {self.token}"
        return f"http://{f'[{name[0]}]' if ':' in name[0] else name[0]}:{name[1]}/#token={quote(self.token)}"

    async def end(self):
        self.server.close()
        self.viewers.clear()
        self._update()
        await self.http.shutdown(1)


# --- the program ---

def the_token(file):
    """The token of a file, which is made if it does not exist; of no file: a random one."""
    token = secrets.token_urlsafe(24)
    if file:
        try:
            with open(file, "x", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as made:
                print(token, file=made)
        except FileExistsError:
            token = Path(file).read_text(encoding="utf-8").strip()
            if len(token) < 16:
                raise ValueError(f"{file}: a token has at least 16 characters") from None
    return token


async def serve(options):
    page = Page(options, the_token(options.token))
    url = await page.start(options.listen)
    stop = asyncio.Event()
    for number in signal.SIGINT, signal.SIGTERM:
        page.loop.add_signal_handler(number, stop.set)
    print(url, flush=True)
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as file:
        if options.browser:
            # others can read the command line of a browser, but not this file
            print(f'<meta http-equiv="refresh" content="0; url={url}">', file=file, flush=True)
            page.loop.run_in_executor(None, webbrowser.open, f"file://{file.name}")
        await stop.wait()
    await page.end()


def arguments(argv):
    parser = optparse.OptionParser(
        prog="rashpa-web", usage="%prog [OPTION...] [BUFFER...]", description="Show boards, buffers and streams of "
        "this machine in a browser, BUFFER first; only streams in files, which are names with a slash, must be given. "
        "It observes: streams do not wait for it. It prints its address, which has the token that pages need.")
    add = parser.add_option
    add("--listen", metavar="PLACE", default=f"127.0.0.1:{PORT}",
        help="127.0.0.1:PORT, PORT 0 for any, or unix:PATH (default: %default)")
    add("--token", metavar="FILE", help="token, which is made if FILE does not exist (default: another one each time)")
    add("--host", metavar="NAME", action="append", default=[], help="name of the page behind a proxy; repeatable")
    add("--rate", type=float, default=5, metavar="N", help="images per second (default: %default)")
    add("--accept", metavar="NAME", action="append", default=[],
        help="use this memory, although some writers of the stream's header may not; repeatable")
    add("--experiment", metavar="FILE", help="show this experiment of rashpa-manager")
    add("--control", action="store_true", help="pages may start the experiment, pause and stop it")
    add("--browser", action="store_true", help="open the page in a browser")
    options, options.streams = parser.parse_args(argv)
    if options.control and not options.experiment:
        parser.error("--control requires --experiment")
    if not 0.1 <= options.rate <= 25:
        parser.error("--rate: 0.1 to 25 images per second")
    return options


def main(argv=None):
    try:
        asyncio.run(serve(arguments(argv)))
    except (OSError, ValueError, SyntaxError) as failure:
        print(f"rashpa-web: {failure}", file=sys.stderr)
        return 1
    return 0
