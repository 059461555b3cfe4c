# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare images that were built of two halves: BUFFER WIDTH HEIGHT RAW RAW; says which came, as JSON."""
import json
import sys

import numpy

import rashpa

buffer, width, height = sys.argv[1], *map(int, sys.argv[2:4])
halves = [numpy.fromfile(path, numpy.uint16).reshape(-1, height, width) for path in sys.argv[4:6]]
frames, corrupt = [], 0
with rashpa.Stream(buffer) as stream:
    for stack in stream:
        for image, frame in zip(stack.images, stack.frames):
            frames.append(int(frame))
            corrupt += not numpy.array_equal(image, numpy.concatenate([h[frame % len(h)] for h in halves]))
print(json.dumps({"frames": frames, "equal": len(frames) - corrupt, "corrupt": corrupt}))
