#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Datasets for remu: datasets.py FOLDER [RAW WIDTH HEIGHT]

Into FOLDER: NAME.raw, the pixels one behind the other, and NAME.GEOMETRY.SUFFIX, files that have
the same; files that are to be refused in FOLDER/bad. With RAW, a file of u16 images, only FOLDER/real.h5
of it: NeXus, chunks of a few images, packed.
"""
import struct
import sys

import h5py
import numpy

IMAGES, HEIGHT, WIDTH = 5, 67, 101
LZ4 = 32004
# tags of TIFF
(TAG_WIDTH, TAG_HEIGHT, TAG_BITS, TAG_PACKED, TAG_PHOTOMETRIC, TAG_STRIP, TAG_SAMPLES, TAG_ROWS,
 TAG_STRIP_BYTES) = 256, 257, 258, 259, 262, 273, 277, 278, 279
TAG_TILE_WIDTH, TAG_TILE_HEIGHT, TAG_TILE, TAG_TILE_BYTES, TAG_FORMAT = 322, 323, 324, 325, 339


class Tiff:
    """Pages of it, uncompressed, in either byte order; big: offsets of 64 bits."""

    def __init__(self, path, order="<", big=False):
        self.file = open(path, "wb")
        self.order, self.big = order, big
        self.offset = "Q" if big else "I"
        self.file.write({"<": b"II", ">": b"MM"}[order])
        if big:
            self._put("HHH", 43, 8, 0)
        else:
            self._put("H", 42)
        self.link = self.file.tell()    # where the offset of the next page belongs
        self._put(self.offset, 0)

    def _put(self, form, *values):
        self.file.write(struct.pack(self.order + form, *values))

    def _array(self, values):
        """An array of offsets: where it is."""
        at = self.file.tell()
        self._put(self.offset * len(values), *values)
        return at

    def page(self, image, rows=None, tile=None, **changed):
        """Strips of some rows, or square tiles; other values of tags for what is to be refused."""
        image = numpy.asarray(image)
        height, width = image.shape[:2]
        data = image.astype(image.dtype.newbyteorder(self.order))
        if tile:
            pad = [(0, -height % tile), (0, -width % tile)]
            data = numpy.pad(data, pad)
            parts = [data[y:y + tile, x:x + tile] for y in range(0, height, tile)
                     for x in range(0, width, tile)]
        else:
            rows = rows or height
            parts = [data[y:y + rows] for y in range(0, height, rows)]
        offsets, sizes = [], []
        for part in parts:
            offsets.append(self.file.tell())
            sizes.append(len(part.tobytes()))
            self.file.write(part.tobytes())
        kind = {"u": 1, "i": 2, "f": 3}[image.dtype.kind]
        tags = {TAG_WIDTH: width, TAG_HEIGHT: height, TAG_BITS: image.dtype.itemsize * 8,
                TAG_PACKED: 1, TAG_PHOTOMETRIC: 1, TAG_SAMPLES: 1, TAG_FORMAT: kind}
        if tile:
            tags |= {TAG_TILE_WIDTH: tile, TAG_TILE_HEIGHT: tile, TAG_TILE: offsets,
                     TAG_TILE_BYTES: sizes}
        else:
            tags |= {TAG_ROWS: rows, TAG_STRIP: offsets, TAG_STRIP_BYTES: sizes}
        tags |= {int(tag[1:]): value for tag, value in changed.items()}
        self._directory(tags)

    def _directory(self, tags):
        arrays = {tag: self._array(v) for tag, v in tags.items() if isinstance(v, list) and len(v) > 1}
        at = self.file.tell()
        self._put("Q" if self.big else "H", len(tags))
        for tag in sorted(tags):
            value, count = tags[tag], 1
            if isinstance(value, list):
                count = len(value)
                value = arrays.get(tag, value[0])
                form = self.offset
            else:
                form = "I"
            self._put("HH", tag, {"I": 4, "Q": 16}[form])
            self._put(self.offset, count)
            if form == "I" and self.big:
                self._put("II", value, 0)
            else:
                self._put(self.offset, value)
        link = self.file.tell()
        self._put(self.offset, 0)
        self.file.seek(self.link)
        self._put(self.offset, at)
        self.file.seek(0, 2)
        self.link = link

    def close(self):
        self.file.close()


def tiff(path, stack, order="<", big=False, **options):
    to = Tiff(path, order, big)
    for image in stack:
        to.page(image, **options)
    to.close()


def hdf5(path, stack, name="data", **options):
    with h5py.File(path, "w") as file:
        file.create_dataset(name, data=stack, **options)


def good(folder):
    random = numpy.random.default_rng(1)
    stack = {}
    for name, top in ("u8", 1 << 8), ("u16", 1 << 16), ("u32", 1 << 32):
        stack[name] = random.integers(0, top, (IMAGES, HEIGHT, WIDTH), name.replace("u", "uint"))
        stack[name].tofile(f"{folder}/{name}.raw")
        with open(f"{folder}/{name}.geometry", "w", encoding="ascii") as to:
            to.write(f"{WIDTH}x{HEIGHT},{name}")
        hdf5(f"{folder}/{name}.plain.h5", stack[name])
        tiff(f"{folder}/{name}.strips.tif", stack[name], rows=10)
    u16 = stack["u16"]
    hdf5(f"{folder}/u16.order.h5", u16.astype(">u2"), chunks=(2, 33, 40), compression="gzip",
         shuffle=True)
    hdf5(f"{folder}/u16.lz4.h5", u16, chunks=(1, HEIGHT, WIDTH), compression=LZ4)
    tiff(f"{folder}/u16.order.tif", u16, order=">")
    tiff(f"{folder}/u16.tiles.tif", u16, tile=32)
    tiff(f"{folder}/u16.big.tif", u16, big=True, rows=HEIGHT)
    # packed by a library, and by its suffix something else
    from PIL import Image
    pages = [Image.fromarray(image) for image in u16]
    pages[0].save(f"{folder}/u16.packed.h5", "TIFF", save_all=True, append_images=pages[1:],
                  compression="tiff_lzw")
    # NeXus, next to other images
    with h5py.File(f"{folder}/u16.nexus.nxs", "w") as file:
        file["entry/instrument/detector/data"] = u16
        file["entry/instrument/flat/data"] = u16[::-1]
        file["entry/result/image"] = file["entry/instrument/detector/data"]
        file.attrs["default"] = "entry"
        file["entry"].attrs["default"] = numpy.bytes_("result")
        file["entry/result"].attrs["signal"] = "image"
    # without default: the only signal; a link of a name outside, and a mask next to it
    with h5py.File(f"{folder}/u16.signal.h5", "w") as file:
        file["entry/other"] = u16[::-1]
        file["entry/data/mask"] = u16[0]
        file["entry/data/counts"] = h5py.ExternalLink("u16.plain.h5", "/data")
        file["entry/data"].attrs["signal"] = "counts"
    with h5py.File(f"{folder}/u16.linked.cxi", "w") as file:
        file["entry/mask"] = u16[0].astype("u4")
        file["entry/flat"] = u16[0].astype("f4")
        file["entry/data_000001"] = h5py.ExternalLink("u16.plain.h5", "/data")
    layout = h5py.VirtualLayout((IMAGES, HEIGHT, WIDTH), "u2")
    layout[...] = h5py.VirtualSource("u16.plain.h5", "data", (IMAGES, HEIGHT, WIDTH))
    with h5py.File(f"{folder}/u16.virtual.h5", "w") as file:
        file.create_virtual_dataset("data", layout)
    # one image
    u16[:1].tofile(f"{folder}/one.raw")
    with open(f"{folder}/one.geometry", "w", encoding="ascii") as to:
        to.write(f"{WIDTH}x{HEIGHT}")
    hdf5(f"{folder}/one.flat.h5", u16[0])
    tiff(f"{folder}/one.page.tif", u16[:1])
    return u16


def bad(folder, u16):
    hdf5(f"{folder}/float.h5", u16.astype("f4"), name="a")
    hdf5(f"{folder}/signed.h5", u16.astype("i4"))
    hdf5(f"{folder}/wide.h5", u16.astype("u8"))
    hdf5(f"{folder}/four.h5", u16[None])
    hdf5(f"{folder}/empty.h5", u16[:0], maxshape=(None, HEIGHT, WIDTH))
    hdf5(f"{folder}/text.h5", "text")
    with h5py.File(f"{folder}/several.h5", "w") as file:
        for i in range(12):
            file[f"entry/data_{i:06}"] = u16[:1]
        file["entry/again"] = file["entry/data_000000"]
        file["soft"] = h5py.SoftLink("/entry/data_000003")
        file["circle"] = h5py.SoftLink("/circle")
        file["gone"] = h5py.ExternalLink("gone.h5", "/data")
    with h5py.File(f"{folder}/circle.h5", "w") as file:
        file.attrs["default"] = "a"
        file["a/b"] = 1
        file["a"].attrs["default"] = "up"
        file["a/up"] = file["a"]
    # packed by an unknown filter
    with h5py.File(f"{folder}/filter.h5", "w") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((1, HEIGHT, WIDTH))
        plist.set_filter(32099, h5py.h5z.FLAG_OPTIONAL, ())
        h5py.h5d.create(file.id, b"data", h5py.h5t.NATIVE_UINT16,
                        h5py.h5s.create_simple(u16.shape), plist)
    layout = h5py.VirtualLayout(u16.shape, "u2")
    layout[...] = h5py.VirtualSource("gone.h5", "data", u16.shape)
    with h5py.File(f"{folder}/virtual.h5", "w") as file:
        file.create_virtual_dataset("data", layout)
    hdf5(f"{folder}/short.h5", u16, chunks=(1, HEIGHT, WIDTH))
    with open(f"{folder}/short.h5", "r+b") as file:
        file.truncate(20000)
    tiff(f"{folder}/float.tif", u16.astype("f4"))
    tiff(f"{folder}/signed.tif", u16.astype("i2"))
    tiff(f"{folder}/wide.tif", u16.astype("u8"))
    tiff(f"{folder}/colour.tif", u16, **{f"_{TAG_SAMPLES}": 3, f"_{TAG_PHOTOMETRIC}": 2})
    tiff(f"{folder}/inverse.tif", u16, **{f"_{TAG_PHOTOMETRIC}": 0})
    tiff(f"{folder}/packing.tif", u16, **{f"_{TAG_PACKED}": 54321})
    to = Tiff(f"{folder}/pages.tif")
    to.page(u16[0])
    to.page(u16[1][:-1])
    to.close()
    tiff(f"{folder}/short.tif", u16)
    with open(f"{folder}/short.tif", "r+b") as file:
        file.truncate(2 * HEIGHT * WIDTH + 1000)
    to = Tiff(f"{folder}/huge.tif")
    to.page(u16[0], **{f"_{TAG_WIDTH}": 65536, f"_{TAG_HEIGHT}": 65536, f"_{TAG_ROWS}": 65536})
    to.close()
    with open(f"{folder}/magic.tif", "wb") as file:
        file.write(b"II*\0")
    with open(f"{folder}/magic.h5", "wb") as file:
        file.write(b"\x89HDF\r\n\x1a\n")


def main(folder, raw=None, width=0, height=0):
    if raw:
        images = numpy.fromfile(raw, "u2").reshape(-1, int(height), int(width))
        with h5py.File(f"{folder}/real.h5", "w") as file:
            file.create_dataset("entry/data/data", data=images, compression="gzip",
                                compression_opts=1, shuffle=True, chunks=(3, 128, 1024))
            file["entry/data"].attrs["signal"] = "data"
        return
    bad(f"{folder}/bad", good(folder))


main(*sys.argv[1:])
