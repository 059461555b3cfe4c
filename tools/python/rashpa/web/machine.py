# SPDX-License-Identifier: LGPL-2.1-or-later
"""The state of the machine, as rashpactl --json prints it."""
import asyncio
import collections
import json
import subprocess
import time

TOP = "rashpactl", "--json", "top", "--interval", "1"
LIST = {"list": ("rashpactl", "--json", "list"), "buffers": ("rashpactl", "--json", "buffer", "list")}
AGAIN = 2           # seconds until a command that failed runs again
LIST_EVERY = 3      # seconds
HISTORY = 300       # seconds
EVENTS = 300        # the newest ones
TEXT = 2000         # characters of an event that are shown
LONGEST = 1 << 24   # bytes of a line
BAD = "stuck", "gone", "error", "revoked"
STREAMS = 256       # with a history


def _say(command, why):
    return f"{' '.join(command)}: {getattr(why, 'strerror', None) or why}"


async def each(command, line):
    """Call line() with each object that the command prints, one a line. Returns its last message."""
    said = _say(command, "it has ended")
    try:
        process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL, limit=LONGEST,
                                                       stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
        try:
            while text := await process.stdout.readline():
                if text.startswith(b"{"):
                    line(json.loads(text))
                else:
                    said = text.decode(errors="replace").strip()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    except (OSError, ValueError) as failure:    # ValueError: a line that is too long, or no JSON
        said = _say(command, failure)
    return said


def whole(command):
    """The one object that the command prints, or None, and its last message, or None."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        said = done.stderr.decode(errors="replace").strip().split("\n")[-1]
        return json.loads(done.stdout) if done.stdout.strip() else None, said or None
    except (OSError, ValueError) as failure:
        return None, _say(command, failure)


class Follower:
    """Tasks that go on while there are viewers: coroutines of work(), by name."""

    def __init__(self):
        self._tasks = {}

    def begin(self):
        if not self._tasks:
            self._tasks = {name: asyncio.ensure_future(one) for name, one in self.work().items()}

    async def end(self):
        # begin() may be called meanwhile
        tasks, self._tasks = self._tasks, {}
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)


class Machine(Follower):
    """Collects while there are viewers; tell(name, value) passes on what is new."""

    def __init__(self, tell, files=()):
        super().__init__()
        self.tell = tell
        # of all buffers, and of streams in files, which rashpactl must be given
        self._parts = {names: {"streams": [], "why": "no answer of rashpactl yet"} for names in {(), tuple(files)}}
        self.streams = self._parts[()]
        self.machine = {}
        self.history = {}           # by buffer: rows of its stream
        self.events = collections.deque(maxlen=EVENTS)
        self._late = None

    def work(self):
        # boards, by their names, come later
        return {None: self._lists(), **{names: self._top(names) for names in self._parts}}

    def event(self, source, text, bad=False, when=None):
        self.events.append({"time": when or time.time(), "source": source, "text": text[:TEXT], "bad": bad})
        # others may send many
        self._late = self._late or asyncio.get_running_loop().call_later(0.2, self._tell_events)

    def _tell_events(self):
        self._late = None
        self.tell("events", list(self.events))

    async def _top(self, names):
        while True:
            why = await each((*TOP, *names), lambda now: self._look(names, now))
            self._look(names, {"streams": [], "why": why})
            await asyncio.sleep(AGAIN)

    def _look(self, names, now):
        before = {s["buffer"]: s for s in self._parts[names]["streams"]}
        self._parts[names] = now
        for s in now["streams"]:
            self._compare(before.get(s["buffer"]), s)
            latency, work = s.get("latency_ns", {}), s.get("processing") or {}
            s["row"] = [time.time(), s.get("images_per_second"), s.get("bytes_per_second"), latency.get("p50"),
                        latency.get("p99"), work.get("images"), work.get("vetoed")]
            if s["buffer"] in self.history or len(self.history) < STREAMS:
                self.history.setdefault(s["buffer"], collections.deque(maxlen=HISTORY)).append(s["row"])
        streams = [s for part in self._parts.values() for s in part["streams"]]
        for name in self.history.keys() - {s["buffer"] for s in streams}:
            del self.history[name]
        self.streams = {"streams": streams, "why": self._parts[()].get("why")}
        self.tell("streams", self.streams)

    def _compare(self, before, now):
        """Changes of a stream are events, too."""
        was = (before or {}).get("state")
        if was != now["state"]:
            self.event(now["buffer"], f"stream: {was or 'new'} to {now['state']}" + (f": {now['why']}" if now["why"] else ""),
                       now["state"] in ("dead", "gone"))
        lost = now.get("lost", 0) - (before or {}).get("lost", 0)
        if lost > 0:
            self.event(now["buffer"], f"{lost} images lost: overwritten before they were given back", True)

    async def _lists(self):
        while True:
            found = {"why": None}
            for name, command in LIST.items():
                found[name], why = await asyncio.to_thread(whole, command)
                found["why"] = why or found["why"]
            boards = {d["node"] for d in (found["list"] or {}).get("devices", [])}
            for board in boards - self._tasks.keys():
                self._tasks[board] = asyncio.ensure_future(self._board(board))
            for board in {name for name in self._tasks if isinstance(name, str)} - boards:
                self._tasks.pop(board).cancel()
            if found != self.machine:
                self.machine = found
                self.tell("machine", found)
            await asyncio.sleep(LIST_EVERY)

    async def _board(self, board):
        def line(event):
            age = (time.monotonic_ns() - event["time_ns"]) / 1e9
            text = f"{event.get('label') or event['kind']}: {event.get('event', event['value'])}"
            self.event(board, text, event.get("event") in BAD, time.time() - age)
            if event["records_lost"]:
                self.event(board, f"{event['records_lost']} records of events lost", True)

        while True:
            why = await each(("rashpactl", "--json", "event", "watch", "--device", "--map", board), line)
            self.event(board, why)
            await asyncio.sleep(10)
