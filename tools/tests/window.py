#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Test the window of python3 -m rashpa.view with a simulated stream: needs a display, but no driver."""
import argparse
import types

import numpy

from rashpa import view


ABOUT = {
    "image": (4, 64, 128, "uint16", ""),
    "profile": (1, 3, 128, "float64", "q_nm^-1"),
    "peaks": (1, 10, 6, "float32", ""),
}


class Stack:
    """Images of a run, with consecutive numbers."""

    run, lost, skipped = 1, 0, 0

    def __init__(self, content, number):
        self.number = number
        bunch, height, width, kind, _ = ABOUT[content]
        self.images = numpy.arange(bunch * height * width).reshape(bunch, height, width).astype(kind) + number
        if content == "peaks":
            self.images[0, number:] = numpy.nan     # so many of them
        self.frame = bunch * number
        self.user = (10 * (number + 1), number + 1) + 6 * (0,)

    def __len__(self):
        return len(self.images)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def intact(self):
        return self.number != 2     # the third one is overwritten while it is looked at


class Stream:
    name = "ring0"

    def __init__(self, content):
        bunch, height, width, kind, dataset = ABOUT[content]
        self.about = types.SimpleNamespace(width=width, height=height, dtype=kind, bunch=bunch, policy="wait",
                                           dataset=dataset, content=content)
        self.number = -1

    def latest(self, _timeout):
        self.number += 1
        return Stack(self.about.content, self.number)

    def told(self):
        return types.SimpleNamespace(images=40 * (self.number + 1), vetoed=36 * (self.number + 1))


args = argparse.Namespace(buffer="ring0", interval=0.01, looks=4, after=None, log=True)
for name, (images, *_) in ABOUT.items():
    looker = view.Looker(Stream(name))
    assert view.window(args, looker) == 0
    assert (looker.looks, looker.torn, looker.frame) == (4, 1, images * 4 + images - 1), vars(looker)
    assert looker.rate > 0
    # keeps one of ten
    assert looker.hit_rates[1] == [10, 10, 10], looker.hit_rates
    assert looker.kept[-1][1:] == ((200, 20) if name == "image" else (50, 5)), looker.kept
assert [len(peaks) for peaks in looker.peaks] == [0, 1, 3, 4], looker.peaks
