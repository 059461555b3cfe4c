# SPDX-License-Identifier: LGPL-2.1-or-later
"""An experiment of rashpa-manager, observed by telegrams; with control, run by a manager of ours."""
import asyncio
import signal
import struct
import time
import xml.etree.ElementTree as ET

from .machine import TEXT, Follower, reason, spawn

SPACE = "{urn:rashpa:1}"
HELLO = (b'<telegram xmlns="urn:rashpa:1" version="1.0" id="1">'
         b'<hello name="rashpa-web" role="observer" interval="1"/></telegram>')
LONGEST = 1 << 20   # bytes of a telegram
AGAIN = 3           # seconds between attempts to connect
SILENCE = 20        # seconds without a status until a daemon counts as gone
COUNTS = "images", "lag", "slots", "lost", "missing", "kept"
# of a command: the signal, and the state that a detector must have, else its signals may find no handler
COMMANDS = {"start": (None, None), "pause": (signal.SIGUSR1, "running"),
            "resume": (signal.SIGUSR2, "paused"), "stop": (signal.SIGINT, None)}


async def _receive(reader):
    size = struct.unpack(">I", await reader.readexactly(4))[0]
    if not 0 < size <= LONGEST:
        raise ValueError(f"a telegram of {size} bytes")
    text = await reader.readexactly(size)
    if b"<!DOCTYPE" in text:
        raise ValueError("a telegram with a DOCTYPE")
    return ET.fromstring(text)[0]


class Experiment(Follower):
    """Follows the daemons while there are viewers; tell(name, value) passes on what is new."""

    def __init__(self, file, tell, event, control=False):
        super().__init__()
        root = ET.parse(file).getroot()
        if root.tag != SPACE + "experiment":
            raise ValueError(f"{file}: {root.tag} is not the experiment of a rashpa-manager")
        self.file, self.tell, self.event, self.control = file, tell, event, control
        self.name, self.manager, self._said = root.get("name"), None, ""
        self._turn = asyncio.Lock()     # of commands: to start takes a while
        self.parties = [{
            "name": p.get("name"), "role": p.tag.removeprefix(SPACE), "at": p.get("at"),
            "state": "not connected",
            "settings": [[s.tag.removeprefix(SPACE), (s.text or "")[:TEXT].strip()] for s in p]}
            for p in root if p.tag in (SPACE + "detector", SPACE + "receiver")]
        self.flows = [dict(f.attrib) for f in root.iter(SPACE + "flow")]

    def _runs(self):
        return self.manager is not None and self.manager.returncode is None

    def value(self):
        return {"name": self.name, "parties": self.parties, "flows": self.flows,
                "control": self.control, "manager": self._runs(), "said": self._said}

    def changed(self):
        self.tell("experiment", self.value())

    def work(self):
        return {party["name"]: self._follow(party) for party in self.parties}

    async def _follow(self, party):
        while True:
            try:
                await self._link(party)
            except (OSError, ValueError, TypeError, ET.ParseError, EOFError, IndexError) as failure:
                why = reason(failure) or f"no answer within {SILENCE} s"
                party.update(state="gone", why=why, images_per_second=None)
                self.changed()
            await asyncio.sleep(AGAIN)

    async def _link(self, party):
        kind, _, place = party["at"].partition(":")
        if kind == "unix":
            connection = asyncio.open_unix_connection(place)
        elif kind == "plain":
            host, _, port = place.rpartition(":")
            connection = asyncio.open_connection(host.strip("[]"), int(port))
        else:
            raise ValueError(f"{party['at']}: the page connects to unix: and plain: only")
        reader, writer = await asyncio.wait_for(connection, SILENCE)
        try:
            writer.write(struct.pack(">I", len(HELLO)) + HELLO)
            while True:
                self._hear(party, await asyncio.wait_for(_receive(reader), SILENCE))
        finally:
            writer.close()

    def _hear(self, party, element):
        kind, outcome = element.tag.removeprefix(SPACE), element.get("outcome")
        state = element.get("state") or ("ended" if kind == "ended" else party["state"])
        if kind == "error":
            raise ValueError(element.text or "refused")
        if kind == "log":
            self.event(party["name"], element.text or "")
        elif kind in ("full", "relieved"):
            lag, slots = element.get("lag"), element.get("slots")
            self.event(party["name"], f"buffer {kind}: {lag} of {slots} stacks")
        elif kind == "ended":
            self.event(party["name"], f"ended: {outcome}", outcome not in ("done", "stopped"))
        if kind in ("status", "ended"):
            self._count(party, element)
        outcome = outcome or party.get("outcome") if state == "ended" else None
        party.update(state=state, why=None, outcome=outcome)
        self.changed()

    @staticmethod
    def _count(party, element):
        counts = {c.get("name"): int(c.text) for c in element if c.tag == SPACE + "count"}
        now, images = time.monotonic(), counts.get("images")
        then, before = party.pop("last", (now, 0))
        if images is not None:
            party["last"] = now, images
            if then < now and before <= images:
                party["images_per_second"] = (images - before) / (now - then)
        party.update((name, counts.get(name)) for name in COUNTS)

    def _refusal(self, word):
        runs = self._runs()
        if not self.control:
            return "the page may only read: rashpa-web --control"
        if word not in COMMANDS:
            return f"{word[:20]}: start, pause, resume and stop are known"
        if runs == (word == "start"):
            return ("the experiment runs already" if runs else
                    "the page leads only an experiment that it started")
        needs = COMMANDS[word][1]
        if needs and ("detector", needs) not in [(p["role"], p["state"]) for p in self.parties]:
            return f"no detector is {needs}"
        return None

    async def command(self, word):
        """start, pause, resume or stop. Returns a refusal, or None."""
        async with self._turn:
            if refusal := self._refusal(word):
                return refusal
            if word != "start":
                self.manager.send_signal(COMMANDS[word][0])
            else:
                try:
                    self.manager = await spawn("rashpa-manager", "run", "--name", "rashpa-web", self.file)
                except OSError as failure:
                    return f"rashpa-manager: {failure.strerror}"
                self._said = ""
                self._reader = asyncio.ensure_future(self._read())
            self.event("manager", word)
            self.changed()
            return None

    async def _read(self):
        while text := await self.manager.stdout.read(1 << 12):
            self._said = (self._said + text.decode(errors="replace"))[-8 * TEXT:]
            self.changed()
        status = await self.manager.wait()
        self.event("manager", f"ended with status {status}", status != 0)
        self.changed()
