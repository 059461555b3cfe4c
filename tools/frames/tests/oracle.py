#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Frames as scapy has them, which knows nothing of our own code.

oracle.py compare FILE JSON: a file of rashpa-inject, field by field and byte by byte, with what
scapy makes of the same fields. oracle.py make KIND FILE: frames for rashpa-capture-check.
oracle.py seeds FOLDER: what frame_fuzz begins with.
"""
import json
import os
import struct
import sys

from scapy.contrib.roce import AETH, BTH
from scapy.fields import IntField, XIntField, XLongField
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import CookedLinux, Dot1Q, Ether
from scapy.packet import Packet, Raw
from scapy.utils import PcapNgWriter, rdpcap, wrpcap

RC, UC = 0x00, 0x20
SEND_ONLY = 4
FIRST, MIDDLE, LAST, LAST_IMM, ONLY, ONLY_IMM, READ, ACK = 6, 7, 8, 9, 10, 11, 12, 17


class RETH(Packet):
    fields_desc = [XLongField("address", 0), XIntField("rkey", 0), IntField("length", 0)]

    def extract_padding(self, s):
        return s, b""


class ImmDt(Packet):
    fields_desc = [XIntField("immediate", 0)]


def parts(operation):
    return (operation in (FIRST, ONLY, ONLY_IMM, READ)), (operation in (LAST_IMM, ONLY_IMM, 3, 5))


def packet(opcode, psn, payload=b"", length=0, immediate=0, qpn=0x11, ip=None, port=4791,
           address=0, rkey=0, sport=49152, chksum=0, **more):
    """From IP to ICRC."""
    reth, imm = parts(opcode & 0x1f)
    pad = -len(payload) % 4
    bth = {"opcode": opcode, "psn": psn, "dqpn": qpn, "padcount": pad, "migreq": 1, **more}
    p = (ip or IP(src="10.0.0.1", dst="10.0.0.2", flags="DF", id=1)) / \
        UDP(sport=sport, dport=port, chksum=chksum) / BTH(**bth)
    body = b""
    if reth:
        body += bytes(RETH(address=address, rkey=rkey, length=length))
    if imm:
        body += bytes(ImmDt(immediate=immediate))
    if opcode == ACK:
        body += bytes(AETH(syndrome=0, msn=1))
    return p / Raw(body + payload + bytes(pad))


def ether(p):
    return Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / p


def message(transport, psn, size, mtu=1024, **more):
    """One WRITE with immediate."""
    n = max(1, -(-size // mtu))
    immediate = more.pop("immediate", 0)
    data = bytes(i * 7 & 0xff for i in range(size))
    out = []
    for i in range(n):
        op = ONLY_IMM if n == 1 else FIRST if not i else LAST_IMM if i == n - 1 else MIDDLE
        out.append(packet(transport + op, (psn + i) & 0xffffff, data[i * mtu:(i + 1) * mtu],
                          length=size, immediate=immediate, **more))
    return out


def stream(transport=UC, **more):
    out, psn = [], 0xfffffc
    for i, size in enumerate((0, 1, 2, 3, 4, 1023, 1024, 1025, 2048, 4099)):
        one = message(transport, psn, size, immediate=(0xfffffffd + i) & 0xffffffff, **more)
        psn += len(one)
        out += one
    return out


def ipv6(**more):
    return IPv6(src="fd00::1", dst="fd00::2", **more)


def fragments():
    whole = packet(UC + ONLY_IMM, 0, bytes(1024), length=1024, ip=IP(src="10.0.0.1", dst="10.0.0.2"))
    from scapy.layers.inet import fragment
    return fragment(IP(bytes(whole)), 512)


def wrong_icrc():
    out = [bytes(ether(p)) for p in stream()]
    out[2] = out[2][:-4] + struct.pack("<I", 0x12345678)
    return [Ether(p) for p in out]


def cut():
    out = [Ether(bytes(ether(p))[:80]) for p in stream()]
    for short, p in zip(out, stream()):
        short.wirelen = len(ether(p))
    return out


KINDS = {
    "cut": cut,
    "uc": lambda: [ether(p) for p in stream()],
    "rc": lambda: [ether(p) for p in stream(RC)],
    "cooked": lambda: [CookedLinux(proto=0x0800) / p for p in stream()],
    "raw": stream,
    "vlan": lambda: [Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / Dot1Q(vlan=5) / p
                     for p in stream()],
    "ipv6": lambda: [ether(p) for p in stream(ip=ipv6(tc=9, fl=77, hlim=3))],
    # what routers and switches change does not count
    "changed": lambda: [ether(p) for p in stream(ip=IP(src="10.0.0.1", dst="10.0.0.2", flags="DF",
                                                       id=9, tos=3, ttl=7), fecn=1)],
    "read": lambda: [ether(p) for p in
                     message(RC, 0, 2048) + [packet(RC + READ, 2, length=4096)] +
                     message(RC, 6, 2048, immediate=1) + [packet(ACK, 1, qpn=0x12)]],
    "two": lambda: [ether(p) for pair in zip(stream(), stream(RC, qpn=0x12)) for p in pair],
    "send": lambda: [ether(packet(UC + op, i, bytes(n))) for i, (op, n) in
                     enumerate(((0, 256), (1, 256), (2, 5), (SEND_ONLY, 9), (5, 3)))],
    "wrong-icrc": wrong_icrc,
    "wrong-psn": lambda: [ether(p) for p in stream()[:6] +
                          message(UC, 0x4711, 8, immediate=3)] + [
                              ether(p) for p in stream()[7:]],
    # None: scapy computes it
    "udp": lambda: [ether(p) for p in stream(chksum=None)],
    "udp-ipv6": lambda: [ether(p) for p in stream(ip=ipv6(), chksum=None)],
    "udp-wrong": lambda: [ether(p) for p in stream()[:3] +
                          stream(chksum=0x1234)[3:4] + stream()[4:]],
    "fragments": lambda: [ether(p) for p in fragments()],
    "version": lambda: [ether(p) for p in message(UC, 0, 8, version=1)],
    "pkey": lambda: [ether(p) for p in message(UC, 0, 8, pkey=1)],
    "nothing": lambda: [ether(IP(src="10.0.0.1", dst="10.0.0.2") / UDP(dport=53) / Raw(bytes(40)))],
    "unknown": lambda: [ether(packet(0xff, 0, bytes(8)))],
    "goes-back": lambda: [ether(p) for p in (lambda s: s[:12] + s[8:])(stream(RC))],
}


def make(kind, name):
    frames = KINDS[kind]()
    if name.endswith("ng"):
        with PcapNgWriter(name) as w:
            w.write(frames)
    else:
        wrpcap(name, frames)


def compare(name, report):
    """Frames without faults, all with RETH and immediate where they should be."""
    told = json.load(open(report))
    frames = rdpcap(name)
    assert len(frames) == told["frames"] == told["packets"], (len(frames), told)
    size, mtu = told["message_bytes"], told["path_mtu"]
    per = max(1, -(-size // mtu))
    base = UC if told["transport"] == "uc" else RC
    assert len(frames) == per * told["messages"]
    at = 0
    for n, f in enumerate(frames):
        i, m = n % per, n // per
        b = f[BTH]
        op = ONLY_IMM if per == 1 else FIRST if not i else LAST_IMM if i == per - 1 else MIDDLE
        part = min(mtu, size - i * mtu)
        assert b.opcode == base + op, (n, b.opcode)
        assert b.dqpn == told["queue_pair"] and b.psn == (told["first_psn"] + n) & 0xffffff
        assert f[IP].flags == "DF" and f[UDP].dport == 4791 and b.padcount == -part % 4
        assert b.ackreq == (base == RC and i == per - 1)
        body = bytes(b.payload)
        address = length = rkey = immediate = 0
        reth, imm = parts(op)
        if reth:
            r = RETH(body)
            address, length, rkey = r.address, r.length, r.rkey
            assert length == size and rkey == 0x99 and address == 0x1000 + m % 3 * size, (n, address)
            body = body[16:]
        if imm:
            immediate = ImmDt(body).immediate
            assert immediate == (0xfffffffe + m) & 0xffffffff
            body = body[4:]
        payload = body[:part]
        want = bytes((m << 32 | (k & ~7)) >> 8 * (k & 7) & 0xff for k in range(i * mtu, i * mtu + part))
        assert payload == want, n
        again = Ether(src=f.src, dst=f.dst) / packet(
            b.opcode, b.psn, payload, length=length, immediate=immediate, qpn=b.dqpn,
            address=address, rkey=rkey, sport=f[UDP].sport, ackreq=b.ackreq,
            ip=IP(src=f[IP].src, dst=f[IP].dst, id=f[IP].id, ttl=f[IP].ttl, flags="DF"))
        assert bytes(again) == bytes(f), (n, bytes(again).hex(), bytes(f).hex())
        at += 1
    assert at


def ends_everywhere(frame, at):
    """A frame that ends too early: on the wire, in the capture, as IP says (at: where it does)."""
    for n in range(len(frame)):
        yield 4, frame[:n]
        yield 12, frame[:n]
        size = max(0, n - 14 - (40 if at == 18 else 0))
        yield 4, frame[:at] + struct.pack("!H", size) + frame[at + 2:]


def framed(kind, frame):
    return struct.pack("!BH", kind, len(frame)) + frame


def seeds(folder):
    """For frame_fuzz: captures, and frames with their kind of link and their size."""
    for name, p, at in (("4", message(UC, 0, 3)[0], 16),
                        ("6", message(UC, 0, 3, ip=ipv6())[0], 18)):
        with open(os.path.join(folder, "ends-" + name), "wb") as f:
            f.write(b"\x02" + b"".join(framed(*one) for one in ends_everywhere(bytes(ether(p)), at)))
    for kind, frames in KINDS.items():
        name = os.path.join(folder, kind)
        make(kind, name + ".pcapng" if kind == "uc" else name)
        if kind == "uc":
            os.rename(name + ".pcapng", name)
        data = open(name, "rb").read()
        open(name, "wb").write(b"\0" + data)
        link = {"raw": 1, "cooked": 2}.get(kind, 0)
        with open(name + "-frames", "wb") as f:
            f.write(b"\x02" + b"".join(framed(4 | link, bytes(p)) for p in frames()))


if sys.argv[1] == "seeds":
    seeds(sys.argv[2])
elif sys.argv[1] == "compare":
    compare(sys.argv[2], sys.argv[3])
else:
    make(sys.argv[2], sys.argv[3])
