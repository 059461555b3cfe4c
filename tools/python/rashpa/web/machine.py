# SPDX-License-Identifier: LGPL-2.1-or-later
"""The state of the machine, as rashpactl --json prints it."""
import asyncio
import collections
import json
import subprocess
import time

RASHPACTL = "rashpactl", "--json"
AGAIN = 3           # seconds until a command runs again
EVENTS = 300        # the newest ones
TEXT = 2000         # characters of an event that are shown
LONGEST = 1 << 24   # bytes of a line
BAD = "stuck", "gone", "error", "revoked"


def reason(failure):
    return getattr(failure, "strerror", None) or str(failure)


def spawn(*command, stderr=subprocess.STDOUT):
    return asyncio.create_subprocess_exec(*command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
                                          limit=LONGEST)


async def each(command, line, other=lambda text: None, started=lambda process: None):
    """Call line() with each object that the command prints, one a line, other() with texts. Returns the last text."""
    said = f"{' '.join(command)}: it has ended"
    try:
        process = await spawn(*command)
        started(process)
        try:
            while text := await process.stdout.readline():
                if line and text.startswith(b"{"):
                    line(json.loads(text))
                else:
                    said = text.decode(errors="replace").rstrip("\n")
                    other(said)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    except Exception as failure:    # a line that is too long, no JSON, or lacks a key ends nothing but this command
        said = f"{' '.join(command)}: {reason(failure)}"
    return said


async def whole(command):
    """The value that the command prints, or None, and its message, or None."""
    try:
        text, said = await (await spawn(*command, stderr=subprocess.PIPE)).communicate()
        return json.loads(text or "null"), said.decode(errors="replace").strip() or None
    except (OSError, ValueError) as failure:
        return None, f"{' '.join(command)}: {reason(failure)}"


class Machine:
    """Collects while follow() runs; tell(name=value) passes on what is new."""

    def __init__(self, tell, files=()):
        self.tell = tell
        # of all buffers, and of streams in files, which rashpactl must be given
        self._parts = {names: {"streams": [], "why": "no answer of rashpactl yet"} for names in {(), tuple(files)}}
        self.streams, self.machine = self._parts[()], {}
        self.events, self._told = collections.deque(maxlen=EVENTS), None

    async def follow(self):
        async with asyncio.TaskGroup() as group:
            for names in self._parts:
                group.create_task(self._top(names))
            tasks = {}
            while True:
                found, why = await whole((*RASHPACTL, "list"))
                buffers, why_no_buffers = await whole((*RASHPACTL, "buffer", "list"))
                boards = {d["node"] for d in (found or {}).get("devices", [])}
                for board in boards - tasks.keys():
                    tasks[board] = group.create_task(self._board(board))
                for board in tasks.keys() - boards:
                    tasks.pop(board).cancel()
                new = {"list": found, "buffers": buffers, "why": why or why_no_buffers}
                if new != self.machine:
                    self.machine = new
                    self.tell(machine=new)
                await asyncio.sleep(AGAIN)

    def event(self, source, text, bad=False, when=None):
        """Tell it with the next state of streams: others may send many."""
        self.events.append({"time": when or time.time(), "source": source, "text": text[:TEXT], "bad": bad})

    async def _top(self, names):
        command = *RASHPACTL, "top", "--interval", "1", *names
        while True:
            why = await each(command, lambda now: self._look(names, now))
            self._look(names, {"streams": [], "why": why})
            await asyncio.sleep(AGAIN)

    def _look(self, names, now):
        before = {s["buffer"]: s for s in self._parts[names]["streams"]}
        for s in now["streams"]:    # their changes are events, too
            name, old = s["buffer"], before.get(s["buffer"], {})
            if old.get("state") != s["state"]:
                text = f"stream: {old.get('state', 'new')} to {s['state']}" + (f": {s['why']}" if s["why"] else "")
                self.event(name, text, s["state"] in ("dead", "gone"))
            if (lost := s.get("lost", 0) - old.get("lost", 0)) > 0:
                self.event(name, f"{lost} images lost: overwritten before they were given back", True)
        self._parts[names] = now
        self.streams = {"streams": [s for part in self._parts.values() for s in part["streams"]],
                        "why": self._parts[()].get("why")}
        self.tell(streams=self.streams)
        if self.events and self._told is not self.events[-1]:
            self._told = self.events[-1]
            self.tell(events=list(self.events))

    async def _board(self, board):
        def line(event):
            age = (time.monotonic_ns() - event["time_ns"]) / 1e9
            text = f"{event.get('label') or event['kind']}: {event.get('event', event['value'])}"
            self.event(board, text, event.get("event") in BAD, time.time() - age)
            if event["records_lost"]:
                self.event(board, f"{event['records_lost']} records of events lost", True)

        while True:
            command = *RASHPACTL, "event", "watch", "--device", "--map", board
            self.event(board, await each(command, line))
            await asyncio.sleep(4 * AGAIN)
