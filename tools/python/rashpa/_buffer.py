# SPDX-License-Identifier: LGPL-2.1-or-later
"""Named buffers."""
import mmap
import os
import weakref

import numpy

from ._abi import ffi, lib, libc
from ._errors import check


def as_array(array, dtype, copy):
    """What __array__() returns."""
    if copy or (dtype is not None and dtype != array.dtype):
        return array.astype(array.dtype if dtype is None else dtype)
    return array


class _Mapping:
    """Mapped memory. Its arrays keep it mapped, so they cannot outlive it."""

    def __init__(self, fd, write):
        prot = mmap.PROT_READ | (mmap.PROT_WRITE if write else 0)
        address = ffi.new("void **")
        size = os.lseek(fd, 0, os.SEEK_END)
        check(lib.rashpa_mmap(fd, 0, size, prot, address))
        # at exit the kernel does so, after the last use of an array
        weakref.finalize(self, libc.munmap, address[0], size).atexit = False
        self.__array_interface__ = {
            "version": 3,
            "shape": (size,),
            "typestr": "|u1",
            "data": (int(ffi.cast("uintptr_t", address[0])), not write),
        }


def mapped(fd, write):
    """The memory behind a descriptor, as bytes."""
    return numpy.asarray(_Mapping(fd, write))


class Buffer:
    """A named buffer as bytes, without a copy.

    ``array`` is all of it as ``uint8``: use ``.view()``, slices and ``reshape()``. The memory
    stays mapped, and the buffer in use, as long as there is an array of it.

    write: open it for writing, too. exclusive: fail if any process has it open, and
    keep other processes from opening it; needs write.
    """

    def __init__(self, name, write=False, exclusive=False):
        self.name = name
        flags = (os.O_RDWR if write else os.O_RDONLY) | (os.O_EXCL if exclusive else 0)
        node = check(lib.rashpa_buffer_open(name.encode(), flags))
        try:
            self._array = mapped(node, write)
        finally:
            os.close(node)

    @property
    def array(self):
        if self._array is None:
            raise ValueError(f"buffer {self.name} was closed")
        return self._array

    def __array__(self, dtype=None, copy=None):
        return as_array(self.array, dtype, copy)

    def __len__(self):
        return len(self.array)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Close the buffer; existing arrays stay valid."""
        self._array = None

    def __repr__(self):
        return f"<rashpa.Buffer {self.name}>"


def buffers():
    """The names of all named buffers."""
    names = ffi.new("char ***")
    count = check(lib.rashpa_buffer_list(names))
    try:
        return [ffi.string(names[0][i]).decode() for i in range(count)]
    finally:
        lib.rashpa_buffer_list_free(names[0], count)
