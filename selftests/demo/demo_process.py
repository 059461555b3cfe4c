#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Part of the demonstration: checks that romulu's output matches the generated frames, and draws
a picture. demo_process.py IOMMU JSON SVG, in the folder with the files."""
import json
import os
import platform
import sys

import h5py
import numpy
import matplotlib
matplotlib.use("svg")
from matplotlib import pyplot       # noqa: E402

from rashpa.processing import Pipeline      # noqa: E402


def main():
    iommu, report, picture = sys.argv[1:]
    with open("romulu.json") as file:
        romulu = json.load(file)
    raw, hits = h5py.File("ssx.h5"), h5py.File("hits.h5")
    hit = raw["truth/hit"][...].astype(bool)
    # a dark frame follows every three frames of the dataset
    right = [i + i // 3 for i in hit.nonzero()[0]]
    found = hits["entry/instrument/detector/sequence_number"][...].tolist()
    images = hits["entry/data/data"]
    processing = romulu["processing"]
    with open("pipeline.json") as file:
        config = json.load(file)
    del config["sinks"], config["veto"]
    pipeline = Pipeline(config)
    again = pipeline(raw["entry/data/data"][int(hit.nonzero()[0][0])])
    result = {
        "kernel": platform.release(), "iommu": iommu, "frames": romulu["frames"],
        "lost": romulu["lost"], "dark": processing["dark"], "images": processing["images"],
        "hits": len(right), "found": len(set(found) & set(right)),
        "wrong": len(set(found) - set(right)), "vetoed": processing["vetoed"],
        "bytes_in": romulu["bytes"], "bytes_out": os.path.getsize("hits.h5"),
        "seconds": romulu["seconds"],
        "complete": int(hits["entry/complete"][()]),
    }
    with open(report, "w") as file:
        json.dump(result, file, indent=2)
    figure, (left, right_) = pyplot.subplots(1, 2, figsize=(12, 4.2))
    left.imshow(numpy.log1p(numpy.clip(images[0], 0, None)), cmap="inferno", vmax=4)
    left.plot(again.peaks["x"], again.peaks["y"], "o", ms=9, mfc="none", mec="deepskyblue", mew=0.8)
    left.set(title=f"frame {found[0]}: photons, log(1 + x); {len(again.peaks)} peaks", xticks=[], yticks=[])
    axis, unit = pipeline.axis()
    right_.plot(axis, again.intensity)
    right_.set(title="its azimuthal profile", xlabel=f"q, {unit.removeprefix('q_')}",
               ylabel="photons by pixel", yscale="log")
    right_.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(picture)
    print("   {frames} frames, {lost} lost, {dark} dark; {found} of {hits} hits found, {wrong} wrong; "
          "{bytes_in} bytes in, {bytes_out} out".format(**result))
    good = (found == right and not romulu["lost"] and not processing["lost"] and result["complete"] and
            len(images) == len(right) and processing["images"] + processing["dark"] == romulu["frames"])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
