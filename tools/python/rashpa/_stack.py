# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stacks: images that came together."""
import errno
import warnings

import numpy

from ._abi import ffi, lib, size_of
from ._buffer import as_array
from ._errors import Released, check, error

_KINDS = "u1 u2 u4 u8 i1 i2 i4 i8 f4 f8".split()
_IMAGE = ffi.typeof("struct rashpa_image")
# struct rashpa_image without its pointer
_IMAGE_DTYPE = numpy.dtype({
    "names": [name for name, _ in _IMAGE.fields[1:]],
    "formats": [f"u{ffi.sizeof(field.type)}" for _, field in _IMAGE.fields[1:]],
    "offsets": [field.offset for _, field in _IMAGE.fields[1:]],
    "itemsize": ffi.sizeof(_IMAGE),
})


def dtype_of(header):
    """NumPy type of a stream's pixels."""
    kind = _KINDS[header.pixel - lib.RASHPA_PIXEL_U8]
    return numpy.dtype((">" if header.big_endian else "<") + kind)


def pixel_of(dtype):
    """The stream's type of pixels, and whether they are big-endian."""
    dtype = numpy.dtype(dtype)
    if f"{dtype.kind}{dtype.itemsize}" not in _KINDS:
        raise ValueError(f"pixels of type {dtype}: possible are {' '.join(_KINDS)}")
    big = dtype != dtype.newbyteorder("<")
    return _KINDS.index(f"{dtype.kind}{dtype.itemsize}") + lib.RASHPA_PIXEL_U8, big


class Slots:
    """The stacks of one run as arrays in mapped memory."""

    def __init__(self, header, memory):
        self.run = header.run
        self.memory = memory
        self.dtype = dtype_of(header)
        self.offset = header.data_offset
        self.stride = header.slot_stride

    def images(self, c):
        return numpy.ndarray((c.images, c.height, c.width), self.dtype, self.memory,
                             self.offset + c.slot * self.stride,
                             (c.image_stride, c.line_stride, c.pixel_bytes))


def _utc(clock, tai_ns):
    return numpy.datetime64(tai_ns - clock.utc_s * 1_000_000_000, "ns")


def _field(name, doc):
    return property(lambda self: getattr(self._c, name), doc=doc)


class _Stack:
    def __init__(self, stream, c, slots):
        # kept only while the stack is ours, so that unused streams are closed and unmapped
        self._stream = stream
        self._slots = slots
        self._lock = stream.lock
        self._c = c
        self._images = None
        self._ours = True

    number = _field("number", "Stack number, counted from the first stack in the buffer.")
    slot = _field("slot", "Number of the stack's slot.")
    run = _field("run", "Run that the stack belongs to.")

    @property
    def images(self):
        """The images: an array (images, height, width), without a copy.

        The array shows the slot. After the stack is given back, this property raises Released, and
        an array taken before shows the next content of the slot. That array is read-only then,
        but arrays derived from it are not. Copy data that must stay.
        """
        with self._lock:
            self._check()
            if self._images is None:
                self._images = self._slots.images(self._c)
            return self._images

    def _check(self):
        if not self._ours:
            raise Released(f"stack {self.number} was given away: copy what is needed longer")
        if not self._stream.is_open:
            raise Released(f"the stream of stack {self.number} was closed")

    def _give_away(self):
        self._ours = False
        self._stream = self._slots = None
        if self._images is not None:
            self._images.flags.writeable = False    # whoever still writes there is told
            self._images = None

    def __len__(self):
        return self._c.images

    def __array__(self, dtype=None, copy=None):
        return as_array(self.images, dtype, copy)

    @property
    def __array_interface__(self):
        return self.images.__array_interface__

    def __dlpack__(self, **options):
        return self.images.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.images.__dlpack_device__()

    def __repr__(self):
        return (f"<rashpa.{type(self).__name__} {self.number}: "
                f"{len(self)} images from {self.frame} on>")


class Stack(_Stack):
    """A stack taken from a stream.

    It is ours until release(). A loop over the stream releases it at the next iteration, ``with
    stack:`` at the end of the block. hold() keeps it until any thread releases it. A stack dropped
    without release() is not given back: the next consumer takes it again.
    """

    def __init__(self, stream, c, slots):
        super().__init__(stream, c, slots)
        self._held = False
        self._good = None
        self._table = None

    frame = _field("frame", "Number of the first image, as the detector counts.")
    lost = _field("lost", "Images lost right before this stack: overwritten before they were taken.")
    skipped = _field("skipped", "Images that the stream has left out so far.")
    missing = _field("missing", "Lost messages, if the producer counts messages.")
    time_ns = _field("time_ns", "CLOCK_MONOTONIC of the completion; 0: not known.")

    @property
    def datetime(self):
        """UTC of the completion, a datetime64; None: not known."""
        with self._lock:
            self._check()
            clock = self._stream._clock() if self.time_ns else None
        if clock is None:
            return None
        return _utc(clock, clock.tai_ns + self.time_ns - clock.monotonic_ns)

    @property
    def datetimes(self):
        """UTC of each image by the detector's clock, an array of datetime64; None: not known."""
        ticks = [int(tick) for tick in self.table["time"]]
        with self._lock:
            self._check()
            clock = self._stream._clock()
        if clock is None or not clock.tick_of:
            return None
        return numpy.array([_utc(clock, clock.tick_tai_ns + tick * clock.tick_ns // clock.tick_of)
                            for tick in ticks])

    event_ns = _field("event_ns", "CLOCK_MONOTONIC of the event that ended the wait for it; 0: none.")
    woken_ns = _field("woken_ns", "CLOCK_MONOTONIC at the end of that wait; 0: none.")

    @property
    def user(self):
        """Eight words of the producer."""
        return tuple(self._c.user)

    @property
    def incomplete(self):
        """Lines or messages are missing."""
        return bool(self._c.flags & lib.RASHPA_STACK_INCOMPLETE)

    @property
    def wrong(self):
        """Metadata of an image belong to another stack."""
        return bool(self._c.flags & lib.RASHPA_STACK_WRONG)

    @property
    def table(self):
        """Metadata of each image: an array with the fields of struct rashpa_image."""
        if self._table is None:
            table = ffi.new("struct rashpa_image[]", len(self))
            with self._lock:
                self._check()
                for i in range(len(self)):
                    check(lib.rashpa_stack_image_sized(self._c, i, table + i, size_of(table)))
            self._table = numpy.frombuffer(ffi.buffer(table), _IMAGE_DTYPE)
        return self._table

    @property
    def frames(self):
        """Number of each image, as the detector counts."""
        return self.table["frame"]

    @property
    def roles(self):
        """Role of each image: 0 signal, 1 dark, others defined by the detector."""
        return self.table["role"]

    def is_missing(self, process, message):
        """Was this message of a process lost?"""
        with self._lock:
            self._check()
            return bool(check(lib.rashpa_stack_missing(self._c, process, message)))

    def intact(self):
        """Is the stack not overwritten? Then all data read so far belong to it."""
        with self._lock:
            self._check()
            return bool(lib.rashpa_stack_intact(self._c))

    def done(self):
        """The next consumer need not ask for it again; the slot is ours until release()."""
        with self._lock:
            self._check()
            check(lib.rashpa_stream_done(self._stream.handle, self._c))

    def hold(self):
        """Keep the stack beyond the iteration; release() it later, in any thread. Returns the stack."""
        self._held = True
        return self

    def release(self):
        """Give the stack back. Further calls have no effect.

        Returns False if the stack was overwritten meanwhile.
        """
        with self._lock:
            if not self._ours:
                return self._good
            self._check()
            result = lib.rashpa_stream_release(self._stream.handle, self._c)
            failure = error(result) if result not in (0, -errno.ESTALE) else None
            self._give_away()
            self._good = not result
        if failure:
            raise failure
        return self._good

    def __enter__(self):
        self._held = True
        return self

    def __exit__(self, *_):
        self.release()

    def __del__(self):
        if getattr(self, "_ours", False) and self._stream.is_open and not self._stream.observes:
            warnings.warn(f"stack {self.number} was dropped without release()", ResourceWarning,
                          source=self)


class Slot(_Stack):
    """An empty stack of a producer: fill ``images``, then publish().

    ``with producer.slot() as stack:`` publishes it at the end of the block. After an exception it
    does not, and slot() returns the same slot again.
    """

    @property
    def frame(self):
        """Number of the first image, as the detector counts."""
        return self._c.frame

    @frame.setter
    def frame(self, number):
        self._c.frame = number

    @property
    def user(self):
        """Eight words for the consumer."""
        return tuple(self._c.user)

    @user.setter
    def user(self, words):
        words = tuple(words)
        self._c.user = words + (0,) * (len(self._c.user) - len(words))

    def describe(self, index, frame=None, role=0, trigger=0, time=0, missing_lines=0):
        """Set the metadata of an image. Needs a producer with meta=True; required for each image."""
        image = ffi.new("struct rashpa_image *", {
            "frame": self.frame + index if frame is None else frame,
            "role": role, "trigger": trigger, "time": time, "missing_lines": missing_lines,
        })
        with self._lock:
            self._check()
            check(lib.rashpa_stack_describe_sized(self._c, 0, index, image, size_of(image)))

    def publish(self, images=None):
        """Mark it complete; consumers see it after all earlier ones. images: number, if fewer than bunch."""
        with self._lock:
            self._check()
            if images is not None:
                self._c.images = images
            check(lib.rashpa_stream_publish(self._stream.handle, self._c))
            self._give_away()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if not self._ours:
            return
        if kind is None:
            self.publish()
        else:
            self._stream.keep(self)
