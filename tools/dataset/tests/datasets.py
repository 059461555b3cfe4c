#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Datasets for remu: datasets.py FOLDER [RAW WIDTH HEIGHT]

Into FOLDER: NAME.raw, the pixels one after the other, and NAME.GEOMETRY.SUFFIX, files that have
the same; files that remu has to refuse in FOLDER/bad. With RAW, a file of u16 images, only FOLDER/real.h5
of it: NeXus, chunks of a few images, packed.
"""
import sys

import h5py
import numpy

IMAGES, HEIGHT, WIDTH = 5, 67, 101
LZ4 = 32004


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
        hdf5(f"{folder}/{name}.packed.h5", stack[name], chunks=(1, 10, WIDTH), compression="gzip")
    u16 = stack["u16"]
    hdf5(f"{folder}/u16.order.h5", u16.astype(">u2"), chunks=(2, 33, 40), compression="gzip",
         shuffle=True)
    hdf5(f"{folder}/u16.lz4.h5", u16, chunks=(1, HEIGHT, WIDTH), compression=LZ4)
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
    u16[:1].tofile(f"{folder}/page.raw")
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
