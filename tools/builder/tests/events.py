# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check files of rashpa-builder build: events.py FOLDER READOUTS SOURCES

Prints JSON: events that were found, as ranges; those that were found twice; and errors in files.
Implements the format from Documentation/builder.rst independently of the builder.
"""
import json
import os
import re
import struct
import sys
import zlib

MESSAGE = struct.Struct("<IIQQQIIQ")
EVENT = struct.Struct("<QII")
FRAGMENT = struct.Struct("<IIII")
DATA = 11


def ranges(numbers):
    found = []
    for n in sorted(numbers):
        if found and found[-1][1] + 1 == n:
            found[-1][1] = n
        else:
            found.append([n, n])
    return found


def check(name, first, count, readouts, sources):
    """Error in a file, or None"""
    with open(name, "rb") as file:
        data = file.read()
    at = 0
    for readout in range(readouts):
        kind, _, _, _, begin, events, _, length = MESSAGE.unpack_from(data, at)
        at += MESSAGE.size
        if (kind, begin, events) != (DATA, first, count):
            return f"message of readout {readout}"
        end = at + length
        for event in range(first, first + count):
            number, fragments, length = EVENT.unpack_from(data, at)
            at += EVENT.size
            if (number, fragments) != (event, sources):
                return f"event {event} of readout {readout} is {number}"
            for source in range(sources):
                which, flags, length, checksum = FRAGMENT.unpack_from(data, at)
                at += FRAGMENT.size
                if zlib.crc32(data[at:at + length]) != checksum:
                    return f"event {event}, readout {readout}: checksum of source {source}, flags {flags:#x}"
                if which != source or flags:
                    return f"event {event}, readout {readout}: source {source}: {flags:#x}"
                at += (length + 7) // 8 * 8
        if at != end:
            return f"length of readout {readout}"
    return None if at == len(data) else "bytes after the last readout"


def main():
    folder, readouts, sources = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    seen, twice, wrong = set(), set(), []
    for name in os.listdir(folder):
        match = re.fullmatch(r"events-(\d+)-(\d+)", name)
        if not match:
            continue    # a file that is being written
        first, count = map(int, match.groups())
        try:
            fault = check(os.path.join(folder, name), first, count, readouts, sources)
        except struct.error as error:
            fault = str(error)
        if fault:
            wrong.append(f"{name}: {fault}")
        numbers = set(range(first, first + count))
        twice |= numbers & seen
        seen |= numbers
    print(json.dumps({"events": len(seen), "ranges": ranges(seen), "twice": ranges(twice), "wrong": wrong}))


main()
