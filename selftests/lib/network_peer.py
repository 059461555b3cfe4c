#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The other end of a stream over a network, which breaks the protocol.

network_peer.py NAME [HOST:]PORT DATA [LIE]: NAME is a function below. DATA is a file with the
images that a receiver compares; it may be missing. The test checks the output.
"""
import json
import os
import socket
import struct
import sys
import threading

WIDTH, HEIGHT, IMAGES = 256, 64, 8
LINE = WIDTH * 2
LINES = HEIGHT // 2  # lines of one process: messages of an image
MAGIC = 0x53555352


class Link:
    """Messages of JSON, each after its length."""

    def __init__(self, connection):
        self.socket = connection
        self.socket.settimeout(30)

    def raw(self, data):
        self.socket.sendall(struct.pack(">I", len(data)) + data)

    def say(self, kind, **members):
        self.raw(json.dumps({"kind": kind, **members}).encode())

    def bytes(self, n):
        data = b""
        while len(data) < n:
            more = self.socket.recv(n - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def hear(self, *kinds):
        """The next message of these kinds; None: no more messages."""
        while True:
            try:
                size, = struct.unpack(">I", self.bytes(4))
                message = json.loads(self.bytes(size))
            except (EOFError, ConnectionError):
                return None
            if not kinds or message["kind"] in kinds:
                return message


def half(number, **changes):
    return {"x": 0, "y": number * LINES, "width": WIDTH, "height": LINES, "origin_x": 0,
            "origin_y": number * LINES, "first": 0xfffffff0, **changes}


def hello(**changes):
    return {"kind": "hello", "version": 1, "transport": "udp", "service": 0, "immediate": 0,
            "mtu": LINE, "message": LINE, "adjacent": 0, "paced": 1, "pixel": 2, "bunch": 1,
            "images": IMAGES, "sampling": 1, "phase": 0, "unit": 0, "dark_every": 0,
            "dataset_images": IMAGES, "dataset_sum": 0, "dataset": "data",
            "processes": [half(0), half(1)], **changes}


def connect():
    return Link(socket.create_connection(("127.0.0.1", port)))


class Detector:
    """Sends halves of images, a line in each packet."""

    def __init__(self, **changes):
        self.hello = hello(**changes)
        self.link = connect()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.link.say(**self.hello)

    def begin(self):
        self.accept = self.link.hear("accept")
        self.link.say("ready")
        self.credit = self.link.hear("go")["credit"]

    def await_credit(self, stack):
        while self.accept["first_stack"] + stack >= self.credit:
            self.credit = self.link.hear("credit")["credit"]

    def packet(self, process, number):
        region = self.hello["processes"][process]
        at = number // LINES * HEIGHT + region["origin_y"] + number % LINES
        return struct.pack("<4I", MAGIC, self.accept["token"],
                           self.accept["ends"][process]["process"],
                           (region["first"] + number) & 0xffffffff) + data[at * LINE:][:LINE]

    def send(self, process, packet, sender=None):
        to = "127.0.0.1", self.accept["ends"][process]["port"]
        (sender or self.socket).sendto(packet, to)

    def stream(self, before=lambda process, number: None):
        for image in range(IMAGES):
            self.await_credit(image)
            for number in range(image * LINES, (image + 1) * LINES):
                for process in range(len(self.hello["processes"])):
                    before(process, number)
                    self.send(process, self.packet(process, number))

    def count(self, kind, **changes):
        n = len(self.hello["processes"])
        self.link.say(kind, **{"sent": [IMAGES * LINES] * n, "images": IMAGES, **changes})

    def end(self):
        self.count("end")
        return self.link.hear("bye")


def strangers_to(detector, process, number):
    """Invalid packets that resemble the next valid one."""
    good = detector.packet(process, number)
    first = detector.hello["processes"][process]["first"]
    magic, token, owner, n = struct.unpack("<4I", good[:16])
    head, wrong = good[:16], bytes(byte ^ 0xff for byte in good[16:])

    def made(magic=magic, token=token, owner=owner, n=n):
        return struct.pack("<4I", magic, token, owner, n & 0xffffffff) + wrong

    return [b"", b"x", head[:15], head, head + wrong[:-1], head + wrong + b"x",
            head + bytes(65000), head + wrong[:1], bytes(528), b"\xff" * 528,
            made(magic=magic ^ 1), made(token=token ^ 1), made(token=0), made(token=0xffffffff),
            made(token=token ^ 0x80000000), made(owner=owner ^ 1), made(owner=2),
            made(owner=0xffffffff), made(n=first - 1), made(n=first - 1000),
            made(n=first + IMAGES * LINES), made(n=n + (1 << 26) + 1), made(n=n + (1 << 31)),
            made(n=n - (1 << 31))], made()


def packets():
    """A stream with invalid packets in between. Prints the number of these, and of missing ones."""
    d = Detector()
    d.begin()
    elsewhere = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    elsewhere.bind(("127.0.0.2", 0))
    together = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    together.setsockopt(socket.IPPROTO_UDP, 103, 100)  # UDP_SEGMENT
    sent = 0

    def before(process, number):
        nonlocal sent
        if number % 16 != 0 and number != IMAGES * LINES - 1:
            return
        wrong, right = strangers_to(d, process, number)
        for packet in wrong:
            d.send(process, packet)
        d.send(process, right, elsewhere)
        d.send(process, bytes(1000), together)
        sent += len(wrong) + 1 + 10
        if number == IMAGES * LINES - 1:
            # packets again: of a slot that another stack uses now, and of this stack
            d.send(process, d.packet(process, 0)[:16] + bytes(LINE))
            d.send(process, d.packet(process, number - 1))

    d.stream(before)
    print(sent, d.end()["missing"])


def jungfrau():
    """Two modules, and packets that cannot be theirs. Prints the number of these."""
    first, images, sent = 5, 4, 0
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def packet(module, frame, number, *, row=None, column=0, kind=3, version=2):
        head = struct.pack("<QIIQQHHHHIHBB", frame, 0, number, 0, 0, module,
                           module if row is None else row, column, 0, 0, 0, kind, version)
        at = ((frame - first) % images * 2 + module) * 128 + number % 128
        return head + data[at * 8192:][:8192]

    def wrong(module, frame, number):
        good = packet(module, frame, number)
        bad = good[:48] + bytes(8192)
        far = [0, first - 1, first + images, first + (1 << 25), frame + (1 << 25),
               frame + (1 << 32), (1 << 63) + frame, (1 << 64) - 1, (1 << 57) + frame]
        return [b"", b"x", good[:47], good[:48], bad[:-1], bad + b"x", bytes(8240),
                packet(module, frame, 128), packet(module, frame, 1 << 31),
                packet(module, frame, number, row=2), packet(module, frame, number, row=65535),
                packet(module, frame, number, column=1), packet(module, frame, number, kind=5),
                packet(module, frame, number, version=1),
                *(packet(module, f, number) for f in far)]

    for frame in range(first, first + images):
        for number in range(128):
            for module in range(2):
                if number % 32 == 1 or (frame, number) == (first + images - 1, 127):
                    for one in wrong(module, frame, number):
                        out.sendto(one, ("127.0.0.1", port + module))
                        sent += 1
                out.sendto(packet(module, frame, number), ("127.0.0.1", port + module))
    print(sent)


def hellos():
    """Invalid hellos, which must be refused one by one; then a stream."""
    cases = {
        "version": hello(version=2), "immediate": hello(immediate=1),
        "transport": hello(transport="roce", processes=[
            half(0, gid="0" * 32, qpn=1, psn=1)]),
        "bunch": hello(bunch=1 << 20, processes=[half(0, y=0, width=1, height=65536)]),
        "width": hello(processes=[half(0, x=65535, width=2)]),
        "height": hello(processes=[half(0, height=1 << 32)]),
        "x": hello(processes=[half(0, x=-1)]),
        "first": hello(processes=[half(0, first=1 << 32)]),
        "regions overlap": hello(processes=[half(0), half(1), half(0, y=LINES - 1)]),
        "dataset": hello(dataset="\x1b[2J"), "phase": hello(phase=1),
        "processes": hello(processes=[half(0)] * 1025),
        "list of 1 to 1024": hello(processes=[{}] * 65537),
        "not a number": hello(mtu="512"),
        "instead of": {"kind": "end", "sent": [1], "images": 1},
    }
    kept = []
    for name, message in cases.items():
        link = connect()
        link.raw(json.dumps(message).encode())
        answer = link.hear()
        if not answer or answer["kind"] != "error" or name not in answer["text"]:
            print(name, "is not refused:", answer)
    for text in (b'{"kind":' * (1 << 17), struct.pack(">I", 1 << 31), bytes(4),
                 struct.pack(">I", 7) + b"nothing",
                 struct.pack(">I", 20) + b'{"kind":"\\u001b[2J"}'):
        link = connect()
        try:
            link.socket.sendall(text)
        except ConnectionError:
            pass
        if link.hear() is not None:
            print(text[:20], "is answered")
    for text in (struct.pack(">I", 1 << 20) + bytes(1 << 19), b"\0", struct.pack(">I", 100)):
        link = connect()
        link.socket.sendall(text)  # and no more
        kept.append(link)
    kept[0].socket.close()
    kept += [connect() for _ in range(20)]  # more than it waits for, all silent
    d = Detector()
    d.begin()
    d.stream()
    print(d.end()["missing"])


def gone():
    """One of two detectors disconnects before the other one connects, and connects again."""
    Detector(processes=[half(0)]).link.socket.close()
    both = [Detector(processes=[half(i)]) for i in range(2)]
    for d in both:
        d.accept = d.link.hear("accept", "error")
        if d.accept["kind"] == "error":
            print(d.accept["text"])
            return
    for d in both:
        d.link.say("ready")
    for d in both:
        d.credit = d.link.hear("go")["credit"]
    threads = [threading.Thread(target=d.stream) for d in both]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for d in both:
        d.count("end")
    print([d.link.hear("bye")["missing"] for d in both])


def unready():
    """Detectors that are never ready. A right one then streams."""
    wide = {"width": 32768, "height": 32768, "origin_y": 0, "y": 0}
    large = Detector(processes=[half(0, **wide)])
    answers = [large.link.hear("accept", "error")["kind"]]
    closes = Detector()
    closes.link.hear("accept")
    closes.link.socket.close()
    ends = Detector()
    ends.link.hear("accept")
    ends.count("end")
    answers.append("instead of" in ends.link.hear("error")["text"])
    silent = Detector()
    silent.link.hear("accept")
    d = Detector()
    d.begin()
    answers.append("in time" in silent.link.hear("error")["text"])
    d.stream()
    print(answers, d.end()["missing"])


def counts():
    """One false count of what was sent. Prints the answer."""
    d = Detector()
    d.begin()
    d.count("progress", sent=[10, 10], images=1)
    d.count("progress", **{
        "negative": {"sent": [-1, 10]}, "text": {"sent": ["11", "11"]},
        "less": {"sent": [10, 9]}, "more": {"sent": [10, IMAGES * LINES + 1]},
        "few": {"sent": [11]}, "images": {"images": IMAGES + 1}}[lie])
    print(d.link.hear("error", "bye"))


def twice():
    """Further messages after the end."""
    d = Detector()
    d.begin()
    d.stream()
    d.count("end")
    d.count("end", sent=[0, 0], images=0)
    d.count("progress", sent=[-1, -1], images=-1)
    print(d.link.hear("bye")["missing"])


def ask():
    """Prints the answer to a hello."""
    print(Detector().link.hear())


def flood():
    """Endless messages without meaning, from when DATA.flood exists."""
    d = Detector()
    d.begin()
    many = (struct.pack(">I", 12) + b'{"kind":"x"}') * 4096
    d.link.socket.sendall(many)
    open(f"{sys.argv[3]}.flood", "w").close()
    try:
        while True:
            d.link.socket.sendall(many)
    except OSError:
        print("over")


def receiver():
    """A receiver of a detector's packets, which ignores them."""
    listener = socket.create_server((host, port))
    link = Link(listener.accept()[0])
    asked = link.hear("hello")
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.bind((host, 0))
    ends = [{"port": sink.getsockname()[1], "process": i, "gid": "0" * 20 + "ffff0a010002",
             "qpn": 0xabcdef, "psn": 1} for i in range(len(asked["processes"]))]
    answer = {"address": 0, "key": 0, "token": 7, "slots": 2, "width": WIDTH,
              "mtu": asked["mtu"], "line_stride": LINE, "image_stride": LINE * HEIGHT,
              "slot_stride": LINE * HEIGHT, "first_stack": 0, "ends": ends}
    credit = 1 << 63
    if lie == "absurd":
        answer.update(address=(1 << 64) - 1, key=(1 << 32) - 1, slots=(1 << 31) - 1, width=65536,
                      line_stride=1 << 56, image_stride=1 << 56, slot_stride=1 << 56,
                      first_stack=1 << 48)
        credit = (1 << 64) - 1
    elif lie == "mtu":
        answer["mtu"] += 1
    elif lie in ("bye", "negative", "escape", "backwards", "flood"):
        credit = lie == "backwards"
    link.say("accept", **answer)
    if not link.hear("ready"):
        return
    link.say("go", credit=int(credit))
    if lie == "bye":
        link.say("bye", missing=0, incomplete=0)
    elif lie == "negative":
        link.say("credit", credit=-1)
    elif lie == "escape":
        link.say("error", text="\x1b[2Jred")
    elif lie == "backwards":
        for stacks in (2, 1, 0, 4, 3, 1 << 62):
            link.say("credit", credit=stacks)
    elif lie == "flood":
        many = (struct.pack(">I", 31) + b'{"kind":"credit","credit":9999}') * 4096
        heard = threading.Event()

        def listen():
            link.hear("end")
            heard.set()

        threading.Thread(target=listen).start()
        while not heard.is_set():
            link.socket.sendall(many)
    ended = link.hear("end") if lie != "flood" else {}
    if ended is not None:
        link.say("bye", missing=0, incomplete=0)
        link.hear("nothing")


where = sys.argv[2].rpartition(":")
host, port = where[0] or "127.0.0.1", int(where[2])
data = b""
if os.path.exists(sys.argv[3]):
    with open(sys.argv[3], "rb") as f:
        data = f.read()
lie = sys.argv[4] if len(sys.argv) > 4 else ""
globals()[sys.argv[1]]()
