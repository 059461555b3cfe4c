#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pipelines on arrays: what NumPy computes. A line "ok NAME" or "not ok NAME" each, then "end"."""
import os
import subprocess
import sys

import numpy

from rashpa.processing import Error, Pipeline

FRAMES = os.path.join(os.environ.get("RASHPA_DATA", "../shared/data"), "jungfrau")


def ok(good, name):
    print("ok" if good else "not ok", name, flush=True)


def fails(what, kind, sentence):
    try:
        what()
    except kind as failure:
        return sentence in str(failure) or print("#", failure)
    return False


def unpack(name, dtype):
    raw = subprocess.run(["zstd", "-dc", f"{FRAMES}/{name}.bin.zst"], check=True, capture_output=True)
    return numpy.frombuffer(raw.stdout, dtype).reshape(512, 1024)


def frames(engine):
    pipeline = Pipeline({"pretreat": {
        "detector": "jungfrau",
        "pedestal": [f"{FRAMES}/pedestal_g{i}.bin.zst" for i in range(3)],
        "gain": [f"{FRAMES}/gain_g{i}.bin.zst" for i in range(3)]}}, engine)
    worst = 0
    for i in range(10):
        right = unpack(f"photons{i}", "<f4")
        got = pipeline(unpack(f"raw{i}", "<u2")).image
        unknown = right == 32678
        worst = max(worst, numpy.abs(got - right)[~unknown].max())
        if (numpy.isnan(got) != unknown).any():
            worst = numpy.inf
    ok(worst < 1e-3, f"{engine}: ten real frames, within 1e-3 photons")


def made_up(engine, dtype):
    random = numpy.random.default_rng(7)
    images = random.poisson(3, (6, 67, 103)).astype(dtype)
    config = {"pretreat": {"gain": 2}, "veto": {"threshold": 4.5, "pixels": 1},
              "compress": {"threshold": 3}, "accumulate": {"images": 5}}
    with Pipeline(config, engine) as pipeline:
        results = [pipeline(image, frame=i) for i, image in enumerate(images[:5])]
        stat = pipeline.stat()
    good = last = True
    for image, r in zip(images / 2, results):
        row, column, value = r.csr
        y, x = numpy.nonzero(image > 3)
        good &= (r.kept and r.above == (image > 4.5).sum() and (r.image == image).all() and
                 (column == x).all() and (value == image[y, x]).all() and
                 (numpy.diff(row) == (image > 3).sum(1)).all())
    mean, deviation = (images[:5] / 2).mean(0), (images[:5] / 2).std(0, ddof=1)
    last = (results[-1].images == 5 and numpy.allclose(results[-1].mean, mean) and
            numpy.allclose(results[-1].deviation, deviation) and results[0].mean is None)
    ok(good, f"{engine}: {numpy.dtype(dtype)}: images, and what is kept, are NumPy's; results outlive "
       "their pipeline")
    ok(last, f"{engine}: {numpy.dtype(dtype)}: mean and deviation are NumPy's")
    ok(stat["images"] == 5 and stat["stages"]["compress"]["images"] == 5, "it counts")


def wrong():
    pipeline = Pipeline({})
    pipeline(numpy.zeros((4, 5), "u2"))
    ok(fails(lambda: pipeline(numpy.zeros((4, 6), "u2")), ValueError, "in a pipeline for") and
       fails(lambda: pipeline(numpy.zeros((4, 5), "u1")), ValueError, "in a pipeline for") and
       fails(lambda: Pipeline({})(numpy.zeros(5, "u2")), ValueError, "dimensions") and
       fails(lambda: Pipeline({})(numpy.zeros((4, 5))), ValueError, "float64") and
       fails(lambda: Pipeline({"x": 1}), Error, "x: unknown key") and
       fails(lambda: Pipeline({}, "abacus"), Error, "abacus"), "what is wrong is refused")
    big = numpy.arange(20, dtype=">u2").reshape(4, 5)
    ok((pipeline(big).image == big).all() and (pipeline(big[::-1]).image == big[::-1]).all(),
       "arrays of any order of bytes and lines")


if __name__ == "__main__":
    for name in "cpu", "reference":
        if os.path.isdir(FRAMES):
            frames(name)
        else:
            print("skip", f"{name}: ten real frames: there is no $RASHPA_DATA/jungfrau")
        for kind in "u1", "u2", "u4":
            made_up(name, kind)
    wrong()
    print("end")
    sys.exit()
