#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of the sink "nexus", as h5py, silx and pyFAI read them, also while they grow, and after the
one who wrote them was killed or had no room. A line "ok NAME" or "not ok NAME" each, then "end"."""
import functools
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import h5py
import numpy

from rashpa.processing import Error, Pipeline

IMAGES, FRAMES = "entry/data/data", "entry/instrument/detector/sequence_number"
NONE = -2 ** 31


def ok(good, name):
    print("ok" if good else "not ok", name, flush=True)


def fails(what, sentence):
    try:
        what()
    except (Error, OSError) as failure:
        return sentence in str(failure) or print("#", failure)
    return print("# nothing failed")


@functools.cache
def image(frame, shape=(64, 80)):
    """Of each frame another one."""
    pixels = numpy.random.default_rng(frame).poisson(0.3, shape).astype("u2")
    pixels[0, 0] = 65535  # not valid
    return pixels


@functools.cache
def pixels_of(frame, shape=(64, 80)):
    return numpy.where(image(frame, shape) == 65535, numpy.nan, image(frame, shape))


def right(h5, first=0):
    """Images and frames; how many there are, or None."""
    frames = h5[FRAMES][:]
    data = h5[IMAGES]
    if len(data) < len(frames) or (frames != numpy.arange(first, first + len(frames))).any():
        return None
    same = [numpy.array_equal(data[i], pixels_of(f), equal_nan=True) for i, f in enumerate(frames)]
    return len(frames) if all(same) else None


def sinks(path, **more):
    return {"sinks": {"nexus": {"file": path, **more}}}


# --- what is in a file

def content(folder, packing, whole):
    path = f"{folder}/{packing}-{whole}.h5"
    shape = (67, 103)
    config = {"pretreat": {"gain": 2, "round": whole}, "veto": {"threshold": 0.6, "pixels": 1},
              "compress": {"threshold": 0, "capacity": 2000}, "accumulate": {"images": 3},
              **sinks(path, compression=packing)}
    pixels = [image(f, shape).copy() for f in range(7)]
    pixels[5][:] = 3  # more than fit
    with Pipeline(config) as pipeline:
        results = [pipeline(p, frame=100 + i) for i, p in enumerate(pixels)]
        stat = pipeline.stat()["sinks"]["nexus"]
    want = numpy.array([r.image for r in results])
    if whole:
        want = numpy.where(numpy.isnan(want), NONE, want)
    with h5py.File(path) as h5:
        entry = h5["entry"]
        same = numpy.array_equal(entry["data/data"][:], want, equal_nan=not whole)
        ok(same and entry["data/data"].dtype == ("<i4" if whole else "<f4"),
           f"whole-numbers/images: {packing}, whole numbers {whole}: images")
        ok((entry["statistics/images"][:] == [3, 3]).all() and
           (entry["statistics/last_sequence_number"][:] == [102, 105]).all() and
           numpy.array_equal(entry["statistics/mean"][1], results[5].mean, equal_nan=True) and
           numpy.array_equal(entry["statistics/deviation"][1], results[5].deviation, equal_nan=True),
           f"whole-numbers/mean-deviation: {packing}, whole numbers {whole}: mean and deviation")
        csr, good = entry["compressed"], True
        begin = csr["offset"][:]
        for i, r in enumerate(results):
            row, column, value = r.csr or (numpy.zeros(shape[0] + 1), [], [])
            at = slice(begin[i], begin[i + 1])
            good &= (numpy.array_equal(csr["row"][i], row) and csr["elements"][i] == r.elements and
                     numpy.array_equal(csr["column"][at], column) and
                     numpy.array_equal(csr["value"][at], value))
        ok(good and len(begin) == 8 and begin[5] == begin[6] and csr["elements"][5] > 2000,
           f"whole-numbers/sparse-images-not: {packing}, whole numbers {whole}: sparse images, and how many did not fit")
        detector = entry["instrument/detector"]
        ok((detector["sequence_number"][:] == range(100, 107)).all() and
           (detector["role"][:] == 0).all() and len(detector["role"]) == 7 and
           (detector["pixels_above_threshold"][:] == [r.above for r in results]).all(),
           f"whole-numbers/numbers-images: {packing}, whole numbers {whole}: numbers of images")
        ok(entry["complete"][()] == 1 and entry["end_time"][()] >= entry["start_time"][()] > b"2" and
           stat["images"] == 7 and stat["lost"] == 0, f"whole-numbers/complete: {packing}, whole numbers {whole}: complete")


def sizes(folder):
    """Blocks of bitshuffle that are not whole, and numbers that are no eights."""
    bad = []
    for packing in "bitshuffle-lz4", "bitshuffle-zstd", "zstd":
        for shape in (1, 1), (1, 7), (1, 8), (3, 5), (32, 64), (31, 65), (1, 65539), (301, 512):
            path, pixels = f"{folder}/size.h5", image(1, shape)
            noise = numpy.random.default_rng(2).integers(0, 65535, shape, "u2")
            with Pipeline(sinks(path, compression=packing, overwrite=True)) as pipeline:
                want = [pipeline(pixels).image, pipeline(noise).image]
            with h5py.File(path) as h5:
                got = [unpack_zstd(h5[IMAGES], i) if packing == "zstd" else h5[IMAGES][i]
                       for i in range(2)]
            if not numpy.array_equal(got, want, equal_nan=True):
                bad.append((packing, shape))
    ok(not bad or print("#", *bad), "images-odd-sizes: images of odd sizes, and noise, are the same after compression")


def unpack_zstd(data, i):
    """Debian has no filter 32015."""
    raw = subprocess.run(["zstd", "-dc"], input=data.id.read_direct_chunk((i, 0, 0))[1],
                         capture_output=True, check=True).stdout
    return numpy.frombuffer(raw, "<f4").reshape(data.shape[1:])


def others(folder):
    import fabio
    import pyFAI.io.nexus
    import silx.io
    import silx.io.nxdata

    path, mask = f"{folder}/others.h5", numpy.zeros((64, 80), "u1")
    mask[7, 9] = 1
    numpy.save(f"{folder}/mask.npy", mask)
    config = {"pretreat": {"mask": f"{folder}/mask.npy", "photon_energy_kev": 12.4},
              **sinks(path, compression="bitshuffle-lz4")}
    with Pipeline(config) as pipeline:
        last = [pipeline(image(f), frame=f).image for f in range(3)][-1]
    with silx.io.open(path) as h5:
        shown = silx.io.nxdata.get_default(h5)
        ok(shown.is_valid and shown.signal.shape == (3, 64, 80), "silx-finds-shows: silx finds what it shows by default")
    ok(numpy.array_equal(fabio.open(f"{path}::/{IMAGES}").get_frame(2).data, last, equal_nan=True),
       "fabio-reads-image: fabio reads an image")
    with pyFAI.io.nexus.Nexus(path, "r") as nexus:
        ok([d.name for d in nexus.find_detector(all=True)] == ["/entry/instrument/detector"] and
           nexus.get_default_NXdata()["data"].shape == (3, 64, 80), "pyfai-finds-detector: pyFAI finds it, and the detector")
    with h5py.File(path) as h5:
        detector = h5["entry/instrument/detector"]
        at = numpy.argwhere(detector["pixel_mask"][:])
        ok(h5["entry/definition"][()] == b"NXmx" and h5.attrs["creator"] == "rashpa" and
           (at == [[7, 9]]).all() and detector["data"] == h5[IMAGES], "nxmx-mask: it is NXmx, with a mask")
        beam = h5["entry/instrument/beam"]
        ok(abs(beam["incident_wavelength"][()] - 0.99987) < 1e-5 and
           beam["incident_energy"][()] == 12400, "beam-known-photons: the beam is known by its photons")


def assembled(folder):
    """The mask goes the way of images; halves of pixels are not whole."""
    path, mask = f"{folder}/assembled.h5", numpy.zeros((64, 80), "u1")
    mask[0, 0] = mask[16, 7] = 1
    numpy.save(f"{folder}/mask.npy", mask)
    for more, shape, dtype in (({"wide_every_x": 16, "wide_every_y": 16}, (70, 88), "<f4"),
                               ({"rotate": 90, "bin_x": 2, "bin_y": 4}, (20, 32), "<i4")):
        config = {"pretreat": {"mask": f"{folder}/mask.npy", "round": True}, "assemble": more,
                  **sinks(path, overwrite=True)}
        with Pipeline(config) as pipeline:
            right = numpy.isnan(pipeline(image(0)).image)
        with h5py.File(path) as h5:
            data, got = h5[IMAGES], h5["entry/instrument/detector/pixel_mask"][:]
            ok(data.shape == (1, *shape) and data.dtype == dtype and right.sum() > 1 and
               ((got != 0) == right).all() and ((data[0] == NONE) | numpy.isnan(data[0]) == right).all(),
               f"assembled-images-mask: assembled images and their mask: {' '.join(more)}")


def profiles(folder):
    """On a tilted detector: profiles, peaks, and where the beam is."""
    import silx.io
    import silx.io.nxdata
    from pyFAI.detectors import Detector
    from pyFAI.integrator.azimuthal import AzimuthalIntegrator

    ai = AzimuthalIntegrator(dist=0.1, poni1=0.004, poni2=0.003, rot1=0.2, rot2=-0.1, rot3=0.3,
                                   wavelength=1e-10,
                                   detector=Detector(pixel1=75e-6, pixel2=100e-6, max_shape=(64, 80)))
    ai.save(f"{folder}/tilted.poni")
    path, pixels = f"{folder}/profiles.h5", [image(f).copy() for f in range(4)]
    for f in 1, 3:
        pixels[f][20:22, 30:32] = 500 + f
        pixels[f][50, 10:12 + f] = 300
    for error, what in (("poisson", ["profiles"]), ("none", ["peaks", "profiles"])):
        config = {"integrate": {"poni": f"{folder}/tilted.poni", "bins": 30, "error": error},
                  "peaks": {"finder": "peakfinder8", "poni": f"{folder}/tilted.poni", "threshold": 100,
                            "capacity": 1}, **sinks(path, overwrite=True, what=what)}
        with Pipeline(config) as pipeline:
            results = [pipeline(p, frame=f) for f, p in enumerate(pixels)]
            axis, _ = pipeline.axis()
        with silx.io.open(path) as h5:
            shown = silx.io.nxdata.get_default(h5)
            ok(shown.is_valid and shown.is_curve and shown.signal.shape == (4, 30) and
               shown.axes_dataset_names == [None, "q"] and (shown.axes[-1][()] == axis).all() and
               (shown.errors is None) == (error == "none"), f"silx-shows-profiles: silx shows profiles, error {error}")
        with h5py.File(path) as h5:
            got = h5["entry/profiles"]
            ok(numpy.array_equal(got["intensity"][:], [r.intensity for r in results], equal_nan=True) and
               (error == "none" or
                numpy.array_equal(got["intensity_errors"][:], [r.sigma for r in results], equal_nan=True)) and
               got["q"].attrs["units"] == "nm^-1" and "data" not in h5["entry"],
               f"profiles-error-nothing: profiles, error {error}, and nothing else")
    with h5py.File(path) as h5:
        peaks, good = h5["entry/peaks"], True
        for i, r in enumerate(results):
            at = slice(*peaks["offset"][i:i + 2])
            good &= all(numpy.array_equal(peaks[k][at], r.peaks[k]) for k in r.peaks.dtype.names)
        ok(good and list(peaks["offset"][:]) == [0, 0, 1, 1, 2] and
           list(peaks["found"][:]) == [0, 2, 0, 2], "peaks-found-no: peaks, and how many found no room")
        detector, right_ = h5["entry/instrument/detector"], ai.getFit2D()
        at = [detector[k][()] for k in ("distance", "beam_center_x", "beam_center_y", "x_pixel_size",
                                        "y_pixel_size")]
        ok(numpy.allclose(at, [right_["directDist"] / 1000, right_["centerX"], right_["centerY"], 100e-6,
                               75e-6]) and
           abs(h5["entry/instrument/beam/incident_wavelength"][()] - 1) < 1e-12,
           "beam-distance-pyfai: the beam and the distance are pyFAI's")


def wrong(folder):
    path = f"{folder}/wrong.h5"

    def run(**more):
        with Pipeline(sinks(**{"path": path, **more})) as pipeline:
            pipeline(image(0))

    open(path, "w").write("precious")
    ok(fails(run, "it exists: give another name, or \"overwrite\": true") and
       open(path).read() == "precious", "file-exists-not: a file that exists is not touched")
    run(overwrite=True)
    with h5py.File(path) as h5:
        ok(right(h5) == 1, "wished: but where that is wished")
    ok(fails(lambda: run(path="/nonexistent/x.h5"), "/nonexistent/x.h5: No such file or directory") and
       fails(lambda: run(path=folder), "it exists") and
       fails(lambda: run(what=["compressed"], overwrite=True), "no stage \"compress\"") and
       fails(lambda: run(what=[]), "keeps nothing") and
       fails(lambda: run(what=["all"]), "is not one of") and
       fails(lambda: run(compression="gzip"), "is not one of none, bitshuffle-lz4"),
       "wrong-refused: wrong configurations are refused")
    run(what=["images"], overwrite=True)


# --- a process that writes, and what happens to it

def writer(path, more, orders):
    """In a separate process: "N" images, "flush", "finish", or for ever."""
    pipeline, frame = Pipeline(sinks(path, **more)), 0
    for order in orders:
        while order == "forever":
            pipeline(image(frame % 10), frame=frame)
            frame += 1
            if frame % 4 == 0:
                pipeline.flush()
                print(frame, flush=True)
        try:
            if order.isdigit():
                for _ in range(int(order)):
                    pipeline(image(frame), frame=frame)
                    frame += 1
            elif order == "remove":
                shutil.rmtree(os.path.dirname(path))
            elif order.endswith("room"):
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
                resource.setrlimit(resource.RLIMIT_FSIZE, (200000 if order == "little room" else most, most))
            else:
                getattr(pipeline, order)()
            print("done", flush=True)
        except Error as failure:
            print(failure, flush=True)
    print(*[pipeline.stat()["sinks"]["nexus"][k] for k in ("images", "lost")], flush=True)
    pipeline.close()


class Writer:
    def __init__(self, path, **more):
        self.child = subprocess.Popen([sys.executable, __file__, path, repr(more)], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, order):
        print(order, file=self.child.stdin, flush=True)
        return self.child.stdout.readline().strip()

    def end(self):
        said = self.child.communicate()[0].split()
        return self.child.returncode, said and [int(n) for n in said]


def growing(folder):
    path, seen, good = f"{folder}/grows.h5", [], True
    write = Writer(path, compression="bitshuffle-lz4")
    write("0")
    write("3")
    write("flush")
    with h5py.File(path, swmr=True) as h5:
        for _ in range(5):
            for dataset in IMAGES, FRAMES:
                h5[dataset].id.refresh()
            seen.append(right(h5))
            good &= h5["entry/complete"][()] == 0
            write("3")
            write("flush")
        write("2")
        write("finish")
        for dataset in IMAGES, FRAMES, "entry/complete":
            h5[dataset].id.refresh()
        ok(seen == [3, 6, 9, 12, 15] and good, f"reader-sees-flush: a reader sees each flush: {seen}")
        ok(right(h5) == 20 and h5["entry/complete"][()] == 1, "complete: and that it is complete")
    write.end()


def killed(folder, times=6):
    moments = random.Random(os.environ.get("RASHPA_SEED", "1"))
    found, good = [], True
    for i in range(times):
        path = f"{folder}/killed{i}.h5"
        write = Writer(path, compression="bitshuffle-lz4" if i % 2 else "none")
        print("forever", file=write.child.stdin, flush=True)
        flushed = 0
        while flushed < 20 * i + 4:
            flushed = int(write.child.stdout.readline())
        time.sleep(moments.random() / 100)  # anywhere in a write
        write.child.kill()
        flushed = max([flushed, *map(int, write.child.stdout.read().split())])
        write.child.wait()
        with h5py.File(path, swmr=True) as h5:
            frames, data = h5[FRAMES][:], h5[IMAGES]
            good &= (h5["entry/complete"][()] == 0 and len(frames) >= flushed and
                     (frames == range(len(frames))).all() and
                     all(numpy.array_equal(data[f], pixels_of(f % 10), equal_nan=True)
                         for f in range(len(frames))))
            found.append(f"{len(frames)} of {flushed}")
    ok(good, f"killed: a reader has what was flushed, at least: {', '.join(found)}")
    return path


def no_room(folder):
    path = f"{folder}/full.h5"
    write = Writer(path, on_error="go_on")
    said = [write("3"), write("flush"), write("little room"), write("20"), write("flush"),
            write("finish")]
    ended, (images, lost) = write.end()
    with h5py.File(path, swmr=True) as h5:
        kept = right(h5)
        ok(ended == 0 and said == ["done"] * 6 and images == 23 and kept is not None and
           kept >= 3 and images == kept + lost and h5["entry/complete"][()] == 0,
           f"no-room-others: no room, and the others go on: {kept} kept, {lost} lost of {images}")
    write = Writer(f"{folder}/full2.h5")
    said = [write("3"), write("flush"), write("little room"), write("20"), write("room"),
            write("finish")]
    ended, _ = write.end()
    with h5py.File(f"{folder}/full2.h5", swmr=True) as h5:
        ok(ended == 0 and "full2.h5: File too large" in said[3] and "not complete" in said[5] and
           right(h5) >= 3 and h5["entry/complete"][()] == 0, f"no-room-stops: no room, and it stops: {said[3]}")


def removed(folder):
    os.mkdir(f"{folder}/gone")
    write = Writer(f"{folder}/gone/x.h5")
    said = [write("3"), write("flush"), write("remove"), write("5"), write("flush")]
    ended, (images, lost) = write.end()
    ok(ended == 0 and said[:4] == ["done"] * 4 and said[4].endswith("it, or its folder, was removed") and
       (images, lost) == (8, 5), f"folder-removed: a removed folder is reported: {said[4]}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        writer(sys.argv[1], eval(sys.argv[2]), (line.strip() for line in sys.stdin))
        sys.exit()
    with tempfile.TemporaryDirectory() as work:
        for kind in "none", "bitshuffle-lz4", "bitshuffle-zstd":
            for rounded in False, True:
                content(work, kind, rounded)
        sizes(work)
        others(work)
        assembled(work)
        profiles(work)
        wrong(work)
        growing(work)
        killed(work)
        no_room(work)
        removed(work)
    print("end")
