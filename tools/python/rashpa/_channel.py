# SPDX-License-Identifier: LGPL-2.1-or-later
"""Events: interrupts of a board, words of a buffer."""
import collections
import errno
import os
import select

from ._abi import ffi, lib, names_of, size_of
from ._errors import Timeout, check
from ._fd import Opened, Owner

_KINDS = names_of("rashpa_source", "RASHPA_SOURCE_")
_CONDITIONS = {name: number for number, name in
               names_of("rashpa_condition", "RASHPA_CONDITION_").items()}

Event = collections.namedtuple("Event", "sequence time_ns source kind value lost")


def look(buffer):
    """Report written words of a buffer: sends the events of their sources. Returns their number."""
    with Opened() as opened:
        node = opened.add(lib.rashpa_buffer_open(buffer.encode(), os.O_RDWR))
        return check(lib.rashpa_memory_look(opened.add(lib.rashpa_memory_open()),
                                            opened.add(lib.rashpa_buffer_dmabuf(node))))


class Channel(Owner):
    """A queue of events; its descriptor is readable when there are some.

    fpga: number of a board, for its interrupts; None: a channel for words that programs write.
    """

    def __init__(self, fpga=None):
        with Opened() as opened:
            node = opened.add(lib.rashpa_memory_open() if fpga is None else
                              lib.rashpa_device_open(fpga))
            self._fd = check(lib.rashpa_channel_open(node, 0))
        # do not block if another thread takes the record first
        os.set_blocking(self._fd, False)
        self._of_memory = fpga is None

    def vector(self, number, one_shot=False):
        """Listen to an interrupt vector; returns the number of the source."""
        return self._listen(lib.RASHPA_SOURCE_ONE_SHOT if one_shot else 0,
                            kind=lib.RASHPA_SOURCE_VECTOR, index=number)

    def word(self, buffer, offset, bits=64, condition="changed", value=0, step=0, vector=0,
             one_shot=False):
        """Listen to a word of a buffer; returns the number of the source.

        A board's channel checks the word at each interrupt of the vector, other channels at look().
        """
        if condition not in _CONDITIONS:
            raise ValueError(f"condition {condition}: possible are {' '.join(_CONDITIONS)}")
        flags = lib.RASHPA_SOURCE_ONE_SHOT if one_shot else 0
        flags |= lib.RASHPA_SOURCE_LOOK if self._of_memory else 0
        with Opened() as opened:
            node = opened.add(lib.rashpa_buffer_open(buffer.encode(), os.O_RDWR))
            return self._listen(flags, kind=lib.RASHPA_SOURCE_LOCK, index=vector,
                                offset=offset, bits=bits,
                                memory=opened.add(lib.rashpa_buffer_dmabuf(node)),
                                condition=_CONDITIONS[condition], value=value, step=step)

    def _listen(self, flags, **fields):
        source = ffi.new("struct rashpa_source_add *", {"device": -1, "memory": -1, **fields})
        source.head.flags = flags
        check(lib.rashpa_ioctl(self.fileno(), lib.RASHPA_IOC_SOURCE_ADD, source, size_of(source)))
        return source.out_id

    def arm(self, source):
        """Let a one-shot source report its next event. True: there is one already.

        Take all events first, then arm: no event is lost between the two.
        """
        return bool(check(lib.rashpa_channel_arm(self.fileno(), source)))

    def read(self, timeout=None):
        """Return the next event; raises Timeout after timeout seconds."""
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        event = ffi.new("struct rashpa_event *")
        while True:
            if not poll.poll(None if timeout is None else timeout * 1000):
                raise Timeout(errno.ETIMEDOUT, "no event in time")
            try:
                ffi.buffer(event)[:] = os.read(self.fileno(), ffi.sizeof(event[0]))
            except BlockingIOError:
                continue
            return Event(event.sequence, event.time_ns, event.source,
                         _KINDS.get(event.kind, event.kind), event.value, event.lost)
