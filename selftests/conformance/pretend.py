#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A false board: it answers at a vfio-user socket, with given registers.

pretend.py SOCKET [OFFSET=VALUE]... [leave=OFFSET|hello|never]: registers of BAR 0 are words that
store what is written; OFFSET=VALUE sets one for good. leave=OFFSET hangs up when that register is
read, leave=hello at once; leave=never keeps the connection and never answers.
"""
import os
import socket
import struct
import sys
import time

MEMORY = 4096
SIZES = {0: 0x10000, 2: 0x10000, 4: MEMORY, 7: 4096}
words = {
    0x00: 0x50485352, 0x04: 0x00010001, 0x08: 8 << 16 | 1 << 8 | 1, 0x18: MEMORY,
    0x54: 31 << 16 | 32 << 8 | 48, 0x58: 1000000, 0x5c: 0x100, 0x64: 1000,
    # the list of blocks: a DTP, a table of 8 entries, bounds
    0x100: 1 << 16 | 1, 0x104: 0x1000, 0x108: 0x200,
    0x110: 8 << 16 | 2, 0x114: 0x8000, 0x118: 32,
    0x120: 1 << 16 | 5, 0x124: 0x7000, 0x128: 16,
}
given = dict((int(number, 0) for number in arg.split("="))
             for arg in sys.argv[2:] if not arg.startswith("leave="))
leave = [arg[6:] for arg in sys.argv[2:] if arg.startswith("leave=")]
words.update(given)


def read(region, offset, count):
    if region == 0 and 0x20 <= offset < 0x28:
        ticks = int(time.monotonic() * words[0x58])
        return struct.pack("<Q", ticks)[offset - 0x20:][:count]
    data = b"".join(struct.pack("<I", words.get(offset + at, 0) if region == 0 else 0)
                    for at in range(0, count, 4))
    return data[:count]


def answer(command, body):
    if command == 1:
        return body[:4] + b'{"capabilities":{}}\0'
    if command == 5:
        index = struct.unpack_from("<I", body, 8)[0]
        return struct.pack("<IIIIQQ", 32, 3, index, 0, SIZES.get(index, 0), 0)
    if command == 7:
        return struct.pack("<IIII", 16, 1, struct.unpack_from("<I", body, 8)[0], 1)
    if command == 9:
        offset, region, count = struct.unpack_from("<QII", body)
        if region == 0 and f"{offset:#x}" in leave:
            sys.exit(0)
        return body[:16] + read(region, offset, count)
    if command == 10:
        offset, region, count = struct.unpack_from("<QII", body)
        if region == 0 and count == 4 and offset not in given and offset >= 0x1000:
            words[offset] = struct.unpack_from("<I", body, 16)[0]
        return body[:16]
    return body[:16]


def serve(client):
    while True:
        head = client.recv(16, socket.MSG_WAITALL)
        if len(head) < 16:
            return
        number, command, size, _, _ = struct.unpack("<HHIII", head)
        body = client.recv(size - 16, socket.MSG_WAITALL) if size > 16 else b""
        text = answer(command, body)
        client.sendall(struct.pack("<HHIII", number, command, 16 + len(text), 1, 0) + text)


listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1] + ".new")
listener.listen()
os.rename(sys.argv[1] + ".new", sys.argv[1])  # it accepts connections once its name exists
host = listener.accept()[0]
if "never" in leave:
    while host.recv(4096):
        pass
elif "hello" not in leave:
    serve(host)
