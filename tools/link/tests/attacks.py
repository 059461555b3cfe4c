#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check where=root seconds=3
"""Attacks on a daemon, written from Documentation/telegrams.rst alone. After each attack a right client is answered, and the leader of the daemon still leads. TAP."""
import contextlib
import os
import random
import resource
import select
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, "tools/link/tests")
from telegram import SPACE, Daemon, kind  # noqa: E402

TOOLS = os.environ.get("RASHPA_TOOLS", "build/tools")
random.seed(int(os.environ.get("RASHPA_SEED", "1")))
resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
PATIENCE = 40  # seconds: for hangs only
count = bad = 0


def ok(good, title):
    global count, bad
    count += 1
    bad += not good
    print("ok" if good else "not ok", count, "-", title, flush=True)


def tcp(port, source="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", port), PATIENCE, (source, 0))


def frame(text):
    return struct.pack(">I", len(text)) + text


def telegram(content):
    return f'<telegram xmlns="{SPACE}" version="1.0" id="1">{content}</telegram>'.encode()


HELLO = frame(telegram('<hello name="a" role="observer"/>'))


def reset(link):
    """Closes a link without a goodbye."""
    with contextlib.suppress(OSError):
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    link.close()


def send(link, data):
    """As much as goes; a link that the other side has closed meanwhile takes nothing."""
    with contextlib.suppress(OSError):
        link.setblocking(False)
        link.send(data)


def send_all(link, data):
    with contextlib.suppress(OSError):
        link.settimeout(PATIENCE)
        link.sendall(data)


def hostile():
    """Texts that are large, deep, broken, or not what they seem."""
    detector = '<configure experiment="e" run="1"><detector>%s</detector></configure>'
    contents = [
        "<hello " + " ".join(f'a{i}="1"' for i in range(60000)) + "/>", "<hello " + " ".join(f'xmlns:a{i}="u"' for i in range(40000)) + "/>",
        detector % ("<a/>" * 200000), detector % ("<x:a xmlns:x='u'>" * 50000), detector % ("<to>a</to>" * 90000),
        f"<{'a' * 1000000}/>", f"<arm {'a' * 1000000}=''/>", "<!---->" * 140000 + "<arm/>", "&a;" * 300000, "&#1;" * 200000,
        "<log>" + "&amp;" * 200000 + "</log>", "<![CDATA[" * 100000, "<?a?>" * 200000, f"<hello name='{'a' * 1000000}' role='leader'/>",
        "<set-rate>" + "9" * 1000000 + "</set-rate>", "<hello name='a' role='observer' interval='" + "0" * 900000 + "'/>",
        "<hello " + " ".join(f'a{i}="1"' for i in range(60)) + "/>", detector % ("<a b='' b=''/>" * 500), "</telegram>" * 700,
    ]
    entities = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 50}">' for i in range(1, 9))
    texts = [telegram(c) for c in contents]
    texts += [b"<!DOCTYPE t [<!ENTITY e0 'x'>" + entities.encode() + b"]>" + telegram("<log>&e8;</log>"),
              telegram("<arm/>").decode().encode("utf-16"), telegram("<arm/>").decode().encode("utf-32"),
              b"\0" * 1000000, b"<" * 1000000, b"\xff" * 1000000, b"<a " + b"=" * 1000000, b"<a '" * 200000, b"<?xml " + b"<a b=''>" * 99999]
    # one that is right, with bytes that are not
    for _ in range(200):
        text = bytearray(telegram('<hello name="a" role="observer" interval="0"/>'))
        for _ in range(random.randrange(1, 6)):
            text[random.randrange(len(text))] = random.choice(b"<>&\"'=/ !-[]?\0\xff\x80")
        texts.append(bytes(text))
    return [t for t in texts if len(t) <= 1 << 20]


class Target:
    """A daemon with a leader."""

    def __init__(self, work):
        self.path = f"{work}/daemon"
        keys = f"{work}/keys"
        for name in "manager", "detector":
            subprocess.run(["selftests/lib/certificates.sh", keys, "ca", name], check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
        with socket.create_server(("127.0.0.1", 0)) as a, socket.create_server(("127.0.0.1", 0)) as b:
            self.plain, self.tls = a.getsockname()[1], b.getsockname()[1]
        self.process = subprocess.Popen([
            f"{TOOLS}/remu", "--daemon", f"unix:{self.path}", "--daemon", f"plain:127.0.0.1:{self.plain}", "--daemon",
            f"tls:127.0.0.1:{self.tls}", "--dataset", "generate:2", "--tls",
            f"{keys}/detector.pem,{keys}/detector.key,{keys}/ca.pem"], stderr=open(f"{work}/log", "w", encoding="utf-8"))
        self.context = ssl.create_default_context(cafile=f"{keys}/ca.pem")
        self.context.load_cert_chain(f"{keys}/manager.pem", f"{keys}/manager.key")
        until(lambda: tcp(self.tls).close())
        self.leader = Daemon(self.path, PATIENCE)
        self.leader.ask('<hello name="leader" role="leader"/>')

    def right(self, link):
        link.settimeout(PATIENCE)
        link.sendall(HELLO)
        size = struct.unpack(">I", link.recv(4, socket.MSG_WAITALL) if not isinstance(link, ssl.SSLSocket) else link.recv(4))[0]
        return b"<capabilities " in link.recv(size)

    def survives(self, title):
        try:
            good = [self.right(self.unix()), self.right(tcp(self.plain)),
                    self.right(self.context.wrap_socket(tcp(self.tls), server_hostname="detector")),
                    self.leader.ask("<get-status/>").get("leader") == "leader", self.process.poll() is None]
        except (OSError, EOFError, struct.error) as e:
            good = [False]
            print("#", repr(e))
        if not all(good):
            print("# by UNIX socket, TCP and TLS; the leader; the process:", good)
        ok(all(good), title)

    def unix(self):
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(PATIENCE)
        link.connect(self.path)
        return link

    def client_hello(self):
        into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        with contextlib.suppress(ssl.SSLWantReadError):
            self.context.wrap_bio(into, out, server_hostname="detector").do_handshake()
        return out.read()


def until(call):
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return call()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def stop(process, stopped=True):
    """Or lets it go on."""
    process.send_signal(signal.SIGSTOP if stopped else signal.SIGCONT)
    while stopped and os.waitid(os.P_PID, process.pid, os.WSTOPPED) is None:
        pass


def elsewhere(t, title, number, data, machines=1):
    """A right client of another machine, behind so many links. Turns of the daemon decide, not time: in each
    turn it answers one telegram of the leader, and shakes one hand of each machine, up to eight."""
    asked, answered = 1000, []
    listening = threading.Thread(target=lambda: answered.extend(kind(t.leader.receive()[0]) for _ in range(asked)))
    with contextlib.ExitStack() as links:
        stop(t.process)
        many = [links.enter_context(tcp(t.tls, f"127.0.1.{1 + i % machines}")) for i in range(number)]
        for link in many:
            send(link, data)
        t.leader.socket.sendall(frame(telegram("<get-status/>")) * asked)
        link = links.enter_context(tcp(t.tls, "127.0.0.2"))
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.start()
        stop(t.process, False)
        link = links.enter_context(t.context.wrap_socket(link, server_hostname="detector"))
        good = t.right(link)
        stop(t.process)
        turns, shaken = len(answered), 0
        for link in many:
            with contextlib.suppress(OSError):
                link.setblocking(False)
                shaken += link.recv(1) != b""
        stop(t.process, False)
        listening.join()
    ok(good and turns < asked // 2 and shaken < number // 2 and set(answered) == {"status"},
       f"{title}: {turns} turns, {shaken} handshakes of {number} links before a right client of another machine is answered")


def same_machine(t):
    """A right client of the machine that then opens more silent links than the daemon has places for."""
    with contextlib.ExitStack() as links:
        link = links.enter_context(t.context.wrap_socket(tcp(t.tls), server_hostname="detector", do_handshake_on_connect=False))
        link.setblocking(False)
        try:
            link.do_handshake()
            good = True
        except ssl.SSLWantReadError:
            good = bool(select.select([link], [], [], PATIENCE)[0])
        silent = [links.enter_context(tcp(t.tls)) for _ in range(300)]
        good &= silent[0].recv(1) == b""  # it was pushed out
        link.settimeout(PATIENCE)
        try:
            link.do_handshake()
            good &= t.right(link)
        except (OSError, struct.error) as e:
            print("#", repr(e))
            good = False
    ok(good, "same-machine: silent links do not push out one of their machine that shakes hands")


def attack_daemon(t):
    t.survives("begin: a daemon answers")
    same_machine(t)
    elsewhere(t, "elsewhere/silent", 3000, b"")
    elsewhere(t, "elsewhere/hello", 800, t.client_hello())
    elsewhere(t, "elsewhere/machines", 1600, t.client_hello(), 50)
    texts = hostile()
    for role in "observer", "leader":
        link = t.leader if role == "leader" else Daemon(t.path, PATIENCE)
        link.ask(f'<hello name="{role}" role="{role}"/>')
        wrong = 0
        for text in texts:
            link.send_bytes(text)
            answer = link.receive()[0]
            wrong += kind(answer) not in ("error", "capabilities")
        ok(not wrong, f"hostile/{role}: {len(texts)} hostile telegrams have an answer each")
    t.leader.ask('<hello name="leader" role="leader"/>')
    t.survives("hostile: a right manager is answered after them")
    links = []
    for text in texts[:20] * 8:
        links.append(t.unix())
        send(links[-1], frame(text))
    t.survives("at-once: and while 160 links send them")
    hello = t.client_hello()
    links = []
    for i in range(300):
        links.append(tcp(t.tls))
        send(links[-1], [b"", hello, hello[:i], b"\x16\x03\x01\xff\xff", random.randbytes(300), b"GET / HTTP/1.1\r\n\r\n"][i % 6])
    t.survives("half-open: 300 that begin with TLS, or with something else")
    for i in range(300):
        links += [tcp(t.plain), t.unix()]
        send(links[-1], HELLO[:i % len(HELLO)])
        send(links[-2], b"\0\x10\0\0" + b"x" * i)
    t.survives("slow: 600 that stop in the middle of a frame")
    large = struct.pack(">I", 1 << 20) + b"x" * 1000000
    links += [t.unix() for _ in range(300)]
    for i, link in enumerate(links[-300:]):
        threading.Thread(target=send_all, args=(link, large if i % 2 else frame(b"<a>") * 20000), daemon=True).start()
    t.survives("large: 300 that send a large frame, or many that are wrong, before hello")
    for i in range(len(HELLO) + 1):
        for link in t.unix(), tcp(t.plain), tcp(t.tls):
            send(link, HELLO[:i] if i % 2 else hello[:i])
            reset(link)
    t.survives("close: links that end in the middle")
    for link in links:
        reset(link)
    links = [t.unix() for _ in range(1000)]
    t.survives("many: 1000 links that say nothing")
    for link in links[::2]:
        send(link, random.randbytes(random.randrange(1, 4000)))
    t.survives("noise: half of these then make noise")
    observers = [t.unix() for _ in range(100)]
    for link in observers:
        send(link, HELLO + frame(telegram("<get-capabilities/>")) * 1000)
    t.survives("deaf: 100 observers that ask much and read nothing")
    for link in observers:
        send(link, frame(telegram('<hello name="thief" role="leader" take-over="true"/>')) * 100)
    t.survives("thief: and that want to lead")
    with open(f"/proc/{t.process.pid}/status", encoding="utf-8") as file:
        peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    ok(peak < 64000 * (5 if "sanitize" in TOOLS else 1), f"memory: it has not grown: {peak} KiB")
    t.process.terminate()
    ok(t.process.wait() == 0, "end: the daemon ends well")


with tempfile.TemporaryDirectory() as work:
    target = Target(work)
    try:
        attack_daemon(target)
    finally:
        target.process.kill()
print(f"1..{count}")
sys.exit(bad != 0)
