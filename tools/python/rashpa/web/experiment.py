# SPDX-License-Identifier: LGPL-2.1-or-later
"""The experiment of a file: rashpa-manager observes it for us and, with control, runs it."""
import asyncio
import signal
import xml.etree.ElementTree as ET
from pathlib import Path

from .machine import AGAIN, TEXT, each

SPACE = "{urn:rashpa:1}"
GONE = 10       # seconds without a daemon until another observer connects to it
COLUMNS = "state", "images", "images_per_second", "lag", "lost", "missing"
# The signal of a command, and the state that it needs of a detector: an earlier signal may find no handler.
COMMANDS = {"start": (None, None), "pause": (signal.SIGUSR1, "running"),
            "resume": (signal.SIGUSR2, "paused"), "stop": (signal.SIGINT, None)}


class Experiment:
    """Follows the daemons while follow() runs; tell(name=value) passes on what is new."""

    def __init__(self, file, tell, event, control=False):
        root = ET.parse(file).getroot()
        if root.tag != SPACE + "experiment":
            raise ValueError(f"{file}: {root.tag} is not the experiment of a rashpa-manager")
        self.file, self.tell, self.event, self.control = file, tell, event, control
        self.name, self.manager, self._run, self._said, self._heard = root.get("name"), None, None, "", None
        self.plan = Path(file).read_text(encoding="utf-8")
        self.parties = {p.get("name"): {"name": p.get("name"), "role": p.tag.removeprefix(SPACE), "state": "unknown"}
                        for p in root if p.tag in (SPACE + "detector", SPACE + "receiver")}

    def value(self):
        return {"name": self.name, "plan": self.plan, "parties": list(self.parties.values()), "said": self._said,
                "control": self.control, "manager": self.manager is not None}

    def changed(self):
        self.tell(experiment=self.value())

    async def follow(self):
        while True:
            self._gone = 0
            why = await each(("rashpa-manager", "watch", self.file), None, self._hear)
            for party in self.parties.values():
                party.update(dict.fromkeys(COLUMNS), state="gone", why=why)
            self.changed()
            await asyncio.sleep(AGAIN)

    def _hear(self, text):
        """A line of the table, of a title or of a link; others are messages."""
        name, role, *values = (text.rsplit(None, 7) + 2 * [""])[:8]
        if role in ("detector", "receiver") and name in self.parties:
            numbers = (float(v) if v[0].isdigit() and "/" not in v else v for v in values[1:])
            self.parties[name].update(zip(COLUMNS, (values[0], *numbers)), why=None)
            self._gone += values[0] == "gone"
            if self._gone > GONE:
                raise ValueError("a daemon is gone")
            self.changed()
        elif not text.startswith(("experiment ", "WHO ", "  to ")) and text != self._heard:
            self._heard = text
            self.event(self.name, text)

    def command(self, word):
        """start, pause, resume or stop. Returns a refusal, or None."""
        if not self.control:
            return "the page may only read: rashpa-web --control"
        if word not in COMMANDS:
            return f"{word[:20]}: start, pause, resume and stop are known"
        number, needs = COMMANDS[word]
        if needs and ("detector", needs) not in [(p["role"], p["state"]) for p in self.parties.values()]:
            return f"no detector is {needs}"
        if number and (not self.manager or self.manager.returncode is not None):
            return "the page leads only an experiment that it started"
        if number:
            self.manager.send_signal(number)
        elif self._run and not self._run.done():
            return "the experiment runs already"
        else:
            self._said, self._run = "", asyncio.ensure_future(self._lead())
        self.event("manager", word)
        return None

    async def _lead(self):
        def say(text):
            self._said = f"{self._said}{text}\n"[-8 * TEXT:]
            self.changed()

        why = await each(("rashpa-manager", "run", "--name", "rashpa-web", self.file), None, say,
                         lambda process: setattr(self, "manager", process))
        self.event("manager", f"ended: {why}", not self.manager or self.manager.returncode != 0)
        self.manager = None
        self.changed()
