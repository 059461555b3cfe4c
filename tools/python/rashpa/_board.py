# SPDX-License-Identifier: LGPL-2.1-or-later
"""Boards: registers, and memory for their DMA."""
import os
import types

from ._abi import ffi, lib, names_of, plain, size_of
from ._buffer import mapped
from ._errors import check
from ._fd import Opened, Owner

_DIRECTIONS = {"both": 0, "to-memory": 1, "from-memory": 2}
_CLASSES = names_of("rashpa_class", "RASHPA_CLASS_")


class Window:
    """A mapped range of a board's BAR: ``window[0x28]`` is the register of 32 bits at byte 0x28.

    Registers of a removed board read as ones.
    """

    def __init__(self, fd):
        self._words = mapped(fd, write=True).view("<u4")

    def __len__(self):
        """Bytes."""
        return self._words.nbytes

    def _index(self, offset):
        if offset % 4 or not 0 <= offset < len(self):
            raise IndexError(f"byte {offset:#x} is not a register of a window of {len(self):#x} bytes")
        return offset // 4

    def __getitem__(self, offset):
        return int(self._words[self._index(offset)])

    def __setitem__(self, offset, value):
        at = 4 * self._index(offset)
        lib.rashpa_doorbell(ffi.cast("void *", self._words.ctypes.data), at, value)


class Map(Owner):
    """A buffer that is mapped for a board until close().

    id: its number; kind: "host", "iova", "peer" or "bridge"; segments: number of its segments.
    """

    def __init__(self, made):
        self._fd = made.out_fd
        self.id, self.segments = made.out_id, made.out_segments
        self.kind = _CLASSES.get(made.out_class, made.out_class)
        self._size = made.out_table_size

    def addresses(self):
        """Address and length of each segment, for the board; EPERM without the right to see them."""
        table = ffi.new("struct rashpa_table **")
        check(lib.rashpa_table_map(self.fileno(), self._size, table))
        try:
            copy = ffi.new("struct rashpa_table *", {"segment": self.segments})
            found = check(lib.rashpa_table_read_sized(table[0], copy, self.segments,
                                                      ffi.sizeof("struct rashpa_segment")))
            return [(s.address, s.length) for s in copy.segment[0:min(found, self.segments)]]
        finally:
            lib.rashpa_table_unmap(table[0], self._size)


class Board(Owner):
    """A board: the function of /dev/rashpa/fpgaN."""

    def __init__(self, number):
        self._fd = check(lib.rashpa_device_open(number))

    def _call(self, request, kind, flags=0, **fields):
        arg = ffi.new(f"struct {kind} *", fields)
        arg.head.flags = flags
        check(lib.rashpa_ioctl(self.fileno(), request, arg, size_of(arg)))
        return arg

    @property
    def info(self):
        """The fields of struct rashpa_device_info, without "out_"."""
        fields = plain(self._call(lib.RASHPA_IOC_DEVICE_INFO, "rashpa_device_info"))
        return types.SimpleNamespace(**{name.removeprefix("out_"): value for name, value in fields.items()
                                        if name != "head"})

    def window(self, name="", **fields):
        """Map a window of the profile; or a range of a BAR: bar, offset, length."""
        with Opened() as opened:
            made = self._call(lib.RASHPA_IOC_WINDOW_MAKE, "rashpa_window_make",
                              lib.RASHPA_WINDOW_BLANK, name=name.encode(), **fields)
            return Window(opened.add(made.out_fd))

    def map(self, buffer, direction="both", **fields):
        """Map a buffer for the board; direction: "both", "to-memory" or "from-memory".

        Other fields are those of struct rashpa_map_make: offset, length, max_segment, boundary, alignment.
        """
        if direction not in _DIRECTIONS:
            raise ValueError(f"direction {direction}: possible are {' '.join(_DIRECTIONS)}")
        with Opened() as opened:
            node = opened.add(lib.rashpa_buffer_open(buffer.encode(), os.O_RDWR))
            memory = opened.add(lib.rashpa_buffer_dmabuf(node))
            return Map(self._call(lib.RASHPA_IOC_MAP_MAKE, "rashpa_map_make", fd=memory,
                                  direction=_DIRECTIONS[direction], **fields))
