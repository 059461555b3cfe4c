# SPDX-License-Identifier: LGPL-2.1-or-later
"""Consumers and observers of streams, and producers."""
import asyncio
import errno
import threading
import time
import types
import warnings
import weakref

from ._abi import ffi, lib, names_of, plain, size_of
from ._buffer import mapped
from ._errors import Released, Timeout, check, error
from ._stack import Slot, Slots, Stack, dtype_of, pixel_of

_STATES = names_of("rashpa_stream_state", "RASHPA_STREAM_")
_POLICIES = names_of("rashpa_stream_policy", "RASHPA_STREAM_")
_CONTENTS = names_of("rashpa_stream_content", "RASHPA_CONTENT_")
_PLACES = names_of("rashpa_place_state", "RASHPA_PLACE_")
_SLICE_NS = 500_000_000     # then Python looks at its signals


class _Deadline:
    def __init__(self, seconds):
        self.end = None if seconds is None else time.monotonic() + seconds

    def left(self):
        """Seconds left; None: for ever."""
        return self.end and max(0, self.end - time.monotonic())

    def left_ns(self):
        """Time limit of the next call of the library, in ns."""
        left = self.left()
        return _SLICE_NS if left is None else int(min(_SLICE_NS, left * 1e9))

    def over(self):
        return self.end is not None and time.monotonic() >= self.end


class _Handle:
    """A handle of librashpa, and the memory of its stacks.

    One thread at a time may use the library's handle (turn). Calls that any thread may make
    must not run while the handle is closed (lock).
    """

    observes = False
    writes = True

    def __init__(self, name, handle):
        self.name = name
        self.handle = handle
        self.lock = threading.Lock()
        self._turn = threading.RLock()
        self._closing = False
        self._slots = None
        # not at exit: the kernel notifies the other end of processes that die
        self._finalizer = weakref.finalize(self, lib.rashpa_stream_close, handle)
        self._finalizer.atexit = False

    @property
    def is_open(self):
        return self.handle is not None

    def close(self):
        """Close the stream.

        Stacks not yet released are left to the next consumer. A producer's run ends: consumers take
        all published stacks.
        """
        self._closing = True
        with self.lock:
            if self.handle is not None:
                lib.rashpa_stream_wake(self.handle)
        with self._turn, self.lock:
            if self.handle is not None:
                self.handle = None
                self._slots = None
                self._finalizer()

    def _open(self):
        if self._closing:
            raise Released(f"the stream of buffer {self.name} was closed")
        return self.handle

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "handle", None) is not None:
            warnings.warn(f"the stream of buffer {self.name} was not closed", ResourceWarning,
                          source=self)

    def stat(self):
        """Counts of this run so far: the fields of struct rashpa_stream_stat."""
        stat = ffi.new("struct rashpa_stream_stat *")
        with self._turn:
            lib.rashpa_stream_get_stat_sized(self._open(), stat, size_of(stat))
        fields = plain(stat)
        fields["state"] = _STATES.get(stat.state, stat.state)
        return types.SimpleNamespace(**fields)

    @property
    def about(self):
        """Properties of the stream: the fields of struct rashpa_stream_header, and dtype; or None."""
        with self._turn:
            header = lib.rashpa_stream_get_header(self._open())
            if not header:
                return None
            return self._about(header)

    def told(self):
        """Work reported by the consumer: the fields of struct rashpa_stream_work; or None."""
        work = ffi.new("struct rashpa_stream_work *")
        with self._turn:
            result = lib.rashpa_stream_told_sized(self._open(), work, size_of(work))
        if result in (-errno.ENODATA, -errno.EAGAIN):
            return None
        check(result)
        fields = plain(work)
        fields["stages"] = [types.SimpleNamespace(**plain(stage))
                            for stage in fields.pop("stage")[:work.stages]]
        return types.SimpleNamespace(**fields)

    def places(self):
        """Places of the stream's consumers: a list with the fields of struct rashpa_place_info."""
        places, info = [], ffi.new("struct rashpa_place_info *")
        for index in range(lib.RASHPA_STREAM_PLACES):
            with self._turn:
                result = lib.rashpa_stream_get_place_sized(self._open(), index, info, size_of(info))
            if result in (-errno.ENODATA, -errno.ENOENT):
                continue
            check(result)
            fields = plain(info)
            fields["state"] = _PLACES[info.state]
            places.append(types.SimpleNamespace(**fields))
        return places

    def clock(self):
        """The stream's clock: the fields of struct rashpa_stream_clock; None: not known."""
        with self.lock:
            return self._clock()

    def _clock(self):
        clock = ffi.new("struct rashpa_stream_clock *")
        result = lib.rashpa_stream_get_clock_sized(self._open(), clock, size_of(clock))
        if result in (-errno.ENODATA, -errno.EAGAIN):
            return None
        check(result)
        return types.SimpleNamespace(**plain(clock))

    @staticmethod
    def _about(header):
        fields = plain(header)
        fields["dtype"] = dtype_of(header)
        fields["policy"] = _POLICIES[header.policy]
        fields["content"] = _CONTENTS.get(header.content, header.content)
        fields["state"] = _STATES.get(header.state, header.state)
        return types.SimpleNamespace(**fields)

    def _once(self, call, wait_ns):
        """Call the library. Returns its result, and the failure if another attempt may succeed."""
        with self._turn:
            result = call(self._open(), wait_ns)
            failure = error(result) if isinstance(result, int) and result < 0 else None
        if failure and failure.errno not in (errno.ETIMEDOUT, errno.EINTR):
            raise failure
        return result, failure

    def _repeat(self, call, timeout):
        """Call it until it succeeds, or timeout seconds have passed."""
        deadline = _Deadline(timeout)
        while True:
            result, failure = self._once(call, deadline.left_ns())
            if not failure:
                return result
            if failure.errno == errno.ETIMEDOUT and deadline.over():
                raise failure

    def _take(self, handle, wait_ns):
        """Take a stack or a slot: returns it, or None at the end."""
        c = ffi.new("struct rashpa_stack *")
        result = self._function(handle, c, wait_ns, size_of(c))
        return self._kind(self, c, self._slots_of(c)) if result > 0 else result or None

    def _slots_of(self, c):
        if self._slots is None or self._slots.run != c.run:
            header = lib.rashpa_stream_get_header(self.handle)
            payload = check(lib.rashpa_stream_payload(self.handle))
            # a second mapping, because arrays of a stack may outlive the library's handle
            self._slots = Slots(header, mapped(payload, write=self.writes))
        return self._slots


class Stream(_Handle):
    """The consumer of a buffer's stream, or an observer.

    ``for stack in rashpa.Stream("ring0"):`` takes stacks in order, each once, until the
    stream has ended. The next iteration releases the stack; a break or an exception does not.
    Another loop waits for the next stream.

    place: name of its place; consumers with different places get all stacks each. workers: number of
    workers that share the place, each a Stream of its own: each stack goes to one of them. keep:
    seconds that the place is kept for a successor if this process dies; None: no limit. lose: the
    producer does not wait for this consumer, which goes on with the newest stack if it is too late.

    observe: observe without giving credit; no other process waits for an observer. latest: take
    only the newest stack; for an observer. from_start: begin at the first stack, even of an ended
    stream. write: a consumer may write into its stacks; else arrays are read-only. timeout: time
    limit of loops in seconds; None: none. accept: names of memories and boards ("fpga0") to use
    although not all writers of the stream's header may open them.
    """

    _function, _kind = lib.rashpa_stream_next_sized, Stack

    def __init__(self, name, observe=False, latest=False, from_start=False, timeout=None,
                 accept=(), write=False, place="default", workers=1, keep=0, lose=False):
        handle = ffi.new("struct rashpa_stream **")
        flags = lib.RASHPA_STREAM_OBSERVE if observe else 0
        flags |= lib.RASHPA_STREAM_LATEST if latest else 0
        flags |= lib.RASHPA_STREAM_FROM_START if from_start else 0
        flags |= lib.RASHPA_STREAM_WRITE if write else 0
        flags |= lib.RASHPA_STREAM_LOSE if lose else 0
        place = ffi.new("char[]", place.encode())
        options = ffi.new("struct rashpa_place_options *", {
            "name": place, "flags": flags, "workers": workers,
            "keep_ns": -1 if keep is None else int(keep * 1e9),
        })
        check(lib.rashpa_stream_open_as_sized(name.encode(), options, handle, size_of(options)))
        super().__init__(name, handle[0])
        self.observes = observe
        self.writes = write
        self._latest = latest
        self._timeout = timeout
        self._current = None
        for one in accept:
            check(lib.rashpa_stream_accept(self.handle, one.encode()))

    def begin(self, timeout=None):
        """Wait for a stream; returns its properties, as about."""
        self._repeat(lib.rashpa_stream_begin, timeout)
        return self.about

    def next(self, timeout=None):
        """Take the next stack, which the caller must release; None at the end."""
        return self._repeat(self._take, timeout)

    def latest(self, timeout=0):
        """Return the newest stack of a stream with latest=True; None: no new one in time, or the end."""
        if not self._latest:
            raise ValueError("only an observer with latest=True leaves stacks out")
        try:
            return self.next(timeout)
        except Timeout:
            return None

    async def wait(self, timeout=None):
        """next() for asyncio."""
        deadline = _Deadline(timeout)
        await asyncio.sleep(0)      # others shall run, too, as long as there are stacks
        while True:
            stack, failure = self._once(self._take, 0)
            if not failure:
                return stack
            if deadline.over():
                raise failure
            # close() ends the wait, but not that of the loop
            await self._event(deadline.left_ns() / 1e9)

    async def _event(self, seconds):
        loop = asyncio.get_running_loop()
        event = loop.create_future()
        fd = check(lib.rashpa_stream_fd(self._open()))
        loop.add_reader(fd, lambda: event.done() or event.set_result(None))
        try:
            await asyncio.wait([event], timeout=seconds)
        finally:
            loop.remove_reader(fd)

    def await_end(self, timeout=None):
        """Counts of the producer; waits up to timeout seconds for the end of the stream."""
        header = ffi.new("struct rashpa_stream_header *")
        self._repeat(lambda handle, wait_ns: lib.rashpa_stream_await_end_sized(
            handle, header, wait_ns, size_of(header)), timeout)
        return self._about(header)

    def _go_on(self):
        current, self._current = self._current, None
        if current is not None and not current._held:
            current.release()

    def __iter__(self):
        return self

    def __next__(self):
        self._go_on()
        self._current = self.next(self._timeout)
        if self._current is None:
            raise StopIteration
        return self._current

    def __aiter__(self):
        return self

    async def __anext__(self):
        self._go_on()
        self._current = await self.wait(self._timeout)
        if self._current is None:
            raise StopAsyncIteration
        return self._current


class Producer(_Handle):
    """A program that fills a buffer's stream. The stream runs from now on.

    shape: (height, width) of an image; dtype: u1 to u8, i1 to i8, f4, f8; bunch: images per
    stack; images: number of images in this run, 0: until close(); slots: stacks in the buffer, 0: as many as
    fit; policy for stacks without a free slot: "wait", "overwrite" or
    "drop"; meta: with metadata of each image, see Slot.describe(); resume: number stacks on
    from where the consumer of the last stream stopped; content: "image", "profile", "peaks", or a
    number; other fields of struct rashpa_stream_header by their names.
    """

    _function, _kind = lib.rashpa_stream_slot_sized, Slot

    def __init__(self, name, shape, dtype="u2", bunch=1, images=0, slots=0, policy="wait",
                 meta=False, resume=False, content="image", **fields):
        height, width = shape
        pixel, big_endian = pixel_of(dtype)
        numbers = {name: number for number, name in _POLICIES.items()}
        if policy not in numbers:
            raise ValueError(f"policy {policy}: possible are {' '.join(numbers)}")
        contents = {name: number for number, name in _CONTENTS.items()}
        process = ffi.new("struct rashpa_stream_process[1]", [{"width": width, "height": height}])
        plan = ffi.new("struct rashpa_stream_plan *", {
            "header": {
                "width": width, "height": height, "pixel": pixel, "big_endian": big_endian,
                "bunch": bunch, "images": images, "slots": slots, "policy": numbers[policy],
                "content": contents.get(content, content),
                **{field: value.encode() if isinstance(value, str) else value
                   for field, value in fields.items()},
            },
            "process": process,
            "processes": len(process),
            "flags": (lib.RASHPA_PLAN_META if meta else 0) |
                     (lib.RASHPA_PLAN_RESUME if resume else 0),
        })
        handle = ffi.new("struct rashpa_stream **")
        check(lib.rashpa_stream_create_sized(
            name.encode(), plan, handle, size_of(plan), ffi.sizeof("struct rashpa_stream_header"),
            ffi.sizeof("struct rashpa_stream_process"), ffi.sizeof("struct rashpa_stream_module")))
        super().__init__(name, handle[0])
        self._kept = []
        check(lib.rashpa_stream_start(self.handle, 0, 0))

    def slot(self, timeout=None):
        """Return a Slot for the next stack; None: all images were sent. ENOBUFS: the stack was dropped."""
        if self._kept:
            return self._kept.pop(0)
        return self._repeat(self._take, timeout)

    def keep(self, slot):
        """Make slot() return this slot again, because it could not be filled."""
        self._kept.append(slot)
