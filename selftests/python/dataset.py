#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Datasets that are converted, or made up: what a pipeline finds in them is what was put there.
A line "ok NAME" or "not ok NAME" each, then "end"."""
import os
import subprocess
import sys
import tempfile

import h5py
import numpy

from rashpa.processing import Pipeline


def ok(good, name):
    print("ok" if good else "not ok", name, flush=True)


def run(*arguments):
    done = subprocess.run([sys.executable, "-B", "-m", "rashpa.dataset", *map(str, arguments)],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def made_up():
    status, said = run("jungfrau", "ssx.h5", "--images", 40, "--darks", 3, "--size", "512x300",
                       "--hit-rate", 0.3, "--peaks", 20, "--seed", 5)
    ok(not status and "ssx.h5: 40 images of 512 x 300 u16" in said, f"made up: {said.strip()}")
    file = h5py.File("ssx.h5")
    hit, photons = file["truth/hit"][...], file["truth/photons"][...]
    calibration = {"detector": "jungfrau", "pedestal": "ssx.h5:/calibration/pedestal",
                   "gain": "ssx.h5:/calibration/gain", "mask": "ssx.h5:/calibration/mask"}
    for engine in "cpu", "reference":
        pipeline = Pipeline({"pretreat": calibration, "veto": {"threshold": 8, "pixels": 20},
                             "compress": {"threshold": 2.5}}, engine)
        results = [pipeline(image, frame=i) for i, image in enumerate(file["entry/data/data"])]
        found = numpy.array([r.kept for r in results])
        ok((found == hit).all() and 3 < hit.sum() < 25,
           f"{engine}: {found.sum()} images of 40 are hits, those that were made as such")
        empty = numpy.mean([numpy.nansum(r.image) for r in results if not r.kept])
        ratio = [(numpy.nansum(r.image) - empty) / p for r, p in zip(results, photons) if r.kept]
        ok(0.98 < min(ratio) and max(ratio) < 1.02,
           f"{engine}: they have the photons that were put there, within 2 percent, by three gains")
        ok(min(len(numpy.unique(file["entry/data/data"][i] >> 14)) for i in hit.nonzero()[0]) >= 2,
           "pixels of a hit have more than one gain")


def converted():
    images = numpy.random.default_rng(2).integers(0, 65535, (5, 30, 40), "u2")
    numpy.save("a.npy", images)
    os.mkdir("folder")
    for i in range(5):
        images[i].tofile(f"folder/{i}.raw")
    good = []
    for inputs in ("a.npy",), ("folder", "--geometry", "40x30"), ("a.h5",), ("a.raw", "--geometry",
                                                                          "40x30,u16"):
        for output in "a.h5", "a.raw", "b.h5", "b.raw":
            if os.path.exists(output):
                continue
            good.append(run("convert", *inputs[:1], output, *inputs[1:])[0] == 0)
            got = (h5py.File(output)["entry/data/data"][...] if output.endswith("h5") else
                   numpy.fromfile(output, "<u2").reshape(-1, 30, 40))
            good.append((got == images).all())
            break
    ok(len(good) == 8 and all(good), "converted: .npy, raw, folders and HDF5 have the same images")
    refused = [run("convert", "a.raw", "c.h5"), run("convert", "a.npy", "a.h5"),
               run("convert", "nothing.npy", "c.h5"), run("convert", "a.raw", "c.h5", "--geometry", "9x30"),
               run("jungfrau", "c.h5", "--size", "7"), run("jungfrau", "c.h5", "--hit-rate", "1.5")]
    sentences = ["give --geometry", "is there already", "nothing.npy", "not images of", "not WIDTHxHEIGHT",
                 "not 0 to 1"]
    for (status, said), sentence in zip(refused, sentences):
        if not status or sentence not in said:
            print("#", said)
    ok(all(status and sentence in said and "Traceback" not in said
           for (status, said), sentence in zip(refused, sentences)), "what is wrong is refused")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        made_up()
        converted()
        os.chdir("/")
    print("end")
