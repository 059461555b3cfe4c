# SPDX-License-Identifier: LGPL-2.1-or-later
"""The experiment of a file for rashpa-manager, observed by telegrams; with control, run by a rashpa-manager of ours."""
import asyncio
import signal
import struct
import time
import xml.etree.ElementTree as ET

from .machine import TEXT, Follower

SPACE = "{urn:rashpa:1}"
HELLO = (b'<telegram xmlns="urn:rashpa:1" version="1.0" id="1">'
         b'<hello name="rashpa-web" role="observer" interval="1"/></telegram>')
LONGEST = 1 << 20   # bytes of a telegram
AGAIN = 3           # seconds between attempts to connect
SILENCE = 20        # seconds without a status until a daemon counts as gone
COMMANDS = {"start": None, "pause": signal.SIGUSR1, "resume": signal.SIGUSR2, "stop": signal.SIGINT}
NEEDS = {"pause": "running", "resume": "paused"}    # before that its signals may find no handler


def _counts(element):
    return {count.get("name"): int(count.text) for count in element if count.tag == SPACE + "count"}


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
        self.manager = None
        self._said = ""
        self._turn = asyncio.Lock()     # of commands: to start takes a while
        self.parties = [{
            "name": p.get("name"), "role": p.tag.removeprefix(SPACE), "at": p.get("at"), "state": "not connected",
            "why": None, "counts": {}, "rate": None, "outcome": None,
            "settings": [[s.tag.removeprefix(SPACE), (s.text or "")[:TEXT].strip()] for s in p if s.tag.startswith(SPACE)],
        } for p in root if p.tag in (SPACE + "detector", SPACE + "receiver")]
        self.flows = [dict(f.attrib) for f in root.iter(SPACE + "flow")]
        self.name = root.get("name")

    def _runs(self):
        return self.manager is not None and self.manager.returncode is None

    def value(self):
        return {"name": self.name, "parties": self.parties, "flows": self.flows, "control": self.control,
                "manager": self._runs(), "said": self._said}

    def _changed(self):
        self.tell("experiment", self.value())

    def work(self):
        return {party["name"]: self._follow(party) for party in self.parties}

    async def _follow(self, party):
        while True:
            try:
                await self._link(party)
            except (OSError, ValueError, TypeError, ET.ParseError, EOFError, IndexError) as failure:
                party.update(state="gone", why=getattr(failure, "strerror", None) or str(failure) or f"no answer within {SILENCE} s", rate=None)
                self._changed()
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
        kind = element.tag.removeprefix(SPACE)
        if kind == "error":
            raise ValueError(element.text or "refused")
        if kind == "status":
            self._count(party, _counts(element))
        elif kind == "log":
            self.event(party["name"], element.text or "")
        elif kind in ("full", "relieved"):
            self.event(party["name"], f"buffer {kind}: {element.get('lag')} of {element.get('slots')} stacks")
        elif kind == "ended":
            self._count(party, _counts(element))
            party["outcome"] = element.get("outcome")
            self.event(party["name"], f"ended: {element.get('outcome')}", element.get("outcome") not in ("done", "stopped"))
        state = element.get("state") or ("ended" if kind == "ended" else party["state"])
        if state != "ended":
            party["outcome"] = None
        party.update(state=state, why=None)
        self._changed()

    @staticmethod
    def _count(party, counts):
        now, images = time.monotonic(), counts.get("images")
        last = party.pop("last", None)
        if images is not None:
            if last and now > last[0] and images >= last[1]:
                party["rate"] = (images - last[1]) / (now - last[0])
            party["last"] = now, images
        party["counts"] = counts

    async def command(self, word):
        """start, pause, resume or stop. Returns a refusal, or None."""
        async with self._turn:
            runs = self._runs()
            if not self.control:
                return "the page may only read: rashpa-web --control"
            if word not in COMMANDS:
                return f"{word[:20]}: start, pause, resume and stop are known"
            if runs == (word == "start"):
                return "the experiment runs already" if runs else "the page leads only an experiment that it started"
            if word != "start":
                if word in NEEDS and not any((p["role"], p["state"]) == ("detector", NEEDS[word]) for p in self.parties):
                    return f"no detector is {NEEDS[word]}"
                self.manager.send_signal(COMMANDS[word])
            else:
                try:
                    self.manager = await asyncio.create_subprocess_exec(
                        "rashpa-manager", "run", "--name", "rashpa-web", self.file, stdin=asyncio.subprocess.DEVNULL,
                        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
                except OSError as failure:
                    return f"rashpa-manager: {failure.strerror}"
                self._said = ""
                self._reader = asyncio.ensure_future(self._read())
            self.event("manager", word)
            self._changed()
            return None

    async def _read(self):
        while text := await self.manager.stdout.read(1 << 12):
            self._said = (self._said + text.decode(errors="replace"))[-8 * TEXT:]
            self._changed()
        await self.manager.wait()
        self.event("manager", f"ended with status {self.manager.returncode}", self.manager.returncode != 0)
        self._changed()
