# SPDX-License-Identifier: LGPL-2.1-or-later
"""Datasets for remu: converted from other files, or simulated.

    python3 -m rashpa.dataset convert run.h5:/entry/data/data run.raw
    python3 -m rashpa.dataset jungfrau ssx.h5 --images 100 --size 2048x2048 --hit-rate 0.1

jungfrau writes one HDF5 file: /entry/data/data has raw images of the detector, /darks/data dark
images, /calibration/pedestal and gain the calibration (ADU, and ADU per photon; three gains), and
/truth the simulated hits and photons in all peaks of each image. remu plays the file, romulu reads
its calibration, and a program can compare results with the truth.
"""
import argparse
import contextlib
import os
import re
import stat
import sys
import warnings

import h5py
import numpy

VALUE = 0x3fff      # of a raw word; above it the code of the gain: 0, 1, 3
CODE = (0 << 14, 1 << 14, 3 << 14)
MISSING = 0xc000
SWITCH = 15000      # ADU: a pixel whose value would be above takes the next gain
GAIN = (40., -1.5, -0.1)        # ADU by photon, and how much pixels differ
PEDESTAL = (3000., 14500., 14200.)
NOISE = 3.          # ADU, of the highest gain


LINKS = 100         # of HDF5, one leading to the next
PIXELS = 1 << 31    # of an image, at most


class Wrong(Exception):
    """A message for the user; the output is removed."""


# --- reading

def _is_file(path):
    """None: the path does not exist. Checked first, because opening a pipe would block."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return None


def _need_file(path):
    mode = os.stat(path).st_mode    # which says why it cannot be found
    if not stat.S_ISREG(mode):
        raise Wrong(f"{path}: it is no file")


def _parts_of(folder, above=()):
    """Files of a folder and its subfolders. Circular links are refused."""
    about = os.stat(folder)
    here = about.st_dev, about.st_ino
    if here in above:
        raise Wrong(f"{folder}: a link leads back to this folder")
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name.startswith("."):
            continue
        if os.path.isdir(path):
            yield from _parts_of(path, (*above, here))
        else:
            yield path


def _dataset_of(path, file, inside):
    """Follow an HDF5 path link by link: h5py would follow links to a pipe and block."""
    def split(names):
        return [name for name in names.split("/") if name not in ("", ".")]

    names, group, links = split(inside), file, 0
    while names:
        name = names.pop(0)
        link = group.get(name, getlink=True) if isinstance(group, h5py.Group) else None
        if isinstance(link, (h5py.SoftLink, h5py.ExternalLink)):
            links += 1
            if links > LINKS:
                raise Wrong(f"{path}: {inside}: links lead to each other")
        if isinstance(link, h5py.SoftLink):
            names[:0] = split(link.path)
            group = group.file["/"] if link.path.startswith("/") else group
            continue
        if isinstance(link, h5py.ExternalLink):
            # relative paths are searched in both places
            for other in os.path.join(os.path.dirname(group.file.filename), link.filename), link.filename:
                if _is_file(other) is False:
                    raise Wrong(f"{path}: {inside}: a link leads to {other}, which is no file")
        group = group.get(name) if link is not None else None
        if group is None:
            return None
    if isinstance(group, h5py.Dataset):
        sources = [source.file_name for source in group.virtual_sources()] if group.is_virtual else []
        folder = os.path.dirname(group.file.filename)
        for other in [entry[0] for entry in group.external or ()] + sources:
            for place in os.path.join(folder, other), other:
                if other != "." and _is_file(place) is False:
                    raise Wrong(f"{path}: {inside}: has its data in {place}, which is no file")
    return group


def _images_of_hdf5(path, inside):
    try:
        with h5py.File(path) as file:
            data = _dataset_of(path, file, inside)
            if (not isinstance(data, h5py.Dataset) or data.ndim not in (2, 3) or
                    data.dtype.kind not in "iufb"):
                raise Wrong(f"{path}: {inside} is no dataset of images: give its path, as "
                            f"{path}:/entry/data/data")
            yield from data if data.ndim == 3 else [data[...]]
    except (OSError, KeyError, ValueError, RuntimeError, TypeError) as failure:
        reason = _errno_of(failure)
        raise Wrong(f"{path}: {inside}: " + (os.strerror(reason) if reason else
                    "cannot be read: it is damaged, in use, or needs a missing filter")
                    ) from failure


def _images_of_numpy(path):
    try:
        data = numpy.load(path, mmap_mode="r")
    except (ValueError, EOFError, SyntaxError) as failure:
        raise Wrong(f"{path}: is no array of numbers of NumPy, or is cut off") from failure
    if not isinstance(data, numpy.ndarray) or data.ndim not in (2, 3):
        raise Wrong(f"{path}: it has {getattr(data, 'ndim', 'no')} dimensions: images have two, a stack "
                    "of them three")
    yield from data if data.ndim == 3 else [data]


def _images_of_tiff(path):
    from PIL import Image, ImageSequence
    Image.MAX_IMAGE_PIXELS = PIXELS     # what PIL takes for a bomb, detectors have
    warnings.simplefilter("ignore")     # of what it passes over: the image is what counts
    try:
        with Image.open(path) as file:
            for page in ImageSequence.Iterator(file):
                image = numpy.array(page)
                if image.ndim != 2:
                    raise Wrong(f"{path}: it has colours: convert it to one value per pixel")
                yield image
    except (Image.DecompressionBombError, ValueError, SyntaxError, EOFError, TypeError) as failure:
        raise Wrong(f"{path}: is no TIFF that can be read") from failure
    except OSError as failure:
        if failure.errno is None:       # a sentence of PIL's
            raise Wrong(f"{path}: is no TIFF that can be read") from failure
        raise


def _images_of_raw(path, geometry):
    height, width, dtype = geometry
    image = height * width * numpy.dtype(dtype).itemsize
    size = os.path.getsize(path)
    if not size or size % image:
        raise Wrong(f"{path}: not images of {width} x {height} {dtype}: it has {size} bytes")
    yield from numpy.memmap(path, dtype, "r").reshape(-1, height, width)


def _images_of(name, geometry):
    """Images of a file, one after the other."""
    path, _, inside = name.partition(":/")
    if os.path.isdir(path):
        # list all of them now: the output may be in the same folder
        for part in list(_parts_of(path)):
            yield from _images_of(part, geometry)
        return
    _need_file(path)
    if h5py.is_hdf5(path):
        yield from _images_of_hdf5(path, "/" + (inside or "entry/data/data"))
    elif path.endswith(".npy"):
        yield from _images_of_numpy(path)
    elif path.endswith((".tif", ".tiff")):
        yield from _images_of_tiff(path)
    elif geometry:
        yield from _images_of_raw(path, geometry)
    else:
        raise Wrong(f"{path}: is not HDF5, .npy or TIFF: for raw images give --geometry, as 1024x512,u16")


def _plain(image, name):
    """Convert an image for remu: unsigned, little-endian."""
    if image.ndim != 2 or not image.size:
        raise Wrong(f"{name}: an image of {' x '.join(map(str, image.shape)) or 'no'} pixels: it has to "
                    "have lines and pixels")
    if image.dtype.kind == "i" and image.min() >= 0:
        image = image.astype(f"u{image.dtype.itemsize}")
    if image.dtype.kind != "u" or image.dtype.itemsize > 4:
        raise Wrong(f"{name}: pixels are {image.dtype}, and not u8, u16, u32, or signed ones that are not "
                    "negative")
    return numpy.ascontiguousarray(image, image.dtype.newbyteorder("<"))


# --- writing

def convert(options):
    """Images of all inputs, one after the other."""
    output, count, first = options.output, 0, None
    file = data = None
    for name in options.input:
        for image in _images_of(name, options.geometry):
            image = _plain(numpy.asarray(image), name)
            first = image if first is None else first
            if image.shape != first.shape or image.dtype != first.dtype:
                raise Wrong(f"{name}: image {count} is {image.shape} {image.dtype}, the first one "
                            f"{first.shape} {first.dtype}")
            if output.endswith((".h5", ".hdf5", ".nxs")):
                if data is None:
                    file = _create(options)
                    data = _images(file, first.shape, first.dtype)
                data.resize(count + 1, 0)
                data[count] = image
            else:
                file = file or _create(options)
                file.write(image.tobytes())
            count += 1
    if not count:
        raise Wrong("there is no image")
    file.close()
    height, width = first.shape
    print(f"{output}: {count} images of {width} x {height} u{8 * first.dtype.itemsize}")


def _create(options):
    """Create the output; it is removed on a later failure."""
    is_hdf5 = options.run is jungfrau or options.output.endswith((".h5", ".hdf5", ".nxs"))
    file = open(options.output, "xb")
    options.made = True
    if is_hdf5:
        file.close()
        file = h5py.File(options.output, "w")
    return file


def _images(file, shape, dtype):
    """The default dataset for readers of NeXus."""
    data = _dataset(file, "/entry/data/data", shape, dtype)
    file.attrs["default"] = "entry"
    file["entry"].attrs.update(NX_class="NXentry", default="data")
    file["entry/data"].attrs.update(NX_class="NXdata", signal="data")
    return data


def _dataset(file, path, shape, dtype):
    return file.create_dataset(path, (0, *shape), dtype, maxshape=(None, *shape), chunks=(1, *shape))


# --- a JUNGFRAU

class Jungfrau:
    """A detector: the response of each pixel to photons."""

    def __init__(self, shape, random):
        self.shape, self.random = shape, random
        spread = random.normal(1, 0.02, (3, *shape)).astype("f4")
        self.gain = spread * numpy.array(GAIN, "f4")[:, None, None]
        self.pedestal = (numpy.array(PEDESTAL, "f4")[:, None, None] +
                         random.normal(0, 30, (3, *shape)).astype("f4"))
        self.dead = random.random(shape) < 1e-5

    def raw(self, photons):
        """Raw values, in the highest gain that is not saturated."""
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
    """Scattering of water: mean photons per pixel."""
    y, x = numpy.ogrid[:shape[0], :shape[1]]
    r = numpy.hypot(y - shape[0] / 2, x - shape[1] / 2) / (min(shape) / 2)
    return (0.05 + 0.4 * numpy.exp(-((r - 0.6) / 0.15) ** 2)).astype("f4")


def _peaks(photons, random, count):
    """Bragg peaks: positions and photons."""
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
    file = _create(options)
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
    file.close()    # and not when something fails: see _fail()
    height, width = options.size
    print(f"{options.output}: {options.images} images of {width} x {height} u16, {found} of them hits, "
          f"{options.darks} dark ones")


# --- the command line

def _size(text):
    found = re.fullmatch("([0-9]{1,5})x([0-9]{1,5})", text)
    width, height = map(int, found.groups()) if found else (0, 0)
    if not 8 <= width <= 65536 or not 8 <= height <= 65536:
        raise argparse.ArgumentTypeError(f'"{text}" is not WIDTHxHEIGHT of 8 to 65536 pixels each, '
                                         "as 1024x512")
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
    c = commands.add_parser("convert", help="convert files of HDF5, TIFF, NumPy, raw images, or folders of them")
    c.add_argument("input", nargs="+", help="a file, FILE:/path of HDF5, or a folder")
    c.add_argument("output", help="FILE.h5, or else raw images; must not exist")
    c.add_argument("--geometry", type=_geometry, help="geometry of raw images: WIDTHxHEIGHT[,u8|u16|u32]")
    c.set_defaults(run=convert)
    c = commands.add_parser("jungfrau", help="simulate raw images of serial crystallography")
    c.add_argument("output", help="FILE.h5; must not exist")
    c.add_argument("--images", type=_number(1, 1 << 20, int), default=100)
    c.add_argument("--darks", type=_number(0, 1 << 20, int), default=10)
    c.add_argument("--size", type=_size, default=(512, 1024), help="WIDTHxHEIGHT (default 1024x512)")
    c.add_argument("--hit-rate", type=_number(0, 1, float), default=0.1,
                   help="part of the images with peaks (default 0.1)")
    c.add_argument("--peaks", type=_number(1, 10000, int), default=40, help="peaks in a hit (default 40)")
    c.add_argument("--seed", type=int, default=1)
    c.set_defaults(run=jungfrau)
    options = parser.parse_args(arguments)
    options.made = False
    if os.path.lexists(options.output):
        sys.exit(f"{options.output}: exists already: remove it, or give another name")
    try:
        options.run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        _fail(options, "interrupted", 130)
    except MemoryError:
        _fail(options, "no memory for an image")
    except Wrong as failure:
        _fail(options, failure)
    except (OSError, KeyError, ValueError, RuntimeError, TypeError) as failure:
        reason = _errno_of(failure)
        _fail(options, f"{getattr(failure, 'filename', None) or options.output}: " +
              (os.strerror(reason) if reason else f"cannot be made: {failure}"))


def _errno_of(failure):
    """errno of a failure; sometimes h5py has it only in its text."""
    found = re.search(r"errno = ([0-9]+)", str(failure))
    return getattr(failure, "errno", None) or (int(found[1]) if found else None)


def _fail(options, sentence, status=1):
    """
    Remove the incomplete output, and end. The file is not closed first, because HDF5 crashes if the
    disk has no room for unwritten data.
    """
    if options.made:
        with contextlib.suppress(OSError):
            os.unlink(options.output)
    print(f"rashpa.dataset: {sentence}", file=sys.stderr, flush=True)
    os._exit(status)


if __name__ == "__main__":
    main()
