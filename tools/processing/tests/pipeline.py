#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pipelines on arrays: what NumPy computes. A line "ok NAME" or "not ok NAME" each, then "end"."""
import copy
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import h5py
import numpy

from rashpa.processing import Error, Pipeline

FRAMES = os.path.join(os.environ.get("RASHPA_DATA", "../shared/data"), "jungfrau")

PONI = ("poni_version: 2\nDetector: Detector\nDetector_config: {\"pixel1\": 1e-4, \"pixel2\": 1e-4}\n"
        "Distance: 0.1\nPoni1: 0.0004\nPoni2: 0.0004\nWavelength: 1e-10\n")


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
    ok(worst < 1e-3, f"ten-real-frames/{engine}: {engine}: ten real frames, within 1e-3 photons")


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
    ok(good, f"images-kept-numpy/{engine}: {engine}: {numpy.dtype(dtype)}: images, and what is kept, are NumPy's; results outlive "
       "their pipeline")
    ok(last, f"mean-deviation-numpy/{engine}: {engine}: {numpy.dtype(dtype)}: mean and deviation are NumPy's")
    ok(stat["images"] == 5 and stat["stages"]["compress"]["images"] == 5, "counts: it counts")


def wrong():
    pipeline = Pipeline({})
    pipeline(numpy.zeros((4, 5), "u2"))
    ok(fails(lambda: pipeline(numpy.zeros((4, 6), "u2")), ValueError, "in a pipeline for") and
       fails(lambda: pipeline(numpy.zeros((4, 5), "u1")), ValueError, "in a pipeline for") and
       fails(lambda: Pipeline({})(numpy.zeros(5, "u2")), ValueError, "dimensions") and
       fails(lambda: Pipeline({})(numpy.zeros((4, 5))), ValueError, "float64") and
       fails(lambda: Pipeline({"x": 1}), Error, "x: unknown key") and
       fails(lambda: Pipeline({}, "abacus"), Error, "abacus"), "wrong-refused: wrong configurations are refused")
    big = numpy.arange(20, dtype=">u2").reshape(4, 5)
    ok((pipeline(big).image == big).all() and (pipeline(big[::-1]).image == big[::-1]).all(),
       "arrays-order-bytes: arrays of any order of bytes and lines")


def life(folder):
    """Calls that come too early, too late or twice do nothing, or fail cleanly."""
    image, floats = numpy.ones((4, 5), "u2"), 4 * 5 * 4
    path = f"{folder}/raw"

    def sink(name=path, **more):
        return {"sinks": {"raw": {"file": name, **more}}}

    with Pipeline(sink()) as pipeline:
        ok(pipeline.axis() is None and not os.path.exists(path), "before-image-no: before an image there is no file")
    pipeline = Pipeline(sink())
    pipeline.finish()
    pipeline(image)
    pipeline.flush()
    pipeline.finish()
    pipeline.finish()
    pipeline.flush()
    ok(os.path.getsize(path) == floats and
       fails(lambda: pipeline(image), ValueError, "is finished") and
       os.path.getsize(path) == floats, "finished-stays: a finished file does not change")
    pipeline.close()
    pipeline.close()
    ok(all(fails(what, ValueError, "is closed") for what in
           (pipeline.finish, pipeline.flush, pipeline.axis, pipeline.stat)) and
       fails(lambda: Pipeline(sink()).flush(), Error, "has not begun"),
       "pipeline-closed-not: a pipeline that is closed, or has not begun, says so")

    pipeline = Pipeline(sink())
    again = fails(lambda: pipeline(image), Error, 'it exists: give another name, or "overwrite": true')
    ok(again and fails(lambda: pipeline(image), Error, "could not begin: " + path) and
       fails(pipeline.finish, Error, "could not begin: " + path) and
       os.path.getsize(path) == floats, "file-not-lost: a file that is there is not lost, and the reason stays")
    # refused by the stage behind, or by another sink: it is as it was
    refused = sink(overwrite=True)
    refused["sinks"]["nexus"] = {"file": f"{folder}/nowhere/x.h5"}
    ok(fails(lambda: Pipeline(refused)(image), Error, "nowhere") and os.path.getsize(path) == floats,
       "pipeline-not-begin: nor by a pipeline that does not begin")
    with Pipeline(sink(overwrite=True)) as pipeline:
        for _ in range(3):
            pipeline(image)
    ok(os.path.getsize(path) == 3 * floats, "unless: unless that is said")

    pipe = f"{folder}/pipe"
    os.mkfifo(pipe)
    ok(all(fails(lambda: Pipeline({"pretreat": {"pedestal": name}})(image), Error, "not a file")
           for name in (pipe, pipe + ":/x", folder, folder + ":/x")),
       "pipe-folder-no: a pipe or a folder is no calibration, and not waited for")

    with h5py.File(f"{folder}/leads.h5", "w") as file:
        file["plane"] = numpy.full((4, 5), 3, "f4")
        for name, to in ("pipe", "pipe"), ("right", "leads.h5"), ("long", "leads.h5"):
            file[f"link_{name}"] = h5py.ExternalLink(to, "link_pipe" if name == "long" else "plane")
            if name != "long":
                layout = h5py.VirtualLayout((4, 5), "f4")
                layout[:] = h5py.VirtualSource(f"{folder}/{to}", "plane", (4, 5))
                file.create_virtual_dataset(f"virtual_{name}", layout, -1)
        numpy.full((4, 5), 3, "<f4").tofile(f"{folder}/plane.raw")
        for name, to in ("pipe", "pipe"), ("right", "plane.raw"):
            file.create_dataset(f"external_{name}", (4, 5), "<f4", external=[(f"{folder}/{to}", 0, 80)])
    with h5py.File(f"{folder}/leads.h5", "a") as file:
        file["deep"] = h5py.ExternalLink("virtual.h5", "x")
        with h5py.File(f"{folder}/virtual.h5", "w") as other:
            layout = h5py.VirtualLayout((4, 5), "f4")
            layout[:] = h5py.VirtualSource(f"{folder}/leads.h5", "virtual_pipe", (4, 5))
            other.create_virtual_dataset("x", layout, -1)

    def pedestal(inside):
        return Pipeline({"pretreat": {"pedestal": f"{folder}/leads.h5:/{inside}"}})(image).image

    ok(all(fails(lambda: pedestal(name), Error, "pipe, which is not a file")
           for name in ("link_pipe", "virtual_pipe", "external_pipe", "link_long", "deep")) and
       all((pedestal(name) == -2).all() for name in ("link_right", "virtual_right", "external_right")),
       "file-hdf5-leads: nor is what a file of HDF5 leads to; other files are read")
    # an image that is lost is not in a file that says that it is complete
    path = f"{folder}/full.h5"
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    big = numpy.ones((300, 400), "u2")
    pipeline = Pipeline({"sinks": {"nexus": {"file": path}}})
    pipeline(big)
    pipeline.flush()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path), limit[1]))
    lost = fails(lambda: [pipeline(big) for _ in range(10)], Error, path)
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    lost &= fails(pipeline.finish, Error, "it is not complete")
    pipeline.close()
    with h5py.File(path) as file:
        ok(lost and file["entry/complete"][()] == 0, "lost-image-not: a file that lost an image is not complete")


def forked(what):
    """Output of a forked child, as of multiprocessing, or that it hangs."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")    # it is what is tested
        child = os.fork()
    if not child:
        signal.alarm(20)
        try:
            said = str(what())
        except Exception as failure:    # whatever it is, it is told
            said = f"{type(failure).__name__}: {failure}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as file:
        said = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return said if not status else f"status {status}"


def alone(folder):
    """One process, one thread at a time, no copies."""
    image = (numpy.arange(300 * 400) % 1000).astype("u2").reshape(300, 400)
    path = f"{folder}/forked.h5"
    pipeline = Pipeline({"sinks": {"nexus": {"file": path}}})
    pipeline(image)
    said = [forked(lambda: Pipeline({"compress": {"threshold": 1}})(image).kept),
            forked(lambda: pipeline(image)), forked(pipeline.finish), forked(pipeline.close)]
    many = len(os.sched_getaffinity(0)) > 1 and os.environ.get("OMP_NUM_THREADS") != "1"
    ok(("spawn or forkserver" in said[0] if many else said[0] == "True") or print("#", said),
       "fork-not-wait: a fork does not wait for threads that it does not have")
    pipeline(image)
    pipeline.finish()
    with h5py.File(path) as file:
        ok(all("of which this one is a fork" in s for s in said[1:3]) and said[3] == "None" and
           len(file["entry/data/data"]) == 2 and file["entry/complete"][()] == 1 or print("#", said),
           "pipeline-stays-process: a pipeline stays with its process, and so do its files")
    # if OpenMP has not run, a fork may start its threads
    script = ("import os, numpy\nfrom rashpa.processing import Pipeline\nif not os.fork():\n"
              "    print(Pipeline({})(numpy.ones((300, 400), 'u2')).kept)\nelse: os.wait()")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False,
                          timeout=60)
    ok(done.stdout == "True\n", "one-forked-before: but one that is forked before may have its own")

    ok(all(fails(lambda: what(pipeline), TypeError, "cannot be copied or pickled")
           for what in (copy.copy, copy.deepcopy, pickle.dumps)), "pipeline-not-copied: a pipeline is not copied")
    many = [Pipeline({"compress": {"threshold": 1}}) for _ in range(30)]
    bad = []

    def use(pipeline):
        try:
            while True:
                if not (pipeline(image).image == image).all():
                    bad.append("wrong")
        except ValueError as failure:
            if "is closed" not in str(failure):
                bad.append(failure)

    for pipeline in many:
        threads = [threading.Thread(target=use, args=(pipeline,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(0.005)
        pipeline.close()
        for thread in threads:
            thread.join()
    ok(not bad or print("#", bad[:3]), "closed-no-thread: it is closed when no thread runs it")

    reader, writer = os.pipe()
    os.write(writer, b' {"veto": {"threshold": 1, "pixels": 1}}')
    os.close(writer)
    ok(Pipeline(f"/dev/fd/{reader}")(image).above == (image > 1).sum(), "pipe-configuration: a pipe has its configuration")
    os.close(reader)
    ok(fails(lambda: Pipeline({}, "cpu\0x"), ValueError, "a NUL character") and
       fails(lambda: Pipeline('{}\0'), ValueError, "a NUL character") and
       Pipeline(os.fsencode(write(f"{folder}/x.json", "{}")))(image).kept,
       "names-taken-whole: names are taken as a whole")
    path = f"{folder}/gone"
    try:
        with Pipeline({"sinks": {"raw": {"file": path}}}) as pipeline:
            pipeline(image)
            os.unlink(path)
        closed = False
    except Error:
        closed = fails(pipeline.stat, ValueError, "is closed")
    ok(closed, "cannot-finished-closed: a pipeline that cannot finish is closed, too")
    ok((Pipeline({})(image[::-1][:1]).image == image[-1:]).all() and
       (Pipeline({})(numpy.frombuffer(b"x" + image.tobytes(), "u2", 120000, 1).reshape(300, 400)).image ==
        image).all(), "arrays-one-line: arrays of one line, backwards, and that are not aligned")


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


def files(folder):
    """What others have, or read, is not lost; each file has one writer."""
    image = numpy.ones((8, 8), "u2")
    os.chdir(folder)

    def sinks(**more):
        return {"sinks": {name: {"file" if name != "publish" else "endpoint": value,
                                 **({} if name == "publish" else {"overwrite": True})}
                          for name, value in more.items()}}

    def refused(sentence, config):
        pipeline = Pipeline(config)
        before = {name: os.lstat(name).st_size for name in os.listdir()}
        good = fails(lambda: pipeline(image), Error, sentence)
        return good and before == {name: os.lstat(name).st_size for name in os.listdir()}

    def precious(name):
        with open(name, "w") as file:
            file.write("precious")
        return name

    later = {"publish": "nowhere://x"}
    ok(refused("not supported", sinks(nexus=precious("old.h5"), **later)) and
       refused("not supported", sinks(raw=precious("old.raw"), **later)) and
       refused("not supported", sinks(nexus="new.h5", raw="new.raw", **later)),
       "files-not-later: files are as they were, or not there, when a later sink is refused")
    os.symlink("both", "link")
    os.link("old.raw", "old.hard")
    ok(refused("both: the sink raw writes it", sinks(raw="both", nexus="both")) and
       refused("link: the sink raw writes it", sinks(raw="both", nexus="link")) and
       refused("old.hard: the sink raw writes it", sinks(raw="old.raw", nexus="old.hard")),
       "one-file-two: one file for two sinks is refused, also by links to it")
    ok(all(refused("a link to what does not exist", sinks(**{sink: "link"})) and
           refused("is a folder", sinks(**{sink: "."})) for sink in ("raw", "nexus")),
       "link-nothing-folder: a link to nothing and a folder are refused as such")

    plane = numpy.zeros((8, 8), "f4")
    numpy.save("plane.npy", plane)
    os.symlink("plane.npy", "plane")
    with h5py.File("plane.h5", "w") as file:
        file["x"] = plane
    with open("x.poni", "w") as file:
        file.write(PONI)
    good = []
    for stage, key, more in (("pretreat", "pedestal", {}), ("pretreat", "gain", {}),
                             ("pretreat", "mask", {}), ("correct", "background", {}),
                             ("integrate", "poni", {"bins": 3}),
                             ("peaks", "poni", {"finder": "pyfai"})):
        for name in ["x.poni"] if key == "poni" else ["plane.npy", "plane.h5:/x"]:
            value = {"file": name} if key == "background" else name
            for sink in "raw", "nexus":
                to = "plane" if name == "plane.npy" else name.partition(":")[0]
                good.append(refused(f"the pipeline reads it ({stage}.{key}", {
                    stage: {key: value, **more}, **sinks(**{sink: to})}))
    with open("x.json", "w") as file:
        file.write('{"sinks": {"raw": {"file": "./x.json", "overwrite": true}}}')
    good.append(refused("the pipeline reads it (its configuration)", "x.json"))
    ok(len(good) == 21 and all(good), "pipeline-reads-no: an input of the pipeline is refused as a sink")

    for sink in "raw", "nexus":
        first = Pipeline(sinks(**{sink: "one"}))
        first(image)
        good = [refused("one: another pipeline writes it", sinks(**{other: "one"}))
                for other in ("raw", "nexus")]
        script = (f"import numpy; from rashpa.processing import Pipeline\n"
                  f"Pipeline({sinks(**{sink: 'one'})})(numpy.ones((8, 8), 'u2'))")
        said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        good.append("one: another pipeline writes it" in said.stderr)
        first.finish()
        if sink == "nexus":
            with h5py.File("one") as file:
                good.append(file["entry/complete"][()] == 1 and
                            refused("one: another program has it open", sinks(nexus="one")))
        else:
            good.append(os.path.getsize("one") == 256)
        with Pipeline(sinks(**{sink: "one"})) as second:
            second(image)
        first.close()
        ok(all(good), f"file-one-writer: {sink}: a file has one writer at a time, in this process and others")

    pipeline = Pipeline(sinks(raw="gone"))
    pipeline(image)
    os.unlink("gone")
    gone = fails(lambda: pipeline(image), Error, "gone: it, or its folder, was removed")
    pipeline = Pipeline(sinks(raw="gone"))
    pipeline(image)
    os.unlink("gone")
    ok(gone and fails(pipeline.finish, Error, "gone: it, or its folder, was removed"),
       "file-removed: a removed file is reported")
    os.chdir("/")


COMMA = """
import locale, numpy, sys
from rashpa.processing import Pipeline
locale.setlocale(locale.LC_NUMERIC, "comma")
assert locale.localeconv()["decimal_point"] == ","
pipeline = Pipeline({"pretreat": {"gain": 0.5}, "integrate": {"poni": sys.argv[1], "bins": 2, "unit": "r_mm"}})
print(pipeline(numpy.ones((8, 8), "u2")).image[0, 0], pipeline.axis()[0][-1])
"""


def comma(folder):
    """Where numbers have a comma: that of C, with another character."""
    made = "/usr/lib/locale/C.utf8/LC_NUMERIC"
    if not os.path.exists(made):
        print("skip numbers-point-user: numbers where others have a comma # there is no locale C.utf8")
        return
    with open(made, "rb") as file:
        content = bytearray(file.read())
    place = int.from_bytes(content[8:12], sys.byteorder)    # the first element is the point
    content[place:place + 1] = b","
    os.mkdir(f"{folder}/comma")
    with open(f"{folder}/comma/LC_NUMERIC", "wb") as file:
        file.write(content)
    done = subprocess.run([sys.executable, "-c", COMMA, write(f"{folder}/comma.poni", PONI)],
                          env={**os.environ, "LOCPATH": folder}, capture_output=True, text=True, check=False)
    ok(done.stdout.startswith("2.0 0.4") or print("#", done.stdout, done.stderr),
       "numbers-point-user: numbers have a point, also where the user's have a comma")


def told(folder):
    """Impossible configurations are refused with the place and the reason."""
    image = numpy.ones((8, 8), "u2")
    poni = f"{folder}/x.poni"
    with open(poni, "w") as file:
        file.write(PONI)
    bad = f"{folder}/bad.npy"
    numpy.save(bad, numpy.ones((8, 8), "u1"))
    turned = f"{folder}/turned.poni"
    with open(poni) as file, open(turned, "w") as other:
        other.write(file.read().replace("1e-4}", '1e-4, "orientation": "x"}'))
    for config, sentence in (
            ({"pretreat": {"gain": 1e-50}}, "all results would be 0 or infinite"),
            ({"pretreat": {"gain": 1e50}}, "all results would be 0 or infinite"),
            ({"pretreat": {"gain": 1e-39}}, "all results would be 0 or infinite"),
            ({"pretreat": {"gain": []}}, "pretreat.gain: names no file"),
            ({"pretreat": {"pedestal": "a\0b"}}, "a NUL character"),
            ({"pretreat": {"saturated": 65537}}, "up to 65535"),
            ({"assemble": {"modules": []}}, "names no module"),
            ({"assemble": {"wide_every_x": 1}}, "1 is not 2 to"),
            ({"assemble": {"bin_x": 3}}, "cut some off"),
            ({"assemble": {"modules": [{"x": x, "y": 0, "width": 4, "height": 4, "to_x": 0, "to_y": x}
                                       for x in (0, 3)]}}, "its pixel 0, 0 comes"),
            ({"sinks": {"streams": {}}}, "names no stream"),
            ({"peaks": {"finder": "peakfinder8", "centre": [1, 1], "radius": 101}}, "1 to 100"),
            ({"integrate": {"poni": poni, "bins": 10.0}}, "a whole number"),
            ({"integrate": {"poni": poni, "bins": 10, "unit": "r_mm", "range": [5, 9]}},
             "no pixel is in it: pixels are from 0 to"),
            ({"integrate": {"poni": poni, "bins": 10, "range": [-1e308, 1e308]}}, "is too wide or too"),
            ({"integrate": {"poni": poni, "bins": 10, "range": [0, 1e-310]}}, "is too wide or too"),
            ({"integrate": {"poni": poni, "bins": 10, "unit": "r_mm", "split": "no", "range": [0.08, 0.1]}},
             "no pixel is in one of the bins"),
            ({"pretreat": {"mask": bad}, "integrate": {"poni": poni, "bins": 10}}, "no pixel is ever valid"),
            ({"pretreat": {"mask": bad}, "integrate": {"poni": poni, "bins": 10, "range": [1, 2]}},
             "no pixel is ever valid"),
            ({"integrate": {"poni": turned, "bins": 10}}, "orientation x of the detector"),
            ({"pretreat": {"pedestal": f"{folder}/nothing.h5:/x"}}, "No such file"),
            ({"pretreat": {"pedestal": f"{poni}:/x"}}, "not HDF5")):
        ok(fails(lambda: Pipeline(config)(image), Error, sentence), f"refused: {sentence}")
    numpy.save(f"{folder}/fortran.npy", numpy.asfortranarray(numpy.ones((8, 8), "f4")))
    with h5py.File(f"{folder}/shapes.h5", "w") as file:
        file["wrong"], file["right"] = numpy.ones((4, 16)), numpy.full((1, 8, 8), 3)
    ok(fails(lambda: Pipeline({"pretreat": {"pedestal": f"{folder}/fortran.npy"}})(image), Error,
             "ascontiguousarray") and
       fails(lambda: Pipeline({"pretreat": {"pedestal": f"{folder}/shapes.h5:/wrong"}})(image), Error,
             "shapes.h5:/wrong: it has 4 x 16, not 8 x 8") and
       (Pipeline({"pretreat": {"pedestal": f"{folder}/shapes.h5:/right"}})(image).image == -2).all(),
       "calibration-shape-image: a calibration has the shape of the image")
    pedestal = numpy.zeros((8, 8), "f4")
    pedestal[1, :4] = numpy.inf, -numpy.inf, numpy.nan, 1e30
    numpy.save(f"{folder}/pedestal.npy", pedestal)
    for engine in "cpu", "reference":
        good = []
        for count in 1, 2:
            pipeline = Pipeline({"pretreat": {"pedestal": f"{folder}/pedestal.npy", "dark_images": count}}, engine)
            first = pipeline(image).image
            good.append(numpy.isnan(first[1, :3]).all() and numpy.isnan(first).sum() == 3)
            pipeline(image * 3, dark=True)
            then = pipeline(image).image
            good.append((then == -2).all() if count == 1 else
                        numpy.isnan(then[1, :3]).all() and numpy.isnan(then).sum() == 3 and then[0, 0] == -0.5)
        ok(all(good), f"pedestal-not-finite/{engine}: {engine}: a pedestal that is not finite is invalid, until a dark image replaces it")
    ok(Pipeline({"compress": {"threshold": 0, "capacity": 2147483647}})(image).elements == 64,
       "room-no-elements: there is room for no more elements than pixels")
    # a pixel that is valid in one gain only is in the profile
    gain = numpy.ones((3, 8, 8), "f4")
    gain[0, 2] = 0
    numpy.save(f"{folder}/gain.npy", gain)
    numpy.save(f"{folder}/pedestal.npy", numpy.zeros((3, 8, 8), "f4"))
    raw = numpy.full((8, 8), 5 | 1 << 14, "u2")
    pipeline = Pipeline({"pretreat": {"detector": "jungfrau", "gain": f"{folder}/gain.npy",
                                      "pedestal": f"{folder}/pedestal.npy"},
                         "integrate": {"poni": poni, "bins": 1, "unit": "r_mm", "solid_angle": False,
                                       "error": "poisson", "split": "no"}})
    sigma = pipeline(raw).sigma[0]
    ok(abs(sigma - (5 / 64) ** .5) < 1e-6, "pixel-bad-one: a pixel that is bad in one gain counts in the others")


if __name__ == "__main__":
    for name in "cpu", "reference":
        if os.path.isdir(FRAMES):
            frames(name)
        else:
            print("skip", f"ten-real-frames/{name}: ten real frames # there is no $RASHPA_DATA/jungfrau")
        for kind in "u1", "u2", "u4":
            made_up(name, kind)
    wrong()
    with tempfile.TemporaryDirectory() as folder:
        life(folder)
        told(folder)
    with tempfile.TemporaryDirectory() as folder:
        files(folder)
        alone(folder)
        comma(folder)
    print("end")
    sys.exit()
