#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=all seconds=50
"""A hostile member of the group tries what security.rst and privileges.rst promise that he cannot do. TAP.

He tries to stop the stream of another user, to keep root's tools from a board, to take names and places of files before
root does, and to bring raw bytes to root's terminal. What owner_test, claim_test and foreign_names.sh try is not here.
"""
import ctypes
import errno
import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unicodedata

OWNER, MEMBER, GROUP = 60001, 60002, 60009
SLOW = float(os.environ.get("RASHPA_SLOW", "1"))
EVIL = "\x1b]2;X\x07\x9b\"',\\\n"
os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
tests = bad = 0


def ok(good, title, why=""):
    global tests, bad
    tests += 1
    if not good:
        bad = 1
        for line in str(why).split("\n"):
            print("#", ascii(line))
    print("ok" if good else "not ok", tests, "-", title, flush=True)


def wait_for(seconds, condition):
    end = time.monotonic() + seconds * SLOW
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def run(*words, user=0, **more):
    who = {"user": user, "group": user, "extra_groups": [GROUP]} if user else {}
    return subprocess.run(words, capture_output=True, timeout=60 * SLOW, check=False, **who, **more)


def shown(done):
    return (done.stdout + done.stderr).decode("utf-8", "surrogateescape")


def node(name):
    return "/dev/rashpa/" + name


# ---- calls: struct rashpa_head, and what follows it

def call(fd, number, layout, *fields):
    """An answer of the driver: its fields, or the errno's name and the sentence."""
    reason = ctypes.create_string_buffer(256)
    size = struct.calcsize("<IIQII" + layout)
    arg = bytearray(struct.pack("<IIQII" + layout, size, fields[0], ctypes.addressof(reason), 256, 0, *fields[1:]))
    try:
        fcntl.ioctl(fd, 0xE700 | number, arg)
    except OSError as e:
        return errno.errorcode[e.errno], reason.value.decode("utf-8", "replace")
    return struct.unpack("<" + layout, arg[24:])


def alloc(name="", length=1 << 20):
    fd = os.open(node("memory"), os.O_RDWR)
    answer = call(fd, 0x00, "QQIIIi64sIiQIIiI", 0, length, 0, 0, 2, 0, 0, name.encode(), 0, 0, 0, 0, 0, 0, 0)
    os.close(fd)
    return answer if isinstance(answer[0], str) else answer[8]


def make_map(fpga, memory, flags=0, segment=0):
    """(fd, id, bytes of the table), or the error."""
    answer = call(fpga, 0x24, "iIQQQQQiIQIIQQiI", flags, memory, 0, 0, 0, segment, *[0] * 11)
    return answer if isinstance(answer[0], str) else (answer[7], answer[11], answer[12])


def program(a_map, first, flags=0):
    answer = call(a_map, 0x30, "IIQ", flags, first, 0, 0)
    return answer[0] if isinstance(answer[0], str) else "yes"


def quiesce(fpga, a_map=0):
    answer = call(fpga, 0x25, "IIQ", 1 if a_map else 0, a_map, 0, 0)
    return answer[0] if isinstance(answer[0], str) else "yes"


def engines(fpga):
    """name, flags, first entry, entries of each"""
    index, found = 0, []
    while True:
        answer = call(fpga, 0x27, "II32sIIIIQQ", 0, index, 0, b"", *[0] * 6)
        if isinstance(answer[0], str):
            return found
        found.append((answer[2].split(b"\0")[0].decode(), answer[1], answer[3], answer[4]))
        index += 1


def stops(fpga):
    """How often the function was stopped."""
    return call(fpga, 0x20, "IIIIIIIIiIIIIIQQIIQ", 0, *[0] * 19)[14]


# ---- a process of another user

class Person:
    """Runs functions in a process of this user, and keeps what they hold until end()."""

    def __init__(self, user, groups=(GROUP,), name=None):
        self.ask, ask = os.pipe()[::-1]
        answer, self.answer = os.pipe()[::-1]
        self.pid = os.fork()
        if self.pid:
            os.close(ask)
            os.close(answer)
            self.reader = os.fdopen(self.answer)
            return
        os.close(self.ask)
        os.setgroups(groups)
        os.setgid(user)
        os.setuid(user)
        if name:
            ctypes.CDLL(None).prctl(15, name.encode("utf-8", "surrogateescape"), 0, 0, 0)
        for line in os.fdopen(ask):
            try:
                said = json.dumps(eval(json.loads(line), globals()))     # pylint: disable=eval-used
            except OSError as e:
                said = json.dumps(errno.errorcode[e.errno])
            except BaseException as e:
                said = json.dumps(repr(e))
            os.write(answer, said.encode() + b"\n")
        os._exit(0)

    def do(self, text):
        os.write(self.ask, json.dumps(text).encode() + b"\n")
        line = self.reader.readline()
        return json.loads(line) if line else "died"

    def end(self, how=signal.SIGKILL):
        os.kill(self.pid, how)
        os.waitpid(self.pid, 0)
        os.close(self.ask)
        self.reader.close()


class Stream:
    """The stream of OWNER through the board, into a buffer of OWNER."""

    def __init__(self, fpga):
        self.name = "theirs"
        run("rashpactl", "buffer", "create", "--owner", str(OWNER), "--mode", "0600", self.name, "16M")
        self.log = tempfile.TemporaryFile()
        self.remu = subprocess.Popen(
            ["setpriv", "--reuid", str(OWNER), "--regid", str(OWNER), "--groups", str(GROUP),
             "--inh-caps", "+sys_rawio", "--ambient-caps", "+sys_rawio", "remu", "--buffer", self.name, "--fpga", fpga, "--dataset", "generate:4", "--geometry", "128x64",
             "--policy", "overwrite", "--timeout", "60"], stdout=self.log, stderr=self.log)

    def stacks(self):
        done = run("rashpactl", "--json", "top", "--count", "1", "--interval", "0.01", self.name)
        streams = json.loads(done.stdout or "{}").get("streams", [])
        return streams[0]["stacks"] if streams and streams[0]["state"] == "running" else -1

    def goes_on(self):
        before = self.stacks()
        return before >= 0 and wait_for(30, lambda: self.stacks() > before)

    def said(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def begins(self):
        wait_for(60, lambda: self.remu.poll() is not None or self.stacks() > 0)
        return self.stacks() > 0

    def end(self):
        self.remu.send_signal(signal.SIGINT)
        status = self.remu.wait()
        run("rashpactl", "buffer", "remove", self.name)
        return status, self.said()


def stop_a_stream(fpga):
    stream = Stream(fpga)
    ok(stream.begins(), "stop/stream: a user streams", stream.said())
    board = os.open(node(fpga), os.O_RDWR)
    before = stops(board)
    listed = json.loads(run("rashpactl", "--json", "map", "list").stdout)
    theirs = [m["id"] for m in listed]
    ok(theirs, "stop/theirs-listed: his map is listed", listed)
    has = engines(board)

    he = Person(MEMBER)
    he.do("[f := os.open(node('%s'), os.O_RDWR), b := alloc()]" % fpga)
    tries = {
        "quiesce": ("EPERM", "quiesce(f)"),
        "reset": ("EPERM", "call(f, 0x26, '', 0)[0]"),
        "end": (["EPERM"] * len(theirs), "[quiesce(f, i) for i in %s]" % theirs),
        "make": ("yes", "[m := make_map(f, b), n := make_map(f, b, 0, 4096)] and 'yes'"),
    }
    edges = sorted({x for e in has if e[3] for x in (e[2], e[2] + 1, e[2] + e[3] - 1, e[2] + e[3])})
    for title, (expected, text) in tries.items():
        said = he.do(text)
        ok(said == expected, "stop/%s: %s" % (title, expected), said)
    ok(stream.goes_on(), "stop/tried: the stream goes on")
    # every entry of the table, also several at once: only those of free engines
    said = he.do("[program(x, e) for e in %s for x in (m[0], n[0])]" % edges)
    ok(set(said) <= {"yes", "EPERM", "EBUSY", "ERANGE"}, "stop/entries: %s" % sorted(set(said)), said)
    ok("EBUSY" in said, "stop/theirs: an entry of the other user is busy", said)
    ok(stream.goes_on(), "stop/programmed: the stream goes on")
    he.do("[os.close(m[0]), os.close(n[0])]")
    ok(stream.goes_on(), "stop/closed: the stream goes on")
    he.do("[program(make_map(f, b)[0], e) for e in %s]" % edges)
    he.end()
    ok(stream.goes_on(), "stop/killed: the stream goes on after he was killed with programmed maps")
    ok(stops(board) == before, "stop/whole: nothing has stopped the whole board", (before, stops(board)))
    for words in (["map", "end", str(theirs[0])], ["quiesce", fpga], ["reset", fpga], ["unbind", fpga]):
        done = run("rashpactl", *words, user=MEMBER)
        ok(done.returncode and stream.goes_on(), "stop/rashpactl-%s: refused, the stream goes on" % words[0], shown(done))
    status, log = stream.end()
    ok(status == 0, "stop/end: it ends well", log)
    os.close(board)
    for m in json.loads(run("rashpactl", "--json", "map", "list").stdout):
        run("rashpactl", "map", "release", str(m["id"]))


LOCKS = {
    "flock": "fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)",
    "flock-shared": "fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)",
    "fcntl": "fcntl.lockf(f, fcntl.LOCK_SH | fcntl.LOCK_NB)",
    "fcntl-write": "fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)",
    "ofd": "fcntl.fcntl(f, 37, struct.pack('hhqqi', 0, 0, 0, 0, 0)) and 0",
    "ofd-write": "fcntl.fcntl(f, 37, struct.pack('hhqqi', 1, 0, 0, 0, 0)) and 0",
    "lease": "fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_RDLCK)",
}


def root_works(fpga):
    """What of root's tools fails on this board."""
    failed = []
    for words in (["remu", "--buffer", "roots", "--fpga", fpga, "--dataset", "generate:2", "--geometry", "64x64",
                   "--images", "8", "--policy", "overwrite", "--timeout", "30"],
                  ["rashpactl", "map", "make", "roots", fpga],
                  ["rashpactl", "map", "explain", "--for", fpga, "roots"]):
        done = run(*words)
        if done.returncode or b"not made" in done.stdout:
            failed.append((words[:3], done.returncode, shown(done)))
    return failed


def block_tools(fpga):
    run("rashpactl", "buffer", "create", "--mode", "0660", "roots", "16M")
    ok(not root_works(fpga), "block/free: root's tools work on a free board", root_works(fpga))
    he = Person(MEMBER)
    for where in (fpga, "memory", "buffer/roots"):
        he.do("(f := os.open(node('%s'), os.O_RDONLY))" % where)
        for title, lock in LOCKS.items():
            said = he.do(lock)
            if (where == fpga and title.startswith("flock")) or (where.startswith("buffer") and title in ("fcntl", "ofd")):
                ok(said == "EBADF", "block/%s: no %s by a reader" % (title, title), said)
        failed = root_works(fpga)
        ok(not failed, "block/reader-%s: root's tools work" % where.split("/")[0], failed)
        he.do("os.close(f)")
    he.do("[f := os.open(node('%s'), os.O_RDWR), b := alloc()]" % fpga)
    said = [he.do(LOCKS[t]) for t in ("fcntl-write", "ofd-write", "lease")]
    failed = root_works(fpga)
    ok(not failed, "block/writer: other locks than flock do not block", (said, failed))
    he.do("(m := [make_map(f, b) for i in range(50)])")
    failed = root_works(fpga)
    ok(not failed, "block/idle: maps that were never programmed do not block", failed)
    he.end()

    # A refusal names the holder and the remedy. Each remedy is applied, to check the sentence.
    he = Person(MEMBER, name="he" + EVIL[:9])
    he.do("[f := os.open(node('%s'), os.O_RDWR), b := alloc()]" % fpga)
    he.do(LOCKS["flock"])
    blocked("claim", fpga, he)
    he.end()
    # ... by a process that has the lock from one that has ended
    he = Person(MEMBER)
    he.do("(f := os.open(node('%s'), os.O_RDWR))" % fpga)
    he.do(LOCKS["flock"])
    child = he.do("os.fork() or [signal.pause()]")
    he.end()
    blocked("inherited", fpga, None, child)
    try:
        os.kill(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    wait_for(20, lambda: not root_works(fpga))
    he = Person(MEMBER)
    he.do("[f := os.open(node('%s'), os.O_RDWR), b := alloc()]" % fpga)
    said = he.do("(m := make_map(f, b)) and [program(m[0], e[2]) for e in engines(f) if e[3]][:1]")
    ok(said == ["yes"], "block/programmed-there: his map is programmed", said)
    blocked("programmed", fpga, he)
    he.end()
    run("rashpactl", "buffer", "remove", "roots")


def blocked(title, fpga, he, pid=None):
    """Root is refused; the commands of the sentences end that."""
    failed = root_works(fpga)
    text = "\n".join(f[2] for f in failed)
    ends = sorted(set(re.findall(r"kill \d+|rashpactl map release \d+", text)))
    pid = pid or (he and he.pid)
    ok(failed and ends, "block/%s-named: the sentences name what ends it" % title, text)
    ok(not any(e.startswith("kill") for e in ends) or "kill %d" % pid in ends,
       "block/%s-holder: it is the holder" % title, (ends, pid))
    ok(not raw(text.encode()), "block/%s-raw: sentences have no raw bytes" % title, text)
    for words in ends:
        subprocess.run(words.split(), check=False, capture_output=True)
    ok(wait_for(20, lambda: not root_works(fpga)), "block/%s-ended: afterwards root's tools work" % title, (ends, root_works(fpga)))


def take_names(fpga):
    """Names that he takes before root does."""
    del fpga
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(folder + "/buffers.d")
        with open(folder + "/buffers.d/a.conf", "w", encoding="ascii") as f:
            json.dump({"buffers": [{"name": "ring9", "size": "1M", "mode": "0600"}]}, f)
        apply = ["rashpactl", "apply"]
        create = ["rashpactl", "buffer", "create", "--exist-ok", "--mode", "0600", "ring9", "1M"]
        config = {**os.environ, "RASHPA_CONFIG": folder}
        run("rashpactl", "buffer", "create", "--mode", "0666", "ring9", "1M", user=MEMBER)
        for words in (apply, create):
            done = run(*words, env=config)
            ok(done.returncode == 1 and str(MEMBER) in shown(done),
               "names/%s: his buffer is not taken for root's" % words[1], shown(done))
        done = run(*create[:-2], "--owner", str(MEMBER), *create[-2:])
        ok(done.returncode == 0, "names/asked: it is, if it shall be his", shown(done))
        run("rashpactl", "buffer", "remove", "ring9")
        done = run(*apply, env=config), run(*apply, env=config)
        ok([d.returncode for d in done] == [0, 0], "names/root: root's own is taken", list(map(shown, done)))
        run("rashpactl", "buffer", "remove", "ring9")
        # a pipe and a link in a folder of his, from which root reads, and where root writes
        os.mkfifo(folder + "/raw1.bin")
        remu = subprocess.Popen(["remu", "--transport", "udp", "--to", "127.0.0.1:9", "--dataset", folder],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ok(wait_for(30, lambda: remu.poll() is not None), "names/pipe: a pipe among images blocks no program")
        remu.kill()
        ok(remu.wait() == 1, "names/pipe-refused: it is an error")
        os.chown(folder, MEMBER, GROUP)
        with open(folder + "/roots", "w", encoding="ascii") as f:
            f.write("root's")
        run("ln", "-s", folder + "/roots", folder + "/x.prom.new", user=MEMBER)
        done = run("rashpactl", "top", "--count", "1", "--interval", "0.01", "--prometheus=" + folder + "/x.prom")
        with open(folder + "/roots", encoding="ascii") as f:
            left = f.read()
        ok(left == "root's" and not done.returncode, "names/metrics: a link does not lead to another file", (left, shown(done)))


# ---- what reaches a terminal

def raw(data):
    """What of the output a terminal could take for more than characters."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        return str(e)
    return sorted({hex(ord(c)) for c in text
                   if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")})


def clean(title, *words, **more):
    """Texts and JSON of a tool: no raw bytes, one object, no line that the name begins."""
    done = run(*words, **more)
    both = done.stdout + done.stderr
    wrong = raw(both)
    for data in [done.stdout] if done.stdout[:1] == b"[" or done.stdout[:2] == b"{\n" else done.stdout.splitlines():
        try:
            "--json" in words and json.loads(data)
        except ValueError as e:
            wrong = "JSON: %s" % e
    if done.returncode < 0:
        wrong = "signal %d" % -done.returncode
    seen = b"]2;X" in both
    title = ascii(title)[1:-1]
    ok(not wrong, "raw/%s: %s" % (title, "escaped" if seen else "not shown"), (wrong, both[:3000]))
    return both


def bring_bytes(fpga):
    he = Person(MEMBER, name="\x1b]2;X\x07\udc9b\"\n")
    he.do("[f := os.open(node('%s'), os.O_RDWR), b := alloc('mine'), m := make_map(f, alloc()),"
          "c := call(f, 0x08, 'IIiIQQQ', 0, *[0] * 7)]" % fpga)
    said = he.do("program(m[0], [e[2] for e in engines(f) if e[3]][0])")
    ok(said == "yes", "raw/name-there: a process with such a name has a map", said)
    for words in (["list"], ["map", "list"], ["report"], ["map", "mine", fpga], ["map", "explain", "--for", fpga, "mine"]):
        clean("name/" + "-".join(words[:2]), "rashpactl", *words)
        clean("name-json/" + "-".join(words[:2]), "rashpactl", *words, "--json")
    clean("name/remu", "remu", "--buffer", "mine", "--fpga", fpga, "--images", "1")
    he.end()

    run("rashpactl", "buffer", "remove", "mine")
    # files
    with tempfile.TemporaryDirectory(prefix=EVIL[:-1].replace("/", "")) as folder:
        os.chmod(folder, 0o755)
        name = os.path.join(folder, "x" + EVIL)
        for i, (content, words) in enumerate((
                (b"\x89HDF\r\n\x1a\n" + b"x" * 100, ["remu", "--buffer", "none", "--dataset", name]),
                (b"", ["remu", "--buffer", "none", "--dataset", name + ":/\x1b]2;X"]),
                (b"II*\0" + b"\xff" * 100, ["remu", "--buffer", "none", "--tune", "darks=" + name]),
                (b"", ["romulu", "--buffer", "none", "--check", "--dataset", folder]),
                (b"{ \"name\": \"\x1b]2;X\" ", ["rashpactl", "profile", name]),
                (b"{ \"name\": \"\\u001b]2;X\\n\", \"\\u009b]2;X\": 1, \"match\": [] }",
                 ["rashpactl", "bind", "--profile", name, fpga]),
                (b"{ \"\\u001b]2;X\": 1 }", ["romulu", "--buffer", "ours", "--pipeline", name]),
                (b"<x a='\xc2\x9b]2;X'>", ["rashpa-manager", "check", name]),
                (b"<rashpa a='\xc2\x9b]2;X'/>", ["rashpa-manager", "run", name]),
                (b"\xd4\xc3\xb2\xa1" + b"y" * 40, ["rashpa-capture-check", name]))):
            with open(os.fsencode(name), "wb") as f:
                f.write(content)
            clean("file/%d-%s" % (i, words[0]), *words)
        with open(os.path.join(os.fsencode(folder), b"\x1b]2;X.json"), "wb") as f:
            f.write(b"{")
        for kind in ("buffers.d", "boards.d"):
            os.mkdir(os.path.join(folder, kind))
            with open(os.path.join(os.fsencode(folder), kind.encode(), b"\x1b]2;X.conf"), "wb") as f:
                f.write(b"{ \"\\u001b]2;X\": 1 }")
        for words in (["list"], ["report"], ["apply", "--check"]):
            more = {**os.environ, "RASHPA_PROFILES": folder, "RASHPA_CONFIG": folder}
            clean("folder/" + words[0], "rashpactl", *words, env=more)
            clean("folder-json/" + words[0], "rashpactl", *words, "--json", env=more)


def main():
    bound = json.loads(run("rashpactl", "--json", "list").stdout)["devices"]
    bdf = next((f["bdf"] for f in bound if f.get("node")), None)
    if not bdf:
        print("1..0 # SKIP no software FPGA in this guest")
        return 4
    run("rashpactl", "unbind", bdf)  # bound by a test, maybe without a profile
    fpga = json.loads(run("rashpactl", "--json", "bind", bdf).stdout)["node"]
    nodes = {node(name): os.stat(node(name)) for name in ("memory", fpga)}
    for path in nodes:
        os.chown(path, 0, GROUP)
        os.chmod(path, 0o660)
    for part in (stop_a_stream, block_tools, take_names, bring_bytes):
        if len(sys.argv) < 2 or part.__name__ in sys.argv[1:]:
            part(fpga)
    for path, was in nodes.items():
        os.chown(path, was.st_uid, was.st_gid)
        os.chmod(path, was.st_mode & 0o777)
    print("1..%d" % tests)
    return bad


if __name__ == "__main__":
    sys.exit(main())
