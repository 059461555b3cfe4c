# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check whole images of rashpa-builder build: whole.py IMAGES.raw BUFFER...

Reads the stream of each buffer from its start, even after its end, and compares each image with
that of the file. Prints a line of JSON for each buffer: images that came; images that differ, with
the first different byte; images with missing lines. In the latter, lines of zeros count as missing,
and are not compared.
"""
import json
import sys

import numpy

import rashpa


def compare(buffer, name):
    result = {"frames": [], "wrong": [], "incomplete": []}
    with rashpa.Stream(buffer, from_start=True, timeout=120) as stream:
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
    return result


for each in sys.argv[2:]:
    print(json.dumps(compare(each, sys.argv[1])))
