#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A stream that has ended, in a driver of files (librashpa-fake.so): program.py [short|many|single|darks]. Writes what
names the files, and lets go of them at the end of its input. short: the second stack has one image. many: 20 stacks
at once. single: 24 stacks of an image each. darks: three of four images are signals."""
import ctypes
import os
import sys

import numpy
import rashpa

SHAPE = 64, 96
IMAGES, SLOTS, BUNCH = {"many": (40, 20, 2), "single": (24, 24, 1), "darks": (24, 12, 2)}.get("".join(sys.argv[1:]), (7, 4, 2))

driver = ctypes.CDLL(os.environ["RASHPA_LIBRARY"])
driver.fake_buffer.restype = ctypes.c_void_p
if driver.fake_driver_load() or not driver.fake_buffer(b"frames", ctypes.c_uint64(1 << 20)):
    sys.exit("no driver")
images = numpy.random.default_rng(8).poisson(30, (IMAGES, *SHAPE)).astype("u2")
images[::3] += 100
with rashpa.Producer("frames", SHAPE, "u2", bunch=BUNCH, images=IMAGES, slots=SLOTS, meta=sys.argv[1:] == ["darks"]) as producer:
    while slot := producer.slot(0):
        with slot:
            slot.images[:] = images[slot.frame:slot.frame + len(slot)]
            if sys.argv[1:] == ["darks"]:
                for i in range(BUNCH):
                    slot.describe(i, role=int((slot.frame + i) % 4 == 1))
            if sys.argv[1:] == ["short"] and slot.number == 1:
                slot.publish(1)
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
print(libc.getenv(b"RASHPA_DEV").decode(), flush=True)
sys.stdin.read()
driver.fake_driver_unload()
