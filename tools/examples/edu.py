#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""Control software of a board, QEMU's edu: it fills slots, this program publishes them: edu.py BUFFER N STACKS"""
import sys

import rashpa

SRC, DST, COUNT, COMMAND = 0x80, 0x88, 0x90, 0x98
FROM_HOST, TO_HOST = 5, 7       # with an interrupt at the end
INSIDE = 0x40000                # address of its 4 KiB
IMAGE = 16 * 32 * 2             # bytes

buffer, number, stacks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with rashpa.Board(number) as board, board.map(buffer) as memory, rashpa.Channel(number) as channel:
    (bus, _), = memory.addresses()      # a buffer is contiguous
    registers = board.window("registers")
    channel.vector(0)

    def copy(source, destination, command):
        """Let the board copy an image."""
        for register, value in (SRC, source), (DST, destination), (COUNT, IMAGE), (COMMAND, command):
            registers[register] = value
        channel.read(timeout=10)

    with rashpa.Producer(buffer, (16, 32), "u2", images=stacks) as producer:
        about = producer.about
        while slot := producer.slot():
            with slot:
                place = bus + about.data_offset + slot.slot * about.slot_stride
                slot.images[:] = slot.number    # the board has no detector: it reads this
                copy(place, INSIDE, FROM_HOST)
                slot.images[:] = 0
                copy(INSIDE, place, TO_HOST)
