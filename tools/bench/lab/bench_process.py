#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Add times of NumPy and pyFAI for the same work to the JSON of "rashpa-bench process", and draw it.

bench_process.py FILE.json FILE.svg [ROUNDS]: medians of rounds that alternate pipelines and peers,
with as many threads as OpenMP uses.
"""
import ctypes
import itertools
import json
import os
import statistics
import sys
import tempfile
import time

import h5py
import numpy

from rashpa.processing import Pipeline

SIZES = {"512K": (512, 1024), "4M": (2048, 2048), "16M": (4096, 4096)}
THRESHOLD = 5
PEDESTAL, GAIN = 3000, 40


def timed(function):
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def made_up(shape):
    """A raw image of a JUNGFRAU, as in rashpa-bench process."""
    i = numpy.arange(shape[0] * shape[1], dtype=numpy.uint32)
    raw = (PEDESTAL + i * 7 % 30).astype(numpy.uint16)
    raw[i % 499 == 0] += 10 * GAIN
    raw[i % 1009 == 0] |= 0x4000
    return raw.reshape(shape)


def numpy_pretreat(raw, pedestal, per_gain):
    """Conversion with three gains, as usual with NumPy."""
    code = raw >> 14
    stage = code - (code >> 1)
    plane = numpy.choose(stage, pedestal)
    result = ((raw & 0x3fff).astype(numpy.float32) - plane) * numpy.choose(stage, per_gain)
    result[(raw == 0xc000) | (code == 2)] = numpy.nan
    return result


def numpy_compress(image):
    kept = image > THRESHOLD
    row = numpy.concatenate([[0], numpy.cumsum(kept.sum(1))])
    return row, numpy.nonzero(kept)[1], image[kept]


class Bench:
    def __init__(self, rows, rounds, threads):
        self.rows, self.rounds, self.threads = rows, rounds, threads

    def row(self, name, peer, raw, ours, theirs, moved, threads=None):
        """Add a row: both times in seconds, for the same number of bytes."""
        threads = threads or self.threads
        ours, theirs = statistics.median(ours), statistics.median(theirs)
        self.rows.append({
            "name": name, "backend": f"cpu, {threads} thread{'s' * (threads > 1)}", "peer": peer,
            "size_bytes": raw.nbytes, "ours": moved / ours / 1e9, "theirs": moved / theirs / 1e9,
            "ratio": theirs / ours, "unit": "GB/s", "better": "higher"})
        print(f"{name:23} {threads} threads, {raw.shape[1]} x {raw.shape[0]}: {ours * 1e3:.3f} ms, {peer} "
              f"{theirs * 1e3:.3f} ms, ratio {theirs / ours:.2f}", file=sys.stderr, flush=True)

    def of(self, shape, folder):
        raw = made_up(shape)
        planes = numpy.ones((3, *shape), numpy.float32)
        pedestal = planes * PEDESTAL
        gain = planes * GAIN * numpy.array([1, -1, -1], numpy.float32)[:, None, None]
        numpy.save(f"{folder}/pedestal.npy", pedestal)
        numpy.save(f"{folder}/gain.npy", gain)
        pipeline = Pipeline({
            "pretreat": {"detector": "jungfrau", "pedestal": f"{folder}/pedestal.npy",
                         "gain": f"{folder}/gain.npy"},
            "compress": {"threshold": THRESHOLD}})
        image = pipeline(raw).image
        numpy.testing.assert_allclose(image, numpy_pretreat(raw, pedestal, 1 / gain), rtol=1e-5)
        before, times = pipeline.stat()["stages"], {"pretreat": [], "compress": []}
        theirs = {"pretreat": [], "compress": []}
        per_gain = 1 / gain
        for _ in range(self.rounds):
            result = pipeline(raw)
            after = pipeline.stat()["stages"]
            for stage, taken in times.items():
                taken.append(after[stage]["seconds"] - before[stage]["seconds"])
            before = after
            theirs["pretreat"].append(timed(lambda: numpy_pretreat(raw, pedestal, per_gain)))
            theirs["compress"].append(timed(lambda: numpy_compress(image)))
        kept = result.elements * 8
        self.integrate(raw, folder)
        self.row("pretreat", "NumPy", raw, times["pretreat"], theirs["pretreat"], raw.size * 14)
        self.row("compress", "NumPy", raw, times["compress"], theirs["compress"],
                 raw.size * 4 + kept)


    def integrate(self, raw, folder):
        """pyFAI, with its matrix and its engine in Cython and OpenMP, and rashpa, for the same image."""
        from pyFAI.detectors import Detector
        from pyFAI.integrator.azimuthal import AzimuthalIntegrator
        height, width = raw.shape
        ai = AzimuthalIntegrator(detector=Detector(75e-6, 75e-6, max_shape=raw.shape), dist=0.1,
                                 poni1=height / 2 * 75e-6, poni2=width / 2 * 75e-6, wavelength=1e-10)
        if os.path.exists(f"{folder}/bench.poni"):
            os.unlink(f"{folder}/bench.poni")
        ai.save(f"{folder}/bench.poni")
        image = (raw & 0x3fff).astype(numpy.float32)
        bins = 1000
        openmp, every = ctypes.CDLL("libgomp.so.1"), self.threads
        for split, error, threads in itertools.product(("bbox", "no"), (None, "poisson"),
                                                       sorted({1, every})):
            openmp.omp_set_num_threads(threads)
            pipeline = Pipeline({"integrate": {"poni": f"{folder}/bench.poni", "bins": bins,
                                               "unit": "2th_deg", "split": split,
                                               "error": error or "none"}})
            def theirs():
                ai.integrate1d(image, bins, unit="2th_deg", method=(split, "csr", "cython"),
                               error_model=error)
            counts = raw & 0x3fff
            theirs()
            pipeline(counts)
            times, others, before = [], [], pipeline.stat()["stages"]["integrate"]["seconds"]
            for _ in range(self.rounds):
                pipeline(counts)
                after = pipeline.stat()["stages"]["integrate"]["seconds"]
                times.append(after - before)
                before = after
                others.append(timed(theirs))
            self.row(f"integrate, {split}{', errors' if error else ''}", "pyFAI", raw, times, others,
                     raw.size * 4, threads)
        openmp.omp_set_num_threads(every)


def ssx(folder, images=60):
    """Serial crystallography: frames of 4 Mpixel, one in ten a hit, alternating with dark frames.
    Returns numbers of hits, bytes and the rate."""
    from rashpa import dataset
    raw = f"{folder}/ssx.h5"
    dataset.main(["jungfrau", raw, "--images", str(images), "--darks", "4", "--size", "2048x2048",
                  "--hit-rate", "0.1", "--seed", "5"])
    with h5py.File(raw) as file:
        hit = file["truth/hit"][...].astype(bool)
        frames, darks = list(file["entry/data/data"]), list(file["darks/data"])
    config = {"pretreat": {"detector": "jungfrau", "dark_images": 16,
                           **{k: f"{raw}:/calibration/{k}" for k in ("pedestal", "gain", "mask")}},
              "veto": {"threshold": 8, "pixels": 20}, "compress": {"threshold": 2.5},
              "sinks": {"nexus": {"file": f"{folder}/hits.h5", "what": ["compressed"]}}}
    found = []
    with Pipeline(config) as pipeline:
        pipeline(darks[0], dark=True)       # allocates buffers, and creates files
        begin = time.perf_counter()
        for i, frame in enumerate(frames):
            pipeline(darks[i % len(darks)], dark=True)
            found.append(pipeline(frame, frame=i).kept)
        seconds = time.perf_counter() - begin
        stat = pipeline.stat()
    found = numpy.array(found)
    result = {"images": images, "pixels": frames[0].size, "hits": int(hit.sum()),
              "found": int((found & hit).sum()), "wrong": int((found & ~hit).sum()),
              "bytes_in": frames[0].nbytes * images * 2,
              "bytes_out": os.path.getsize(f"{folder}/hits.h5"),
              "images_per_second": images / seconds, "vetoed": stat["vetoed"]}
    print("ssx:", ", ".join(f"{k} {v:.4g}" for k, v in result.items()), file=sys.stderr)
    return result


# Operations per byte of each stage: subtract and multiply; compare; compare and add.
OPERATIONS = {"pretreat": 2 / 14, "veto": 1 / 4, "compress": 2 / 4}


def roofline(report, path):
    """Roofline: operations a second over operations per byte, with the limit of STREAM's rate."""
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 5.5))
    stream = [r for r in report["rows"] if r["peer"] == "STREAM triad" and r["name"] in OPERATIONS]
    x = numpy.array([0.05, 1.0])
    for i, key in enumerate(sorted({(r["size_bytes"], r["backend"]) for r in stream})):
        of = [r for r in stream if (r["size_bytes"], r["backend"]) == key]
        axes.plot(x, x * of[0]["theirs"], lw=0.8, ls="--", color=f"C{i}")
        axes.plot([OPERATIONS[r["name"]] for r in of], [OPERATIONS[r["name"]] * r["ours"] for r in of],
                  "o", color=f"C{i}", label=f"{key[0] // 2 >> 10} Kpixel, {key[1]}")
    for name, where in OPERATIONS.items():
        axes.annotate(name, (where, axes.get_ylim()[0]), rotation=90, va="bottom", fontsize=8)
    axes.set(xscale="log", yscale="log", xlabel="operations by byte moved",
             ylabel="10^9 operations/s", title=f"stages below the roof of memory (dashed: STREAM triad)"
             f"\n{report['machine']['cpu']}, Linux {report['machine']['kernel']}")
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)
    figure.savefig(path)


def main():
    path, picture = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 11
    with open(path) as file:
        report = json.load(file)
    threads = int(os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0))))
    bench = Bench(report["rows"], rounds, threads)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for shape in SIZES.values():
            bench.of(shape, folder)
        report["ssx"] = ssx(folder)
    with open(path, "w") as file:
        json.dump(report, file, indent=2)
    roofline(report, picture)


if __name__ == "__main__":
    main()
