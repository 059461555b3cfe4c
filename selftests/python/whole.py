# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whole images of rashpa-builder build: whole.py BUFFER IMAGES.raw

Takes the stream of the buffer, and compares each image with that of the file. Prints JSON: images
that came; those that differ, and the first byte that does; those that say that lines are missing. Of
these, lines of zeros are not compared: they were said to be missing.
"""
import json
import sys

import numpy

import rashpa


def main():
    buffer, name = sys.argv[1:]
    result = {"frames": [], "wrong": [], "incomplete": []}
    with rashpa.Stream(buffer, timeout=120) as stream:
        for stack in stream:
            image = stack.images[0].view("u1")
            known = numpy.memmap(name, "u1").reshape(-1, *image.shape)
            frame, missing = int(stack.frames[0]), int(stack.table["missing_lines"][0])
            result["frames"].append(frame)
            differs = image != known[frame % len(known)]
            if missing:
                result["incomplete"].append({"frame": frame, "missing_lines": missing})
                differs[~image.any(axis=1)] = False
            if differs.any():
                line, byte = numpy.argwhere(differs)[0]
                result["wrong"].append({"frame": frame, "line": int(line), "byte": int(byte),
                                        "bytes": int(differs.sum())})
    print(json.dumps(result))


main()
