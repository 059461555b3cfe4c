# SPDX-License-Identifier: LGPL-2.1-or-later
"""Recordings of romulu: images in files of several folders, found by an index.

    recording = rashpa.recording.Recording("/disk0/run", "/disk1/run")
    for image in recording: ...
    image = recording.frame(1000)

The module needs NumPy only.
"""
import numpy

_KINDS = " u1 u2 u4 u8 i1 i2 i4 i8 f4 f8".split(" ")
_HEADER = numpy.dtype([("magic", "S8"), ("version", "<u4"), ("header_size", "<u4"), ("record_size", "<u4"),
                       ("files", "<u4"), ("width", "<u4"), ("height", "<u4"), ("pixel", "<u4"), ("bit_depth", "<u4"),
                       ("big_endian", "<u4"), ("bunch", "<u4"), ("line_stride", "<u8"),
                       ("image_stride", "<u8"), ("pitch", "<u8")])
_IMAGE = numpy.dtype([("frame", "<u8"), ("trigger", "<u8"), ("time", "<u8"), ("stack", "<u8"), ("offset", "<u8"),
                      ("file", "<u2"), ("flags", "<u2"), ("run", "<u4"), ("role", "<u4"), ("missing_lines", "<u4"),
                      ("index", "<u4"), ("images", "<u4")])


class Recording:
    """A sequence of images, as read-only arrays in the files. images: the entries of the index, an array."""

    def __init__(self, *folders):
        with open(f"{folders[0]}/frames.index", "rb") as index:
            head = self.header = numpy.frombuffer(index.read(128), _HEADER, 1)[0]
            data = index.read()
        if (head["magic"], head["version"], head["files"]) != (b"RASHPREC", 1, len(folders)):
            raise ValueError(f"{folders[0]}: no recording of version 1 in {len(folders)} folders")
        images = numpy.frombuffer(data, _IMAGE, len(data) // _IMAGE.itemsize)
        last, = numpy.nonzero(images["index"] + 1 == images["images"])
        self.images = images[:last[-1] + 1 if len(last) else 0]     # of whole stacks
        self.dtype = numpy.dtype("<>"[head["big_endian"]] + _KINDS[head["pixel"]])
        self._files = [numpy.memmap(f"{folder}/frames-{i}.raw", mode="r") if (self.images["file"] == i).any() else b""
                       for i, folder in enumerate(folders)]

    def __len__(self):
        return len(self.images)

    def __getitem__(self, k):
        head, image = self.header, self.images[k]
        return numpy.ndarray((head["height"], head["width"]), self.dtype, self._files[image["file"]],
                             image["offset"], (head["line_stride"], self.dtype.itemsize))

    def frame(self, number):
        """The image with that frame number, the first one if there are several."""
        found, = numpy.nonzero(self.images["frame"] == number)
        if not len(found):
            raise KeyError(number)
        return self[found[0]]
