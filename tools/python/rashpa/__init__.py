# SPDX-License-Identifier: LGPL-2.1-or-later
"""Detector data in NumPy arrays, without a copy: the streams and buffers of librashpa.

    for stack in rashpa.Stream("ring0"):
        process(stack.images)

See Documentation/python.rst.
"""
from ._abi import ffi, lib
from ._board import Board, Map, Window
from ._buffer import Buffer, buffers
from ._channel import Channel, Event, look
from ._errors import (Busy, Error, Malformed, ProducerDied, Released, Removed, Replaced,
                      Stopped, Timeout)
from ._stack import Slot, Stack
from ._stream import Producer, Stream

__all__ = [
    "Board", "Buffer", "Busy", "Channel", "Error", "Event", "Malformed", "Map", "Producer", "ProducerDied",
    "Released", "Removed", "Replaced", "Slot", "Stack", "Stopped", "Stream", "Timeout", "Window", "buffers",
    "look",
]

__version__ = ffi.string(lib.rashpa_version()).decode()    # of the library
