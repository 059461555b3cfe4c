#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""Plot the mean of each image of a stream: consumer.py BUFFER PLOT.png"""
import sys

import rashpa
from matplotlib.figure import Figure

buffer, plot = sys.argv[1:]
frames, means = [], []
with rashpa.Stream(buffer) as stream:
    for stack in stream:
        # this is the memory that the detector writes; the next iteration gives it back
        means.extend(stack.images.mean(axis=(1, 2)))
        frames.extend(stack.frames)
    status = stream.stat()
print(f"{status.frames} images, {status.lost} lost, {status.skipped} left out")
axes = Figure().subplots()
axes.plot(frames, means, ".")
axes.set(title=buffer, xlabel="image", ylabel="mean of its pixels")
axes.figure.savefig(plot)
