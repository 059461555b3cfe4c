# SPDX-License-Identifier: LGPL-2.1-or-later
"""The processing of romulu --pipeline for arrays: librashpa-processing.

    pipeline = rashpa.processing.Pipeline("photons.json")
    result = pipeline(image)
    if result.kept:
        show(result.image)

See Documentation/processing.rst.
"""
import contextlib
import errno
import json
import os
import threading
import weakref

import numpy

from ._cdef import ffi
from ._errors import Error

try:
    lib = ffi.dlopen(os.environ.get("RASHPA_PROCESSING_LIBRARY") or "librashpa-processing.so.0")
except OSError as failure:
    raise ImportError(f"{failure}: install it, run ldconfig, or set RASHPA_PROCESSING_LIBRARY "
                      "to its path") from None

_PIXELS = {"u1": 1, "u2": 2, "u4": 3}
_SIGNAL, _DARK = 0, 1


def _check(result):
    if result < 0:
        raise Error(-result, ffi.string(lib.rashpa_reason()).decode(errors="replace"))
    return result


class _Memory:
    """Memory of a result; its arrays keep it."""

    def __init__(self, owner, pointer, shape, kind):
        self._owner = owner
        self.__array_interface__ = {
            "version": 3, "shape": shape, "typestr": kind,
            "data": (int(ffi.cast("uintptr_t", pointer)), True),
        }


class Result:
    """Results of an image. Arrays stay valid as long as they are referenced.

    kept: no veto. frame: its number. above: pixels above the veto's threshold. image: float32.
    csr: (row, column, value) of the pixels that the compression kept, None if too many; elements: number of
    pixels above its threshold. intensity, sigma: the profile. peaks: a structured array.
    images, mean, deviation: of the accumulated images, with the last of them. Results without a
    stage are None.
    """

    def __init__(self, c):
        self._c = c
        for name in "frame", "kept", "above", "elements", "images":
            setattr(self, name, getattr(c, name))
        plane = (c.height, c.width)
        self.image = self._array(c.image, plane)
        self.intensity = self._array(c.intensity, (c.bins,))
        self.sigma = self._array(c.sigma, (c.bins,))
        self.mean = self._array(c.mean, plane)
        self.deviation = self._array(c.deviation, plane)
        row = self._array(c.row, (c.height + 1,), "<u4")
        self.csr = row if row is None else (row, self._array(c.column, (c.elements,), "<u4"),
                                            self._array(c.value, (c.elements,)))
        self.peaks = None
        if c.peak:
            kind = [(name, "<u4" if name == "pixels" else "<f4")
                    for name, _ in ffi.typeof("struct rashpa_peak").fields]
            raw = self._array(ffi.cast("char *", c.peak), (ffi.sizeof(c.peak[0]) * c.peaks,), "|u1")
            self.peaks = raw.view(kind)

    def _array(self, pointer, shape, kind="<f4"):
        return numpy.asarray(_Memory(self._c, pointer, shape, kind)) if pointer else None


def _let_go(process, lock, handles):
    """Close an unreferenced pipeline, or any at exit, when threads may still run it."""
    if os.getpid() == process and lock.acquire(timeout=5):
        try:
            while handles:
                lib.rashpa_pipeline_close(handles.pop())
        finally:
            lock.release()


class Pipeline:
    """Stages for images of one geometry.

    config: a file of JSON, or a dict. engine: "cpu", "reference", or a board, as "fpga0", that
    pretreats; after its failure this pipeline has no more results. Sinks in config get each result
    that is kept; finish(), or the end of "with", completes their files.

    One thread at a time runs it, others wait. Only the process that opened it may use it.
    """

    def __init__(self, config, engine="cpu"):
        text = json.dumps(config) if isinstance(config, dict) else os.fsdecode(config)
        if "\0" in text + engine:
            raise ValueError("a name has a NUL character")
        handle = ffi.new("struct rashpa_pipeline **")
        _check(lib.rashpa_pipeline_open(text.encode(errors="surrogateescape"), engine.encode(),
                                        handle))
        self._process, self._lock, self._handles = os.getpid(), threading.RLock(), [handle[0]]
        self._end = weakref.finalize(self, _let_go, self._process, self._lock, self._handles)
        # the file is read only once: it may be a pipe
        c = ffi.new("struct rashpa_pipeline_stat *")
        lib.rashpa_pipeline_get_stat_sized(handle[0], c, ffi.sizeof(c[0]))
        self._sinks = c.sink[0].name != ffi.NULL
        self._kind, self._finished = None, False

    @contextlib.contextmanager
    def _mine(self):
        """The handle, locked against other threads."""
        if os.getpid() != self._process:
            # the thread that held the lock does not exist in this process
            raise Error(errno.EBUSY, f"the pipeline is process {self._process}'s, of which this one is "
                        "a fork: open one here")
        with self._lock:
            if not self._handles:
                raise ValueError("the pipeline is closed")
            yield self._handles[0]

    def __reduce_ex__(self, protocol):
        # copies would free the same memory
        raise TypeError("a pipeline cannot be copied or pickled: open another one")

    def _begin(self, handle, image):
        if image.ndim != 2 or image.dtype.str[1:] not in _PIXELS:
            raise ValueError(f"an image of {image.ndim} dimensions of {image.dtype}: possible are "
                             "two, of uint8, uint16 or uint32")
        height, width = image.shape
        geometry = ffi.new("struct rashpa_geometry *",
                           {"width": width, "height": height, "bunch": 1,
                            "pixel": _PIXELS[image.dtype.str[1:]]})
        _check(lib.rashpa_pipeline_begin_sized(handle, geometry, ffi.sizeof(geometry[0])))
        self._kind = image.shape, image.dtype.newbyteorder("<")

    def __call__(self, image, frame=0, dark=False):
        """Process an image; a dark one moves the pedestal."""
        image = numpy.asarray(image)
        with self._mine() as handle:
            if self._finished:
                raise ValueError("the pipeline is finished: open another one")
            if self._kind is None:
                self._begin(handle, image)
            if image.shape != self._kind[0] or image.dtype.newbyteorder("<") != self._kind[1]:
                raise ValueError(f"an image of {image.shape} {image.dtype} in a pipeline for "
                                 f"{self._kind[0]} {self._kind[1]}")
            # strides of an array with one line may be anything
            image = numpy.require(image, self._kind[1], "CA")
            c = lib.rashpa_result_new_sized(handle, ffi.sizeof("struct rashpa_result"))
            if not c:
                raise MemoryError("no memory for a result")
            c = ffi.gc(c, lib.rashpa_result_free)
            c.frame, c.role = frame, _DARK if dark else _SIGNAL
            kept = _check(lib.rashpa_pipeline_run(handle, ffi.from_buffer(image),
                                                  image.shape[1] * image.itemsize, c))
            if kept and self._sinks:
                _check(lib.rashpa_pipeline_put(handle, c))
            return Result(c)

    def axis(self):
        """Centres of the bins of profiles, and their unit; None: no profiles. Valid after an image."""
        bins, unit = ffi.new("uint32_t *"), ffi.new("char **")
        with self._mine() as handle:
            middles = lib.rashpa_pipeline_axis(handle, bins, unit)
            if not middles:
                return None
            return (numpy.frombuffer(ffi.buffer(middles, 8 * bins[0]), "f8").copy(),
                    ffi.string(unit[0]).decode())

    def stat(self):
        """Counts: images, seconds and bytes of each used stage and sink."""
        def each(array, count):
            return {ffi.string(s.name).decode():
                    {"images": s.images, "lost": s.lost, "seconds": s.ns / 1e9,
                     "bytes_in": s.bytes_in, "bytes_out": s.bytes_out}
                    for s in array[0:count] if s.images}

        c = ffi.new("struct rashpa_pipeline_stat *")
        with self._mine() as handle:
            lib.rashpa_pipeline_get_stat_sized(handle, c, ffi.sizeof(c[0]))
            return {"images": c.images, "dark": c.dark, "vetoed": c.vetoed, "overflow": c.overflow,
                    "stages": each(c.stage, c.stages), "sinks": each(c.sink, c.sinks)}

    def flush(self):
        """Write all results so far to the files of sinks, for other readers."""
        with self._mine() as handle:
            _check(lib.rashpa_pipeline_flush(handle))

    def finish(self):
        """Complete the files of sinks; no more images are possible. Has no effect before the first image."""
        with self._mine() as handle:
            _check(lib.rashpa_pipeline_finish(handle))
            self._finished = self._kind is not None

    def close(self):
        """Close the pipeline, after other threads have left it. Results stay."""
        if os.getpid() != self._process:
            return
        with self._lock:
            while self._handles:
                lib.rashpa_pipeline_close(self._handles.pop())

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        try:
            if self._sinks and kind is None:
                self.finish()
        finally:
            self.close()
