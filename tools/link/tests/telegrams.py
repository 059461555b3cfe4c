# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every telegram in every state of a detector's daemon, by the table in the schema; then what is no
telegram, two managers, and processes that die. TAP. telegrams.py TOOLS SCHEMA
"""
import collections
import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET

from telegram import SPACE, Daemon, kind

TOOLS, SCHEMA = sys.argv[1:]
XS = "{http://www.w3.org/2001/XMLSchema}"
work = tempfile.mkdtemp()
count = bad = 0
times = collections.Counter()


def ok(good, title, *more):
    global count, bad
    count += 1
    key, _, sentence = title.partition(": ")
    times[key] += 1
    print("ok" if good else "not ok", count, "-", f"{key}{f'.{times[key]}' if times[key] > 1 else ''}: {sentence}")
    if not good:
        bad += 1
        for line in more:
            print("#", line)


def same(title, got, wanted):
    ok(got == wanted, title, f"got {got}, expected {wanted}")


def table():
    """{name: (states, leads)} of what a manager may say, and the names of what only daemons say."""
    requests, others = {}, []
    for element in ET.parse(SCHEMA).getroot().findall(XS + "element"):
        info = element.find(f"{XS}annotation/{XS}appinfo")
        name = element.get("name")
        if info is not None:
            words = dict(w.split("=", 1) for w in info.text.replace('"', "").replace(
                " leader=", ";leader=").replace(" role=", ";role=").split(";"))
            requests[name] = (words["states"].split(), words["leader"] == "yes")
        elif name not in ("telegram", "experiment"):
            others.append(name)
    return requests, others


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def start(name="remu", *more):
    path = f"{work}/{name}"
    process = subprocess.Popen([f"{TOOLS}/remu", "--daemon", f"unix:{path}", "--dataset",
                                "generate:2", *more], stderr=open(f"{work}/{name}.log", "w"))
    wait_for(lambda: listens(path))
    return process, path


def listens(path):
    with socket.socket(socket.AF_UNIX) as s:
        return not s.connect_ex(path)


def children(process):
    try:
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            return [int(p) for p in file.read().split()]
    except OSError:
        return []


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


silent = socket.create_server(("127.0.0.1", 0))  # takes links, and says nothing
nowhere = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
nowhere.bind(("127.0.0.1", 0))

SETTINGS = (f"<transport>jungfrau</transport><to>127.0.0.1:{nowhere.getsockname()[1]}</to>"
            "<rate>20</rate><split>1</split>")


def configure(settings=SETTINGS, more='orphan="finish"'):
    return f'<configure experiment="e" run="7" {more}><detector>{settings}</detector></configure>'


EXAMPLES = {
    "hello": '<hello name="t" role="leader"/>',
    "configure": configure(),
    "set-rate": "<set-rate>30</set-rate>",
    "write-register": '<write-register fpga="9" window="none" offset="0" value="0"/>',
}
SAID = {
    "done": '<done state="idle"/>',
    "error": '<error code="state" state="idle">no</error>',
    "capabilities": '<capabilities role="detector" program="p" machine="m" state="idle"/>',
    "status": '<status state="idle"/>',
    "log": "<log>line</log>",
    "full": '<full lag="1" slots="1"/>',
    "relieved": '<relieved lag="1" slots="1"/>',
    "ended": '<ended experiment="e" run="1" outcome="done"/>',
}


def example(name):
    return EXAMPLES.get(name, SAID.get(name, f"<{name}/>"))


class Rig:
    """A daemon with a leader and an observer."""

    def __init__(self, name="remu"):
        self.process, self.path = start(name)
        self.leader = Daemon(self.path)
        self.observer = Daemon(self.path)
        self.leader.ask('<hello name="leader" role="leader"/>')
        self.observer.ask('<hello name="observer" role="observer"/>')
        self.stopped = []

    def state(self):
        return self.observer.ask("<get-status/>").get("state")

    def must(self, content):
        answer = self.leader.ask(content)
        if kind(answer) == "error":
            raise RuntimeError(f"{content}: {answer.text}")
        return answer

    def hold(self):
        self.stopped = children(self.process)
        for pid in self.stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def stop(self):
        """The answer to stop, of whatever it does; and what became of what was asked for before."""
        self.leader.unasked.clear()
        number = self.leader.send("<stop/>")
        wait_for(lambda: self.state() in ("stopping", "ended"))
        for pid in self.stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        answer = self.leader.answer(number)
        return answer, [e.get("code") for e in self.leader.unasked if kind(e) == "error"]

    def reset(self):
        """Idle, whatever it was."""
        for pid in self.stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.stopped = []
        silent.settimeout(0)
        try:
            while True:
                silent.accept()[0].close()
        except BlockingIOError:
            pass
        if self.state() == "arming":  # it would wait for all receivers of a detector to come
            self.must("<stop/>")
        wait_for(lambda: not self.state().endswith("ing") or self.state() == "running")
        if self.state() in ("running", "paused", "armed"):
            self.must("<stop/>")
        if self.state() != "idle":
            self.must("<reset/>")

    def configure_slowly(self):
        """The program is stopped before it has looked at its settings; it may be faster than we."""
        while not self.stopped or self.state() != "configuring":
            self.reset()
            self.leader.send(configure())
            wait_for(lambda: self.state() != "idle")
            self.hold()

    def reach(self, state):
        self.reset()
        if state == "configuring":
            self.configure_slowly()
        elif state == "arming":
            self.must(configure("<transport>udp</transport>"
                                f"<to>127.0.0.1:{silent.getsockname()[1]}</to>"))
            self.leader.send("<arm/>")
        elif state != "idle":
            self.must(configure())
        if state in ("armed", "running", "pausing", "paused", "stopping", "ended"):
            self.must("<arm/>")
        if state in ("running", "pausing", "paused", "stopping", "ended"):
            self.must("<start/>")
        if state == "paused":
            self.must("<pause/>")
        if state in ("pausing", "stopping"):
            self.hold()
            self.leader.send("<pause/>" if state == "pausing" else "<stop/>")
        if state == "ended":
            self.must("<stop/>")
        if not wait_for(lambda: self.state() == state):
            self.leader.ask("<get-status/>")
            said = [ET.tostring(e, "unicode") for e in self.leader.unasked]
            raise RuntimeError(f"{state} is not reached, but {self.state()}: {said[-4:]}")

    def end(self):
        self.reset()
        self.process.terminate()
        return self.process.wait()


def every_telegram_in_every_state():
    requests, others = table()
    states = requests["hello"][0]
    rig = Rig()
    tried = 0
    for state in states:
        rig.reach(state)
        wrong = []
        for name, (allowed, leads) in requests.items():
            if leads:
                answer = rig.observer.ask(example(name))
                if (kind(answer), answer.get("code")) != ("error", "leader"):
                    wrong.append(f"{name} of an observer: {kind(answer)}")
                tried += 1
            if state not in allowed:
                answer = rig.leader.ask(example(name))
                if (kind(answer), answer.get("code"), answer.get("state")) != \
                        ("error", "state", state):
                    wrong.append(f"{name}: {ET.tostring(answer)}")
                tried += 1
        for name in others:
            answer = rig.leader.ask(example(name))
            if (kind(answer), answer.get("code")) != ("error", "unable"):
                wrong.append(f"{name}: {ET.tostring(answer)}")
            tried += 1
        same(f"not-error: {state}: a telegram that is not allowed is an error", wrong, [])
        same(f"nothing-changed: {state}: and nothing has changed", rig.state(), state)
    after = {"configure": "configured", "arm": "armed", "start": "running", "pause": "paused",
             "resume": "running", "stop": "ended", "reset": "idle"}
    for name, (allowed, leads) in requests.items():
        if name == "bye":
            continue
        wrong = []
        for state in allowed:
            rig.reach(state)
            if name == "stop":
                answer, before = rig.stop()
                if before != (["failed"] if state in ("configuring", "arming", "pausing") else []):
                    wrong.append(f"{state}: before that the client receives {before}")
            else:
                answer = rig.leader.ask(example(name))
            expected = {"hello": "capabilities", "get-capabilities": "capabilities",
                        "get-status": "status", "write-register": "error"}.get(name, "done")
            if kind(answer) != expected or (expected == "error" and answer.get("code") != "unable"):
                wrong.append(f"{state}: {ET.tostring(answer)}")
            if rig.state() != after.get(name, state):
                wrong.append(f"{state}: it is {rig.state()} then")
            tried += 1
        same(f"should: {name}: where it may be said it does what it should", wrong, [])
    ok(tried > 150, f"tried: {tried} were tried")
    same("daemon-ends-well: the daemon ends well", rig.end(), 0)


def what_is_no_telegram():
    rig = Rig()
    rig.reach("armed")
    head = f'<telegram xmlns="{SPACE}" version="1.0" id="5">'
    entities = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12))
    nothing = {
        "no XML": b"hello",
        "nothing but a byte": b"\0",
        "another name space": b'<telegram version="1.0" id="5"><arm/></telegram>',
        "another version": head.replace("1.0", "2.0").encode() + b"<get-status/></telegram>",
        "no id": head.replace(' id="5"', "").encode() + b"<get-status/></telegram>",
        "two at once": head.encode() + b"<get-status/><get-status/></telegram>",
        "an unknown one": head.encode() + b"<explode/></telegram>",
        "an unknown attribute": head.encode() + b'<arm now="1"/></telegram>',
        "its end is missing": head.encode() + b"<arm/>",
        "entities that grow": b'<!DOCTYPE t [<!ENTITY e0 "lol">' + entities.encode() + b"]>" +
                              head.encode() + b"<log>&e11;</log></telegram>",
        "a file of this machine": b'<!DOCTYPE t [<!ENTITY f SYSTEM "file:///etc/passwd">]>' +
                                  head.encode() + b"<log>&f;</log></telegram>",
        "UTF-16": ('<?xml version="1.0" encoding="UTF-16"?>' + head +
                   "<get-status/></telegram>").encode("utf-16"),
        "elements in elements": head.encode() +
                                b'<configure experiment="e" run="1"><detector>' +
                                b'<x xmlns="urn:x">' * 5000 + b"</x>" * 5000 +
                                b"</detector></configure></telegram>",
        "an unknown setting": head.encode() + b'<configure experiment="e" run="1"><detector>'
                                  b"<led>3</led></detector></configure></telegram>",
        "a line's end in a setting": head.encode() + b'<configure experiment="e" run="1">'
                                     b"<detector><to>a&#10;b</to></detector></configure></telegram>",
    }
    for title, text in nothing.items():
        rig.leader.send_bytes(text)
        answer = rig.leader.receive()
        same(f"error: {title}: an error", (kind(answer[0]), answer[0].get("code")), ("error", "syntax"))
    same("error/nothing-changed: and nothing has changed", rig.state(), "armed")
    rig.leader.send_bytes(head.encode() + b"<get-status/></telegram>")
    rig.leader.send_bytes(head.encode() + b"<get-status/></telegram>")
    same("twice-same/two-answers: twice the same: two answers", [rig.leader.receive().get("re") for _ in range(2)], ["5", "5"])
    for title, data in {"a length of 0": struct.pack(">I", 0), "a length of 4 GiB": b"\xff" * 4,
                        "2 MiB": struct.pack(">I", 2 << 20) + b" " * 4096}.items():
        link = Daemon(rig.path, 20)
        link.socket.sendall(data)
        try:
            link.receive()
            ended = False
        except (EOFError, ConnectionError):
            ended = True
        ok(ended, f"link-ends: {title}: the link ends")
    for size in (1, 3, 4, 30):
        link = Daemon(rig.path)
        link.socket.sendall((struct.pack(">I", 200) + b"<" * 200)[:size])
        link.socket.close()
    same("links-end-middle: links that end in the middle change nothing", rig.state(), "armed")
    crowd = [Daemon(rig.path, 20) for _ in range(40)]
    same("managers-once-change: many managers at once change nothing", rig.state(), "armed")
    for link in crowd:
        link.socket.close()
    deaf = Daemon(rig.path)
    deaf.ask('<hello name="deaf" role="observer"/>')
    deaf.socket.settimeout(5)
    try:
        for _ in range(100000):
            deaf.send("<get-capabilities/>")
        ended = False
    except (TimeoutError, ConnectionError):
        ended = True
    ok(ended, "asks-not-read: a client that asks and does not read is not served for ever")
    same("daemon-lives: and the daemon lives", rig.state(), "armed")
    with open(f"/proc/{rig.process.pid}/status") as file:
        peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    most = 200000 * (5 if "sanitize" in TOOLS else 1)
    ok(peak < most, f"not-grown/kib: and has not grown: {peak} KiB")
    deaf.socket.close()
    same("ends-well: it ends well", rig.end(), 0)


def stopped(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "T"


def hello(link):
    """The answer to hello."""
    try:
        return kind(link.ask('<hello name="hello" role="observer"/>'))
    except (EOFError, OSError) as e:
        return repr(e)


def crowds():
    """Links that send much, or nothing, and others meanwhile: order, not time."""
    port = socket.create_server(("127.0.0.1", 0)).getsockname()[1]
    process, path = start("crowd", "--daemon", f"plain:127.0.0.1:{port}")
    many = "<hello " + " ".join(f'a{i}="{i % 10}"' for i in range(60000)) + "/>"
    stranger = Daemon(path)
    try:
        answer = stranger.ask_nothing(many)
    except (EOFError, OSError):
        answer = None
    ok(answer is None, "long/link-ends: before hello the link ends")
    stranger = Daemon(path)
    stranger.ask('<hello name="o" role="observer"/>')
    answer = stranger.ask_nothing(many)
    same("long/refused: 60000 attributes are refused by their bytes", (answer.get("code"), "bytes" in answer.text),
         ("leader", True))
    leader = Daemon(path)
    leader.ask('<hello name="leader" role="leader"/>')
    answer = leader.ask_nothing(many)
    same("many/refused: and of who leads before they are parsed", (answer.get("code"), answer.text.startswith("byte "),
                                                                    "attributes" in answer.text), ("syntax", True, True))
    leader.ask("<bye/>")
    observers = [Daemon(path) for _ in range(4)]
    for o in observers:
        o.ask('<hello name="o" role="observer"/>')
    process.send_signal(signal.SIGSTOP)
    wait_for(lambda: stopped(process.pid))
    for o in observers:
        for _ in range(16):
            o.send(many[:600] + "/>")
            o.send("<get-status/>")
    manager = Daemon(path)
    number = manager.send('<hello name="m" role="leader"/>')
    process.send_signal(signal.SIGCONT)
    same("turns/answered: a manager comes behind them", kind(manager.answer(number)), "capabilities")
    before = [sum(1 for _ in range(32) if (a := o.receive()[0]).tag.endswith("status") and "leader" not in a.attrib)
              for o in observers]
    ok(max(before) <= 2, f"turns: and is served before all that they asked: {before} of 16")

    # links in the order in which they came: where the last one is answered, all of them were taken
    first = Daemon(path)
    silent = [Daemon(path) for _ in range(100)]
    Daemon(path).ask('<hello name="last" role="observer"/>')
    same("silent: 100 silent links do not keep one from saying hello", hello(first), "capabilities")

    def plain(source):
        return Daemon(("127.0.0.1", port), 60, (source, 0))

    first = plain("127.0.0.2")
    silent += [plain("127.0.0.1") for _ in range(300)]
    plain("127.0.0.1").ask('<hello name="last" role="observer"/>')
    same("fair: 300 of one machine do not push out one of another", hello(first), "capabilities")
    same("leads: the leader stays", manager.ask("<get-status/>").get("leader"), "m")
    process.terminate()
    same("crowds/ends-well: it ends well", process.wait(), 0)


def two_managers():
    rig = Rig()
    rig.reach("running")
    other = Daemon(rig.path)
    same("another-leader-refused: another leader is refused",
         other.ask('<hello name="other" role="leader" experiment="e" take-over="true"/>').get("code"),
         "busy")
    same("nothing: and its telegrams are refused", other.ask("<stop/>").get("code"), "leader")
    rig.leader.socket.close()
    ok(wait_for(lambda: rig.observer.ask("<get-status/>").get("leader") is None),
       "leader-link: the leader's link has gone")
    same("not-take-refused: a leader that does not take over is refused", other.ask('<hello name="other" role="leader"/>').get("code"),
         "busy")
    same("another-experiment: nor of another experiment", other.ask(
        '<hello name="other" role="leader" experiment="f" take-over="true"/>').get("code"), "busy")
    answer = other.ask('<hello name="other" role="leader" experiment="e" take-over="true"/>')
    same("takes-leads: a manager that takes over leads", (kind(answer), answer.get("experiment"), answer.get("run")),
         ("capabilities", "e", "7"))
    same("transports: a detector sends by all transports of the schema", [e.text for e in answer if kind(e) == "transport"],
         [e.get("value") for e in ET.parse(SCHEMA).find(f".//{XS}simpleType[@name='transport']").iter(XS + "enumeration")])
    same("end: and can end it", kind(other.ask("<stop/>")), "done")
    rig.leader = other
    same("account: it receives the account of the run", other.wait("ended").get("outcome"), "stopped")
    rig.reach("ended")
    other.socket.close()
    late = Daemon(rig.path)
    late.ask('<hello name="late" role="leader"/>')
    same("late-hears: a late manager receives it, too", late.wait("ended").get("outcome"), "stopped")
    rig.leader = late
    kept = configure(SETTINGS + '<n:note xmlns:n="urn:notes">of ours</n:note>')
    rig.must(kept)
    status = rig.leader.ask("<get-status/>")
    same("others-know-kept: elements of other name spaces are kept", [e.text for e in status.iter("{urn:notes}note")], ["of ours"])
    same("others/ends-well: it ends well", rig.end(), 0)


def those_who_die():
    rig = Rig()
    stuck = Rig("stuck")
    stuck.reach("pausing")
    number = stuck.leader.send("<stop/>")
    for orphan, state in (("stop", "ended"), ("finish", "running")):
        rig.reset()
        rig.must(configure(more=f'orphan="{orphan}"'))
        rig.must("<arm/>")
        rig.must("<start/>")
        rig.leader.socket.close()
        ok(wait_for(lambda: "leader" not in rig.observer.ask("<get-status/>").attrib), "manager-dies: the manager dies")
        if state == "ended":
            ok(wait_for(lambda: rig.state() == state, 40), f"orphan/run: orphan {orphan}: the run is {state}")
        else:
            # the daemon reports it when no leader has come
            ok(wait_for(lambda: "goes on to its end" in open(f"{work}/remu.log").read(), 40) and
               rig.state() == state, f"orphan/run-2: orphan {orphan}: the run is {state}")
        rig.leader = Daemon(rig.path)
        rig.leader.ask('<hello name="next" role="leader" experiment="e" take-over="true"/>')
    same("not-end-stopped: a program that does not end after stop is killed", (kind(stuck.leader.answer(number)),
                                                         stuck.leader.wait("ended").get("outcome")),
         ("done", "killed"))
    same("not/daemon-ends-well: and its daemon ends well", stuck.end(), 0)
    for kill in (signal.SIGKILL, signal.SIGSEGV):
        rig.reach("running")
        rig.leader.unasked.clear()
        child = children(rig.process)[0]
        os.kill(child, kill)
        ended = rig.leader.wait("ended")
        # the address sanitizer makes an exit of it
        told = "killed" if kill == signal.SIGKILL or "sanitize" not in TOOLS else "failed"
        same(f"child-dies-signal: a child that dies of signal {int(kill)} is a telegram", ended.get("outcome"), told)
        same("daemon-takes-next: and the daemon takes the next run", kind(rig.must(configure())), "done")
    rig.reach("running")
    child = children(rig.process)[0]
    rig.process.kill()
    rig.process.wait()
    ok(wait_for(lambda: gone(child)), "daemon-killed-leaves: a daemon that is killed leaves no child")
    process, path = start()
    ok(process.poll() is None and kind(Daemon(path).ask('<hello name="t" role="leader"/>')) ==
       "capabilities", "next-one-begins: and the next one begins where it listened")
    link = Daemon(path)
    link.ask('<hello name="x" role="observer"/>')
    process.terminate()
    same("next/ends-well: it ends well", process.wait(), 0)
    ok(not os.path.exists(path), "takes-socket-away: and takes its socket away")


every_telegram_in_every_state()
what_is_no_telegram()
crowds()
two_managers()
those_who_die()
subprocess.run(["rm", "-rf", work], check=True)
print(f"1..{count}")
sys.exit(bad != 0)
