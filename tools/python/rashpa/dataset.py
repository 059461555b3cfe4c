# SPDX-License-Identifier: LGPL-2.1-or-later
"""Datasets for remu: converted from other files, or made up.

    python3 -m rashpa.dataset convert run.h5:/entry/data/data run.raw
    python3 -m rashpa.dataset jungfrau ssx.h5 --images 100 --size 2048x2048 --hit-rate 0.1

jungfrau writes one HDF5 file: /entry/data/data are raw images as the detector has them, /darks/data
dark ones, /calibration/pedestal and gain (ADU, and ADU by photon; three gains), and /truth what was
put into each image: hit, and the photons of all its peaks. remu plays it, romulu reads its
calibration, and a program can compare.
"""
import argparse
import glob
import os
import sys

import h5py
import numpy

VALUE = 0x3fff      # of a raw word; above it the code of the gain: 0, 1, 3
CODE = (0 << 14, 1 << 14, 3 << 14)
MISSING = 0xc000
SWITCH = 15000      # ADU: a pixel whose value would be above takes the next gain
GAIN = (40., -1.5, -0.1)        # ADU by photon, and how much pixels differ
PEDESTAL = (3000., 14500., 14200.)
NOISE = 3.          # ADU, of the highest gain


# --- reading and writing

def _images_of(name, geometry):
    """Images of a file, one after the other."""
    path, _, inside = name.partition(":/")
    if os.path.isdir(path):
        for part in sorted(glob.glob(f"{path}/*")):
            yield from _images_of(part, geometry)
    elif h5py.is_hdf5(path):
        with h5py.File(path) as file:
            data = file["/" + inside if inside else "/entry/data/data"]
            yield from data if data.ndim == 3 else [data[...]]
    elif path.endswith(".npy"):
        data = numpy.load(path, mmap_mode="r")
        yield from data if data.ndim == 3 else [data]
    elif path.endswith((".tif", ".tiff")):
        from PIL import Image, ImageSequence
        with Image.open(path) as file:
            for page in ImageSequence.Iterator(file):
                yield numpy.array(page)
    elif geometry:
        height, width, dtype = geometry
        data = numpy.memmap(path, dtype, "r")
        if data.size % (height * width):
            sys.exit(f"{path}: not images of {width} x {height} {dtype}")
        yield from data.reshape(-1, height, width)
    else:
        sys.exit(f"{path}: is not HDF5, .npy or TIFF: for raw images give --geometry, as 1024x512,u16")


def _plain(image, name):
    """As remu can play it: unsigned, little-endian."""
    if image.dtype.kind == "i" and image.size and image.min() >= 0:
        image = image.astype(f"u{image.dtype.itemsize}")
    if image.dtype.kind != "u" or image.dtype.itemsize > 4:
        sys.exit(f"{name}: pixels are {image.dtype}, and not u8, u16, u32, or signed ones that are not "
                 "negative")
    return numpy.ascontiguousarray(image, image.dtype.newbyteorder("<"))


def convert(options):
    """Images of all inputs, one behind the other."""
    output, count, first = options.output, 0, None
    file = data = None
    for name in options.input:
        for image in _images_of(name, options.geometry):
            image = _plain(numpy.asarray(image), name)
            first = image if first is None else first
            if image.shape != first.shape or image.dtype != first.dtype:
                sys.exit(f"{name}: image {count} is {image.shape} {image.dtype}, the first one "
                         f"{first.shape} {first.dtype}")
            if output.endswith((".h5", ".hdf5", ".nxs")):
                if data is None:
                    file = h5py.File(output, "x")
                    data = _images(file, first.shape, first.dtype)
                data.resize(count + 1, 0)
                data[count] = image
            else:
                file = file or open(output, "xb")
                file.write(image.tobytes())
            count += 1
    if not count:
        sys.exit("there is no image")
    file.close()
    height, width = first.shape
    print(f"{output}: {count} images of {width} x {height} u{8 * first.dtype.itemsize}")


def _images(file, shape, dtype):
    """The dataset that a reader of NeXus takes first."""
    data = _dataset(file, "/entry/data/data", shape, dtype)
    file.attrs["default"] = "entry"
    file["entry"].attrs.update(NX_class="NXentry", default="data")
    file["entry/data"].attrs.update(NX_class="NXdata", signal="data")
    return data


def _dataset(file, path, shape, dtype):
    return file.create_dataset(path, (0, *shape), dtype, maxshape=(None, *shape), chunks=(1, *shape))


# --- a JUNGFRAU

class Jungfrau:
    """A detector: what each pixel does with photons."""

    def __init__(self, shape, random):
        self.shape, self.random = shape, random
        spread = random.normal(1, 0.02, (3, *shape)).astype("f4")
        self.gain = spread * numpy.array(GAIN, "f4")[:, None, None]
        self.pedestal = (numpy.array(PEDESTAL, "f4")[:, None, None] +
                         random.normal(0, 30, (3, *shape)).astype("f4"))
        self.dead = random.random(shape) < 1e-5

    def raw(self, photons):
        """What it reads out: the highest gain that takes as many."""
        noise = self.random.normal(0, NOISE, self.shape).astype("f4")
        value = self.pedestal[0] + self.gain[0] * photons + noise
        code = numpy.zeros(self.shape, "u2")
        for stage in 1, 2:
            over = value > SWITCH if stage == 1 else (code == CODE[1]) & (value < VALUE - SWITCH)
            code[over] = CODE[stage]
            value[over] = (self.pedestal[stage] + self.gain[stage] * photons)[over]
        raw = numpy.clip(numpy.rint(value), 1, VALUE).astype("u2") | code
        raw[self.dead] = MISSING
        return raw

    def dark(self):
        return self.raw(numpy.zeros(self.shape, "f4"))


def _ring(shape):
    """Scattering of water: photons of a pixel, on the average."""
    y, x = numpy.ogrid[:shape[0], :shape[1]]
    r = numpy.hypot(y - shape[0] / 2, x - shape[1] / 2) / (min(shape) / 2)
    return (0.05 + 0.4 * numpy.exp(-((r - 0.6) / 0.15) ** 2)).astype("f4")


def _peaks(photons, random, count):
    """Bragg peaks: where, and how many photons."""
    height, width = photons.shape
    total = 0.
    for _ in range(count):
        y, x = random.integers(3, height - 3), random.integers(3, width - 3)
        dy, dx = numpy.mgrid[-3:4, -3:4] + random.uniform(-.5, .5, (2, 1, 1))
        spot = numpy.exp(-(dy ** 2 + dx ** 2) / 2)
        strength = 10 ** random.uniform(1.7, 4.5)
        spot = random.poisson(strength * spot / spot.sum())
        photons[y - 3:y + 4, x - 3:x + 4] += spot
        total += spot.sum()
    return total


def jungfrau(options):
    """Serial crystallography: most images are empty."""
    random = numpy.random.default_rng(options.seed)
    detector = Jungfrau(options.size, random)
    ring = _ring(options.size)
    with h5py.File(options.output, "x") as file:
        data = _images(file, options.size, "<u2")
        darks = _dataset(file, "/darks/data", options.size, "<u2")
        file["/calibration/pedestal"] = detector.pedestal
        file["/calibration/gain"] = detector.gain
        file["/calibration/mask"] = detector.dead.astype("u1")
        hits = file.create_dataset("/truth/hit", (options.images,), "u1")
        total = file.create_dataset("/truth/photons", (options.images,), "f8")
        data.resize(options.images, 0)
        for i in range(options.images):
            photons = random.poisson(ring).astype("f4")
            hits[i] = random.random() < options.hit_rate
            if hits[i]:
                total[i] = _peaks(photons, random, options.peaks)
            data[i] = detector.raw(photons)
            if sys.stderr.isatty():
                print(f"\r{i + 1} of {options.images} images", end="", file=sys.stderr)
        darks.resize(options.darks, 0)
        for i in range(options.darks):
            darks[i] = detector.dark()
        found = int(hits[...].sum())
    height, width = options.size
    print(f"{options.output}: {options.images} images of {width} x {height} u16, {found} of them hits, "
          f"{options.darks} dark ones")


# --- the command line

def _size(text):
    try:
        width, height = map(int, text.split("x"))
    except ValueError:
        width = height = 0
    if not 8 <= width <= 65536 or not 8 <= height <= 65536:
        raise argparse.ArgumentTypeError(f'"{text}" is not WIDTHxHEIGHT, as 1024x512')
    return height, width


def _geometry(text):
    size, _, pixel = text.partition(",")
    if pixel not in ("", "u8", "u16", "u32"):
        raise argparse.ArgumentTypeError(f'"{pixel}" is not u8, u16 or u32')
    return *_size(size), "<u" + str(int((pixel or "u16")[1:]) // 8)


def _number(least, most, kind):
    def number(text):
        value = kind(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text} is not {least} to {most}")
        return value
    return number


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python3 -m rashpa.dataset", description="Datasets for remu.")
    commands = parser.add_subparsers(required=True, metavar="convert|jungfrau")
    c = commands.add_parser("convert", help="from HDF5, TIFF, NumPy, raw, or folders of them")
    c.add_argument("input", nargs="+", help="a file, FILE:/path of HDF5, or a folder")
    c.add_argument("output", help="FILE.h5, or else raw images; must not exist")
    c.add_argument("--geometry", type=_geometry, help="of raw images: WIDTHxHEIGHT[,u8|u16|u32]")
    c.set_defaults(run=convert)
    c = commands.add_parser("jungfrau", help="made up: raw images of serial crystallography")
    c.add_argument("output", help="FILE.h5; must not exist")
    c.add_argument("--images", type=_number(1, 1 << 20, int), default=100)
    c.add_argument("--darks", type=_number(0, 1 << 20, int), default=10)
    c.add_argument("--size", type=_size, default=(512, 1024), help="WIDTHxHEIGHT (default 1024x512)")
    c.add_argument("--hit-rate", type=_number(0, 1, float), default=0.1,
                   help="part of the images with peaks (default 0.1)")
    c.add_argument("--peaks", type=_number(1, 10000, int), default=40, help="of a hit (default 40)")
    c.add_argument("--seed", type=int, default=1)
    c.set_defaults(run=jungfrau)
    options = parser.parse_args(arguments)
    if os.path.exists(options.output):
        sys.exit(f"{options.output}: is there already: remove it, or give another name")
    try:
        options.run(options)
    except OSError as failure:
        sys.exit(f"rashpa.dataset: {failure}")


if __name__ == "__main__":
    main()
