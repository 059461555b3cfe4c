#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Datasets that are converted, or made up: what a pipeline finds in them is what was put there.
A line "ok NAME" or "not ok NAME" each, then "end"."""
import os
import resource
import subprocess
import sys
import tempfile

import h5py
import numpy
from PIL import Image

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
    ok(not status and "ssx.h5: 40 images of 512 x 300 u16" in said, f"made-up: made up: {said.strip()}")
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
           f"images-40-hits/{engine}: {engine}: {found.sum()} images of 40 are hits, those that were made as such")
        empty = numpy.mean([numpy.nansum(r.image) for r in results if not r.kept])
        ratio = [(numpy.nansum(r.image) - empty) / p for r, p in zip(results, photons) if r.kept]
        ok(0.98 < min(ratio) and max(ratio) < 1.02,
           f"photons-put-within/{engine}: {engine}: they have the photons that were put there, within 2 percent, by three gains")
        ok(min(len(numpy.unique(file["entry/data/data"][i] >> 14)) for i in hit.nonzero()[0]) >= 2,
           "pixels-hit-one: pixels of a hit have more than one gain")


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
    sentences = ["give --geometry", "exists already", "nothing.npy", "not images of", "not WIDTHxHEIGHT",
                 "not 0 to 1"]
    for (status, said), sentence in zip(refused, sentences):
        if not status or sentence not in said:
            print("#", said)
    ok(all(status and sentence in said and "Traceback" not in said
           for (status, said), sentence in zip(refused, sentences)), "wrong-refused: wrong arguments are refused")


def limited(*arguments):
    """With room for little: as on a disk that is full."""
    done = subprocess.run([sys.executable, "-B", "-m", "rashpa.dataset", *arguments], capture_output=True,
                          text=True, check=False, timeout=60,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)))
    return done.returncode, done.stdout + done.stderr


def failed():
    """Each in one sentence, without a wait, and nothing is left."""
    images = numpy.arange(5 * 100 * 200, dtype="u2").reshape(5, 100, 200)
    numpy.save("five.npy", images)
    images.tofile("five.raw")
    for name, shape in ("flat", (7,)), ("deep", (2, 2, 9, 9)), ("empty", (3, 0, 8)), ("small", (1, 9, 9)):
        numpy.save(f"{name}.npy", numpy.zeros(shape, "u2"))
    numpy.save("objects.npy", numpy.array([{}, None]))
    with open("five.npy", "rb") as file, open("cut.npy", "wb") as other:
        other.write(file.read(1000))
    Image.fromarray(numpy.zeros((9, 9, 3), "u1")).save("colours.tif")
    with open("broken.tif", "wb") as file:
        file.write(b"II*\0" + bytes(range(60)))
    with h5py.File("links.h5", "w") as file:
        file["loop"] = h5py.SoftLink("/pool")
        file["pool"] = h5py.SoftLink("/loop")
        file["dangling"] = h5py.SoftLink("/nothing")
        file["images"] = images
        file["soft"] = h5py.SoftLink("group/images")
        file.create_group("group")["images"] = h5py.ExternalLink("links.h5", "/images")
        file["pipe"] = h5py.ExternalLink("pipe", "/x")
        file["text"] = "text"
        layout = h5py.VirtualLayout((1, 4, 5), "u2")
        layout[0] = h5py.VirtualSource("pipe", "plane", (4, 5))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("external", (1, 4, 5), "u2", external=[("pipe", 0, 40)])
    os.mkfifo("pipe")
    os.mkfifo("pipe.npy")
    for name in "round", "sub[1]":
        os.mkdir(name)
    os.symlink(".", "round/again")
    images[:1].tofile("sub[1]/a[0].raw")
    os.symlink("nothing", "dangling.h5")
    os.symlink("loop.npy", "loop.npy")
    before = set(os.listdir())
    wrong = [("flat.npy", "it has 1 dimensions"), ("deep.npy", "it has 4 dimensions"),
             ("empty.npy", "an image of 0 x 8 pixels"), ("objects.npy", "no array of numbers"),
             ("cut.npy", "no array of numbers"), ("colours.tif", "it has colours"),
             ("broken.tif", "no TIFF that can be read"), ("nothing.tif", "nothing.tif: No such file"),
             ("loop.npy", "Too many levels of symbolic links"), ("pipe", "pipe: it is no file"),
             ("pipe.npy", "pipe.npy: it is no file"), ("round", "a link leads back to this folder"),
             ("links.h5:/loop", "links lead to each other"), ("links.h5:/dangling", "no dataset of images"),
             ("links.h5:/text", "no dataset of images"), ("links.h5:/nothing", "no dataset of images"),
             ("links.h5:/pipe", "leads to pipe, which is no file"),
             ("links.h5:/virtual", "has its data in pipe, which is no file"),
             ("links.h5:/external", "has its data in pipe, which is no file")]
    for name, sentence in wrong:
        for first in [], ["five.npy"]:
            status, said = run("convert", *first, name, "out.h5")
            good = status == 1 and sentence in said and said.count("\n") == 1 and set(os.listdir()) == before
            if not good or not first:
                ok(good or print("#", status, said), f"refused: {name}: {sentence}")
    for output in "out.h5", "out.raw":
        status, said = run("convert", "five.npy", "small.npy", output)
        ok(status == 1 and "the first one (100, 200)" in said and set(os.listdir()) == before,
           f"nothing-left-second: {output}: nothing is left if the second input differs")
        status, said = limited("convert", "five.npy", output)
        ok(status == 1 and said == f"rashpa.dataset: {output}: File too large\n" and
           set(os.listdir()) == before or print("#", status, said), f"no-room: {output}: nor if there is no room")
    status, said = limited("jungfrau", "out.h5", "--images", "2")
    ok(status == 1 and said == "rashpa.dataset: out.h5: File too large\n" and set(os.listdir()) == before or
       print("#", status, said), "nor-of-what-is: nor of what is made up")
    ok(all(sentence in run("convert", *arguments)[1] for *arguments, sentence in (
        ("five.npy", "dangling.h5", "exists already"),
        ("five.raw", "out.h5", "--geometry", "3x0x8", "not WIDTHxHEIGHT"),
        ("five.raw", "out.h5", "--geometry", "1_0x1_0", "not WIDTHxHEIGHT"))), "no-size-link: wrong sizes and links are refused")
    good = [run("convert", "links.h5:/soft", "a.raw")[0] == 0, run("convert", "sub[1]", "b.raw", "--geometry",
                                                                   "200x100")[0] == 0]
    ok(all(good) and (numpy.fromfile("a.raw", "<u2") == images.ravel()).all() and
       (numpy.fromfile("b.raw", "<u2") == images[0].ravel()).all(), "links-odd-names: links and odd names are followed")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        made_up()
        converted()
        os.mkdir("failed")
        os.chdir("failed")
        failed()
        os.chdir("/")
    print("end")
