#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""Stream from a board that keeps its vendor's driver: vendor.py BUFFER DEVICE STACKS

The driver copies by DMA to the memory that a program reads into, as XDMA's /dev/xdma0_c2h_0, or a disk with
O_DIRECT. The pages of the slots are pinned by that driver, and nothing is copied by a processor.
"""
import os
import sys

import rashpa

buffer, device, stacks = sys.argv[1], os.open(sys.argv[2], os.O_RDONLY | os.O_DIRECT), int(sys.argv[3])
with rashpa.Producer(buffer, (64, 64), "u2", images=stacks) as producer:
    while slot := producer.slot():
        with slot:
            got = os.readv(device, [slot.images])
            if got != slot.images.nbytes:
                sys.exit(f"{got} bytes of {slot.images.nbytes}")
