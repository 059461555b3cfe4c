# SPDX-License-Identifier: LGPL-2.1-or-later
"""Images of streams: taken, binned and compressed once for all viewers, and only while there are viewers."""
import functools
import json
import struct
import threading
import time
import zlib

import numpy

from .. import Error, ProducerDied, Removed, Replaced, Stopped, Stream
from .machine import reason

MOST_PIXELS = 1 << 19       # of a picture that is sent
MOST_VALUES = 1 << 26       # bytes of an image that is copied
DUTY = 4                    # pause after a picture, in times of its processor time
AGAIN = 1                   # seconds between attempts to open a stream
ENDS = {ProducerDied: "dead", Removed: "gone", Replaced: "replaced", Stopped: "stopped"}
ABOUT = "width", "height", "bunch", "slots", "policy", "content", "dataset", "dropped", "lost", "missed"


def binned(part, b):
    """The maximum of each b x b pixels: single bright pixels stay visible. The last ones may be fewer."""
    if b > 1:
        most = numpy.fmax if part.dtype.kind == "f" else numpy.maximum
        part = numpy.pad(part, [(0, -n % b) for n in part.shape], "edge")
        part = functools.reduce(most, (part[k::b] for k in range(b)))
        part = functools.reduce(most, (part[:, k::b] for k in range(b)))
    return part


class Look:
    """One buffer's stream, followed by a thread while there are regions to show, in which it calls show(name, "look" or
    "image", message), of images also with the region."""

    def __init__(self, name, show, rate=5, accept=()):
        self.name, self.show, self.rate, self.accept = name, show, rate, accept
        self.regions = frozenset()      # replaced, never changed
        self.image = self.header = None
        self._fresh = threading.Event()
        self.state = self._thread = None

    def want(self, regions):
        """Show these regions of images from now on; none: end."""
        self.regions, self._again = frozenset(regions), True    # there may be another viewer of them
        self._fresh.set()
        if not self._thread:
            self._thread = threading.Thread(target=self._run, name=f"look {self.name}", daemon=True)
            self._thread.start()

    def sums(self, places):
        """Sum, mean, least and most of regions of the last image; those outside of it are left out."""
        image, found = self.image, []
        for x, y, w, h in places if image is not None else ():
            part = image[max(y, 0):max(y + h, 0), max(x, 0):max(x + w, 0)]
            good = part[numpy.isfinite(part)]
            if part.shape == (h, w) and good.size:
                wide = float if part.dtype.kind == "f" or part.dtype.itemsize == 8 else None
                with numpy.errstate(over="ignore"):
                    all_of = good.sum(dtype=wide), good.mean(dtype=float), good.min(), good.max()
                numbers = [n.item() if numpy.isfinite(n) else None for n in all_of]
                found.append({"at": [x, y, w, h], "numbers": numbers})
        return {"buffer": self.name, "places": found}

    def _say(self, state, stream=None, why=None):
        about = stream.about if stream else None
        words = {"buffer": self.name, "state": state, "why": why,
                 "about": about and {"dtype": about.dtype.name, **{name: getattr(about, name) for name in ABOUT}}}
        if words != self.state:
            self.state = words
            self.show(self.name, "look", json.dumps({"look": words}))

    def _run(self):
        self.state = None
        while self.regions:
            try:
                # the last image even of an ended stream
                with Stream(self.name, observe=True, latest=True, from_start=True, accept=self.accept) as stream:
                    self._follow(stream)
            except (Error, MemoryError, ValueError) as failure:
                self._say("unavailable", why=reason(failure))
                self._fresh.clear()
                self._fresh.wait(AGAIN)

    def _follow(self, stream):
        self._begin(None)
        while self.regions:
            begin, taken = time.monotonic(), time.thread_time()
            new = self._take(stream) or self._again
            self._again = False
            for region in self.regions if new else ():
                self._picture(region)
            self._fresh.clear()
            # the next image: after a multiple of the cost, and after the interval, for which a new region need not wait
            time.sleep(min(1, DUTY * (time.thread_time() - taken)))
            self._fresh.wait(max(0, begin + 1 / self.rate - time.monotonic()))

    def _begin(self, run):
        self.image = self.header = None
        self.run, self.torn, self.over = run, 0, 0

    def _take(self, stream):
        """Copy the newest image. Is there a new one?"""
        try:
            stack = stream.latest(1 / self.rate)
        except tuple(ENDS) as end:
            self._say(ENDS[type(end)], stream, end.strerror)
            return False
        if stack is None:
            self._say(stream.stat().state if stream.about else "no stream yet", stream)
            return False
        with stack:
            if stack.run != self.run:
                self._begin(stack.run)
            source = stack.images[-1]
            if source.nbytes > MOST_VALUES:
                raise Error(0, f"an image has {source.nbytes} bytes, and at most {MOST_VALUES} are shown")
            header = {"frame": stack.frame + len(stack) - 1, "role": int(stack.roles[-1]),
                      **{name: getattr(stack, name) for name in ("run", "missing", "incomplete", "wrong", "skipped")},
                      "age_ns": time.monotonic_ns() - stack.time_ns if stack.time_ns else None}
            image = source.copy()
            if not stack.intact():
                self.torn += 1          # it was overwritten while it was copied
                return False
            self.over += stack.lost     # overwritten before the page took them
        self.image, self.header = image, header
        self._say("running", stream)
        return True

    def _picture(self, region):
        """Send a region of the last image; results are sent as they are."""
        if self.image is None:
            return
        about = self.state["about"]
        height, width = self.image.shape
        x, y, w, h = region or (0, 0, width, height)
        x, y = min(max(x, 0), width - 1), min(max(y, 0), height - 1)
        w, h = max(1, min(w, width - x)), max(1, min(h, height - y))
        # pixels of a line that become one
        b = next(b for b in range(1, w + h) if -(-w // b) * -(-h // b) <= MOST_PIXELS)
        if about["content"] in ("profile", "peaks"):
            b, h = 1, min(h, max(1, MOST_PIXELS // w))
        pixels = binned(self.image[y:y + h, x:x + w], b)
        # a type that browsers have; integers of 64 bits are exact up to 2**53
        kind = "f8" if pixels.dtype.itemsize == 8 else pixels.dtype.str[1:]
        header = json.dumps({
            **self.header, **{name: about[name] for name in ("content", "dataset", "width", "height")},
            "buffer": self.name, "x": x, "y": y, "bin": b, "rows": pixels.shape[0], "columns": pixels.shape[1],
            "kind": kind, "over": self.over, "torn": self.torn}).encode()
        payload = zlib.compress(numpy.ascontiguousarray(pixels, "<" + kind), 1)
        self.show(self.name, "image", struct.pack("<I", len(header)) + header + payload, region)
