#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The window of python3 -m rashpa.view, of a stream that is not one: needs a display, and no driver."""
import argparse
import types

import numpy

from rashpa import view


class Stack:
    """Four images of a run, whose numbers go on."""

    run, lost, skipped = 1, 0, 0

    def __init__(self, number):
        self.number = number
        self.images = numpy.arange(4 * 64 * 128, dtype=numpy.uint16).reshape(4, 64, 128) + number
        self.frame = 4 * number

    def __len__(self):
        return 4

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def intact(self):
        return self.number != 2     # the third one is overwritten while it is looked at


class Stream:
    name = "ring0"
    about = types.SimpleNamespace(width=128, height=64, dtype="uint16", bunch=4, policy="wait", dataset="")

    def __init__(self):
        self.number = -1

    def latest(self, _timeout):
        self.number += 1
        return Stack(self.number)


looker = view.Looker(Stream())
args = argparse.Namespace(buffer="ring0", interval=0.01, looks=4, after=None, log=True)
assert view.window(args, looker) == 0
assert (looker.looks, looker.torn, looker.frame) == (4, 1, 4 * 4 + 3), vars(looker)
assert looker.rate > 0
