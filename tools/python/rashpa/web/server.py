# SPDX-License-Identifier: LGPL-2.1-or-later
"""The server: static files, and one WebSocket for each page, whose first message is the token."""
import argparse
import asyncio
import collections
import hmac
import ipaddress
import json
import logging
import os
import secrets
import signal
import socket
import sys
import tempfile
import time
import webbrowser
from pathlib import Path
from urllib.parse import quote, urlsplit

from aiohttp import WSMsgType, web
from aiohttp.http_exceptions import HttpProcessingError

from .experiment import Experiment
from .look import Look
from .machine import Machine

PORT = 9880
MOST_LINKS = 256        # connections
MOST_VIEWERS = 64       # pages
MOST_IMAGES = 4         # streams of a page
MOST_LOOKS = 16         # streams that are viewed at a time
MOST_REQUEST = 4096     # bytes of a message of a page
MOST_TAKEN = 1 << 18    # bytes of a connection without such a message
REQUESTS = 60           # messages of a page in a second
PATIENCE = 10           # seconds for a request, and for the token
STALLED = 30            # seconds until a page that does not read loses its link
LINGER = 60             # seconds that the machine is followed without a viewer
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


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
        self._waiting = collections.OrderedDict()
        self._wake = asyncio.Event()
        self._times = collections.deque(maxlen=REQUESTS)

    def put(self, topic, message):
        self.left_out += self._waiting.pop(topic, None) is not None and topic[0] == "image"
        self._waiting[topic] = message
        self._wake.set()

    def say(self, name, value):
        self.put((name,), json.dumps({name: value}))

    def may_ask(self):
        """Not more often than REQUESTS a second."""
        now = time.monotonic()
        full = len(self._times) == REQUESTS and now - self._times[0] < 1
        self._times.append(now)
        return not full

    async def send(self):
        while True:
            await self._wake.wait()
            while self._waiting:
                _, message = self._waiting.popitem(last=False)
                one = self.socket.send_bytes if isinstance(message, bytes) else self.socket.send_str
                await asyncio.wait_for(one(message), STALLED)
            self._wake.clear()


class Refused(asyncio.Protocol):
    """A connection for which there is no room."""

    def connection_made(self, transport):
        text = f"there are {MOST_LINKS} connections already\n"
        transport.write(f"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n"
                        f"Connection: close\r\n\r\n{text}".encode())
        transport.close()


class Link(web.RequestHandler):
    """A connection, with a limited time except for viewers. aiohttp collects requests, and a message of any length, before
    it looks at them."""

    taken = 0       # bytes since the last good message

    def __init__(self, page):
        super().__init__(page.http, loop=page.loop, access_log=None, logger=LOGGER, keepalive_timeout=PATIENCE, lingering_time=0)
        self.links = page.links
        self.links.add(self)
        self.timer = page.loop.call_later(PATIENCE, self.end)

    def end(self):
        if self.transport:
            self.transport.abort()      # calls connection_lost()
        self.links.discard(self)

    def connection_lost(self, exc):
        super().connection_lost(exc)
        self.timer.cancel()
        self.links.discard(self)

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
        self.viewers = set()
        self.looks = {}
        self.machine = Machine(self.tell, [name for name in options.streams if "/" in name])
        self.experiment = options.experiment and Experiment(options.experiment, self.tell, self.machine.event,
                                                            options.control)
        self.followers = [self.machine, self.experiment] if self.experiment else [self.machine]
        self.loop = asyncio.get_running_loop()
        folder = Path(__file__).parent / "static"
        self.files = {"/" + file.name: (file.read_bytes(), KINDS[file.suffix]) for file in folder.iterdir()
                      if file.suffix in KINDS}
        self.files["/"] = self.files["/index.html"]
        self.http, self.links = web.Server(self.answer), set()
        self._linger = None

    # --- HTTP ---

    def _is_ours(self, place):
        """Is HOST or HOST:PORT a name of this page?"""
        try:
            name = urlsplit("//" + place).hostname
        except ValueError:
            return False
        return name in (*self.options.host, "localhost", "127.0.0.1", "::1")

    async def answer(self, request):
        if not self._is_ours(request.headers.get("Host", "")):
            return refuse(421, "another host's name: rashpa-web --host NAME permits it")
        if request.method not in ("GET", "HEAD"):
            return refuse(405, "GET only")
        if request.path == "/link":
            return await self.link(request)
        if request.path not in self.files:
            return refuse(404, "there is no such file")
        body, kind = self.files[request.path]
        return web.Response(body=body, content_type=kind, charset="utf-8", headers=HEADERS)

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
            return ws
        if len(self.viewers) >= MOST_VIEWERS:
            await ws.close(code=4503, message=b"too many viewers")
            return ws
        request.protocol.timer.cancel()
        await self._serve(ws, request.protocol)
        return ws

    async def _serve(self, ws, link):
        viewer, transport = Viewer(ws), link.transport
        self.viewers.add(viewer)
        self._begin()
        self._welcome(viewer)
        sender = asyncio.ensure_future(viewer.send())
        # a page that does not read
        sender.add_done_callback(lambda task: task.cancelled() or task.exception() and transport.abort())
        try:
            async for message in ws:
                if message.type != WSMsgType.TEXT or not viewer.may_ask():
                    await ws.close(code=4400, message=b"too many requests, or no text")
                    break
                await self._ask(viewer, json.loads(message.data))
                link.taken = 0
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            await ws.close(code=4400, message=b"not a request of this page")
        finally:
            sender.cancel()
            self.viewers.discard(viewer)
            viewer.wanted = {}
            self._update()

    def _begin(self):
        if self._linger:
            self._linger.cancel()
            self._linger = None
        for follower in self.followers:
            follower.begin()

    def _welcome(self, viewer):
        history = [[name, list(rows)] for name, rows in self.machine.history.items()]
        hello = {"machine_name": socket.gethostname(), "history": history, "experiment": bool(self.experiment),
                 "streams": self.options.streams}
        viewer.say("hello", hello)
        viewer.say("streams", self.machine.streams)
        viewer.say("machine", self.machine.machine)
        viewer.say("events", list(self.machine.events))
        if self.experiment:
            viewer.say("experiment", self.experiment.value())

    async def _ask(self, viewer, request):
        if not isinstance(request, dict):
            raise ValueError(request)
        if "want" in request:
            wanted = {}
            for name, region in request["want"][:MOST_IMAGES]:
                # a page opens no file but these
                if "/" in name and name not in self.options.streams:
                    raise ValueError(name)
                name.encode()       # half a surrogate pair is no name
                wanted[name] = None if region is None else four(region)
            viewer.wanted = wanted
            self._update(viewer)
        if "sums" in request:
            name, *places = request["sums"]
            places = [four(place) for place in places[:2]]
            if name in self.looks and name in viewer.wanted:
                # the next request of this viewer waits
                viewer.say("sums", await asyncio.to_thread(self.looks[name].sums, places))
        if "control" in request and self.experiment:
            refusal = await self.experiment.command(str(request["control"]))
            if refusal:
                viewer.say("refused", refusal)

    def _update(self, viewer=None):
        """Look at what viewers want, and at nothing else."""
        regions = collections.defaultdict(set)
        for one in self.viewers:
            for name, region in one.wanted.items():
                regions[name].add(region)
        for name in list(self.looks):
            if name not in regions:
                self.looks.pop(name).want(())
        for name, wanted in regions.items():
            if name not in self.looks:
                if len(self.looks) >= MOST_LOOKS:
                    if viewer:
                        viewer.say("refused", f"{MOST_LOOKS} streams are viewed already")
                    continue
                self.looks[name] = Look(name, self._show, self.options.rate, self.options.accept)
            look = self.looks[name]
            if viewer and name in viewer.wanted and look.state:
                viewer.say("look", look.state)
                look.again(viewer.wanted[name])
            look.want(wanted)
        if not self.viewers and not self._linger:
            self._linger = self.loop.call_later(LINGER, lambda: asyncio.ensure_future(self._rest()))

    async def _rest(self):
        for follower in self.followers:
            await follower.end()

    # --- to viewers ---

    def tell(self, name, value):
        for viewer in self.viewers:
            viewer.say(name, value)

    def _show(self, name, what, message, region=...):
        """Called in the thread of a look: pass it on to those who want this region."""
        def show():
            for viewer in self.viewers:
                if name in viewer.wanted and region in (..., viewer.wanted[name]):
                    viewer.put((what, name), message)
        self.loop.call_soon_threadsafe(show)

    async def start(self, place):
        """Listen at the socket of systemd, or at ADDRESS:PORT, or unix:PATH; says where."""
        def accept():
            return Link(self) if len(self.links) < MOST_LINKS else Refused()

        if os.environ.get("LISTEN_PID") == str(os.getpid()):
            # of any family
            made = self.loop.create_server(accept, sock=socket.socket(fileno=3), backlog=512)
        elif place.startswith("unix:"):
            made = self.loop.create_unix_server(accept, place[5:], backlog=512)
        else:
            address, _, port = place.rpartition(":")
            address = ipaddress.ip_address(address.strip("[]") or "127.0.0.1")
            if not address.is_loopback:
                raise ValueError(f"{place}: only addresses of this machine; a proxy with TLS connects to it")
            made = self.loop.create_server(accept, str(address), int(port), backlog=512)
        mask = os.umask(0o117)
        try:
            self.server = await made
        finally:
            os.umask(mask)
        name = self.server.sockets[0].getsockname()
        if isinstance(name, str):
            return f"unix:{name}, token {self.token}"
        return f"http://{f'[{name[0]}]' if ':' in name[0] else name[0]}:{name[1]}/#token={quote(self.token)}"

    async def end(self):
        self.server.close()
        for look in self.looks.values():
            look.want(())
        await self._rest()
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


async def serve(options, token):
    page = Page(options, token)
    url = await page.start(options.listen)
    stop = asyncio.Event()
    for number in signal.SIGINT, signal.SIGTERM:
        page.loop.add_signal_handler(number, stop.set)
    print(url, flush=True)
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as file:
        if options.browser:
            # others can read the command line of a browser, but not this file
            file.write(f'<meta http-equiv="refresh" content="0; url={url}">')
            file.flush()
            page.loop.run_in_executor(None, webbrowser.open, f"file://{file.name}")
        await stop.wait()
    await page.end()


class Help(argparse.HelpFormatter):
    """The form of the other programs, which completion reads: --option=ARGUMENT."""

    def _format_action_invocation(self, action):
        argument = f"={action.metavar}" if action.option_strings and action.metavar else ""
        return (", ".join(action.option_strings) or action.metavar) + argument


def arguments(argv):
    parser = argparse.ArgumentParser(
        prog="rashpa-web", usage="%(prog)s [OPTION...] [BUFFER...]", formatter_class=Help, description="Show boards, buffers and streams of this machine in a browser. It observes: streams "
        "do not wait for it. It prints its address, which has the token that pages need.")
    parser.add_argument("streams", nargs="*", metavar="BUFFER", help="show the first one at once; only streams in files, "
                        "which are names with a slash, must be given")
    parser.add_argument("--listen", metavar="PLACE", default=f"127.0.0.1:{PORT}",
                        help="ADDRESS:PORT of this machine, PORT 0 for any, or unix:PATH (default: %(default)s)")
    parser.add_argument("--token", metavar="FILE", help="read the token from FILE, which is made if it does not exist "
                        "(default: another one each time)")
    parser.add_argument("--host", metavar="NAME", action="append", default=[],
                        help="name of the page behind a proxy; repeatable")
    parser.add_argument("--rate", type=float, default=5, metavar="N", help="images per second (default: %(default)s)")
    parser.add_argument("--accept", metavar="NAME", action="append", default=[],
                        help="use this memory, although some writers of the stream's header may not; repeatable")
    parser.add_argument("--experiment", metavar="FILE", help="show this experiment of rashpa-manager")
    parser.add_argument("--control", action="store_true",
                        help="pages may start the experiment, pause and stop it; without it they only read")
    parser.add_argument("--browser", action="store_true", help="open the page in a browser")
    options = parser.parse_args(argv)
    if options.control and not options.experiment:
        parser.error("--control requires --experiment")
    if not 0.1 <= options.rate <= 25:
        parser.error("--rate: 0.1 to 25 images per second")
    return options


def main(argv=None):
    options = arguments(argv)
    try:
        asyncio.run(serve(options, the_token(options.token)))
    except (OSError, ValueError, SyntaxError) as failure:
        print(f"rashpa-web: {failure}", file=sys.stderr)
        return 1
    return 0
