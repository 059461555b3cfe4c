# SPDX-License-Identifier: LGPL-2.1-or-later
"""python3 -m rashpa.view BUFFER: view a stream without slowing it."""
import argparse
import collections
import sys
import time

import matplotlib
import numpy
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from . import Error, ProducerDied, Removed, Replaced, Stopped, Stream

EXIT_FAILED, EXIT_TIMEOUT = 1, 3
MOST_PIXELS = 1 << 20   # of a picture: more than a window has
RATE_LOOKS = 16
KEPT_LOOKS = 1000       # of which the hit rate is shown
SIZE = 11, 7    # inches
ENDS = (ProducerDied, Removed, Replaced, Stopped)


class Looker:
    """Takes the newest stack from time to time, and keeps the displayed data."""

    def __init__(self, stream):
        self.stream = stream
        self.image = None
        self.torn = 0
        self.state = "no stream yet"
        self._begin_run(None)

    def _begin_run(self, run):
        self.run = run
        self.sum = None
        self.looks = 0
        self.marks = collections.deque(maxlen=RATE_LOOKS)   # (time, number of the stack)
        self.kept = collections.deque(maxlen=KEPT_LOOKS)    # (time, images, of them kept), so far
        self.peaks = []     # arrays: how many, of each image that was looked at, and where
        self.lost = self.skipped = self.frame = 0

    @property
    def content(self):
        about = self.stream.about
        return about.content if about and about.content in PICTURES else "image"

    @property
    def rate(self):
        """Images per second during the last few samples, or None."""
        if len(self.marks) < 2:
            return None
        (begin, first), (end, last) = self.marks[0], self.marks[-1]
        return (last - first) * self.stream.about.bunch / (end - begin)

    @property
    def hit_rates(self):
        """Two lists of samples: seconds, and per cent of the images since the previous sample."""
        begin = self.kept[0][0] if self.kept else 0
        steps = [(now[0] - begin, 100 * (now[2] - last[2]) / (now[1] - last[1]))
                 for last, now in zip(self.kept, list(self.kept)[1:]) if now[1] > last[1]]
        return [x for x, _ in steps], [y for _, y in steps]

    def _count(self, stack):
        """(signal images so far, kept ones), as reported by the consumer; or None."""
        if self.content != "image":
            return stack.user[:2]
        work = self.stream.told()
        return (work.images, work.images - work.vetoed) if work else None

    def look(self, timeout=0):
        """Take a sample; is it new?"""
        try:
            stack = self.stream.latest(timeout)
        except ENDS as end:
            self.state = end.strerror
            return False
        if stack is None:
            if self.stream.about:
                self.state = self.stream.stat().state
            return False
        with stack:
            return self._take(stack)

    def _take(self, stack):
        image = stack.images[-1]
        step = 1
        while self.content == "image" and image[::step, ::step].size > MOST_PIXELS:
            step += 1
        copy = image[::step, ::step].astype(numpy.float64)
        count = self._count(stack)
        if not stack.intact():
            self.torn += 1      # it was overwritten while it was copied
            return False
        now = time.monotonic()
        if stack.run != self.run:
            self._begin_run(stack.run)
            self.sum = numpy.zeros_like(copy)
        self.marks.append((now, stack.number))
        if count:
            self.kept.append((now, *count))
        if self.content == "peaks":
            # the first line without a peak ends the list
            ends = numpy.flatnonzero(numpy.isnan(copy[:, 0]))
            copy = copy[:ends[0]] if ends.size else copy
            self.peaks = self.peaks[-KEPT_LOOKS:] + [copy[:, :3]]
        else:
            self.sum += copy
        self.image = copy
        self.looks += 1
        self.frame = stack.frame + len(stack) - 1
        self.lost += stack.lost
        self.skipped = stack.skipped
        self.state = "running"
        return True


class Images:
    """The last image, the mean image, and a histogram."""

    def __init__(self, figure, places):
        self.panes = [(place, place.imshow(numpy.zeros((1, 1)), cmap="viridis"))
                      for place in places[:2]]
        for place, shown in self.panes:
            figure.colorbar(shown, ax=place)
        self.histogram = places[2]

    @staticmethod
    def scale(image, log):
        """Contrast: the range without the few darkest and brightest pixels."""
        good = image[numpy.isfinite(image)]
        if log:
            good = good[good > 0]
        if not good.size:
            return Normalize(0, 1)
        low, high = numpy.percentile(good, (0.5, 99.5))
        return (LogNorm if log else Normalize)(low, high if high > low else low + 1)

    def draw(self, looker, log):
        titles = (f"image {looker.frame}", f"mean of {looker.looks} images that were looked at")
        for (place, shown), image, title in zip(
                self.panes, (looker.image, looker.sum / looker.looks), titles):
            shown.set_norm(self.scale(image, log))
            shown.set_data(image)
            shown.set_extent((0, image.shape[1], image.shape[0], 0))
            place.set_title(title, size="small")
        self.histogram.clear()
        good = looker.image[numpy.isfinite(looker.image)]
        if good.size:
            self.histogram.hist(good, bins=100, log=True, histtype="stepfilled")
        self.histogram.set_title("pixels of the image", size="small")


def draw_hit_rate(place, looker):
    place.clear()
    place.plot(*looker.hit_rates, ".-", markersize=3, linewidth=0.8)
    place.set_ylim(bottom=0)
    place.set_xlabel("s", size="small")
    place.set_title("images that were kept, %", size="small")


class Profiles:
    """The last profile, the mean profile, the hit rate, and the errors."""

    def __init__(self, _, places):
        self.places = places

    def draw(self, looker, log):
        top, rate, side = self.places
        where, value = looker.image[:2]
        error = looker.image[2] if len(looker.image) > 2 else None
        top.clear()
        top.errorbar(where, value, error, linewidth=0.8, elinewidth=0.4, label="last")
        top.plot(where, looker.sum[1] / looker.looks, linewidth=0.8,
                 label=f"mean of {looker.looks}")
        top.set_xlabel(looker.stream.about.dataset.replace("_", " "), size="small")
        top.set_title(f"profile of image {looker.frame}", size="small")
        top.legend(fontsize="small")
        side.clear()
        good = numpy.flatnonzero(numpy.isfinite(value) & (value > 0))
        side.loglog(where[good], value[good], linewidth=0.8)
        side.set_title("the last one, both logarithmic", size="small")
        if log and good.size:
            top.set_yscale("log")
        draw_hit_rate(rate, looker)


class Peaks:
    """Positions and numbers of peaks, and the hit rate."""

    def __init__(self, _, places):
        self.places = places

    def draw(self, looker, log):
        top, rate, side = self.places
        everywhere = numpy.concatenate(looker.peaks)
        top.clear()
        top.scatter(everywhere[:, 0], everywhere[:, 1], s=2, color="silver")
        top.scatter(looker.image[:, 0], looker.image[:, 1], s=9, facecolors="none",
                    edgecolors="red")
        top.set_aspect("equal")
        top.invert_yaxis()
        top.set_title(f"{len(looker.image)} peaks of image {looker.frame}, and those before", size="small")
        side.clear()
        side.hist([len(peaks) for peaks in looker.peaks], bins=30, log=log)
        side.set_title("peaks in an image", size="small")
        draw_hit_rate(rate, looker)


PICTURES = {"image": Images, "profile": Profiles, "peaks": Peaks}


class Picture:
    """The content of the stream, and its counts."""

    def __init__(self, figure, looker, log):
        self.figure = figure
        self.looker = looker
        self.log = log
        self.content = None
        self.axes = []
        figure.suptitle(looker.stream.name)
        self.draw()

    def _begin(self, content):
        before = set(self.figure.axes) - set(self.axes)
        for place in self.axes:
            place.remove()
        places = self.figure.subplots(2, 2, width_ratios=(3, 2))
        text = places[1, 1]
        text.set_axis_off()
        self.words = text.text(0, 1, "", va="top", family="monospace", size="small", wrap=True)
        self.content = content
        self.panes = PICTURES[content](self.figure, (places[0, 0], places[1, 0], places[0, 1]))
        self.axes = [place for place in self.figure.axes if place not in before]

    def draw(self, images=True):
        looker = self.looker
        if looker.content != self.content:
            self._begin(looker.content)
        self.words.set_text(self.numbers())
        if looker.image is not None and images:
            self.panes.draw(looker, self.log)

    def numbers(self):
        looker = self.looker
        rows = [("state", looker.state)]
        about = looker.stream.about
        if about:
            rows += [(looker.content + "s" * (looker.content != "peaks"),
                      f"{about.width} x {about.height} {about.dtype}"),
                     ("stack", f"{about.bunch} images"),
                     ("policy", about.policy),
                     ("dataset", about.dataset or "-")]
        if looker.kept:
            images, kept = looker.kept[-1][1:]
            rows += [("kept", f"{kept} of {images} images, {100 * kept / max(images, 1):.1f} %")]
        rows += [("rate", "-" if looker.rate is None else f"{looker.rate:.1f} images/s"),
                 ("looked at", looker.looks),
                 ("lost", f"{looker.lost} (overwritten before a look)"),
                 ("skipped", f"{looker.skipped} (left out by the stream)"),
                 ("torn", f"{looker.torn} (overwritten during a look)")]
        return "\n".join(f"{name:<10} {value}" for name, value in rows)


class Enough:
    """Is the time over? It starts with the first call."""

    def __init__(self, args, looker):
        self.looker = looker
        self.looks = args.looks
        self.after = args.after
        self.end = None

    def __call__(self):
        now = time.monotonic()
        if self.end is None and self.after is not None:
            self.end = now + self.after
        return (self.looks is not None and self.looker.looks >= self.looks or
                self.end is not None and now >= self.end)


def save(args, looker):
    """Sample for the given time without a window, and write a picture."""
    figure = Figure(figsize=SIZE, layout="constrained")
    picture = Picture(figure, looker, args.log)
    enough = Enough(args, looker)
    while not enough():
        if looker.look(args.interval) and not enough():
            time.sleep(args.interval)
    if looker.image is None:
        print(f"view: buffer {args.buffer}: no image came within {args.after:g} s: "
              "start a producer (remu)", file=sys.stderr)
        return EXIT_TIMEOUT
    picture.draw()
    figure.savefig(args.save)
    print(picture.numbers())
    return 0


def window(args, looker):
    """Run until the window is closed."""
    from matplotlib import pyplot   # chooses how to draw: only where there is a window
    from matplotlib.widgets import CheckButtons

    enough = Enough(args, looker)
    figure = pyplot.figure(f"rashpa: {args.buffer}", figsize=SIZE, layout="constrained")
    if figure.canvas.required_interactive_framework is None:
        print("view: there is no window system: use --save FILE", file=sys.stderr)
        return EXIT_FAILED
    picture = Picture(figure, looker, args.log)
    button = CheckButtons(figure.add_axes((0.9, 0.95, 0.08, 0.05)), ["log"], [args.log])

    def toggle(_):
        picture.log = not picture.log
        picture.draw()
        figure.canvas.draw_idle()

    def tick():
        if enough():
            pyplot.close(figure)
            return
        picture.draw(looker.look())
        figure.canvas.draw_idle()

    button.on_clicked(toggle)
    timer = figure.canvas.new_timer(int(args.interval * 1000), [(tick, (), {})])
    timer.start()
    pyplot.show()
    print(picture.numbers())
    return 0


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="python3 -m rashpa.view",
        description="Show the stream of a buffer: the last image, the mean of all sampled "
                    "images, a histogram, rate and losses; for streams of profiles or peaks, these and the "
                    "hit rate. The viewer is an observer and does not slow the stream.",
        epilog="Exit status: 0; 1 failed; 2 wrong usage; 3 no image came within --after.")
    parser.add_argument("buffer", help="name of the buffer")
    parser.add_argument("--log", action="store_true", help="logarithmic colours")
    parser.add_argument("--interval", type=float, default=0.2, metavar="SECONDS",
                        help="time between samples (default: %(default)s)")
    parser.add_argument("--save", metavar="FILE", help="no window: write a picture (PNG, PDF ...)")
    parser.add_argument("--after", type=float, metavar="SECONDS",
                        help="sample for SECONDS, then write the picture, or close the window")
    parser.add_argument("--looks", type=int, metavar="NUMBER",
                        help="end after NUMBER sampled images; with --save alone the default is "
                             "--after 3")
    parser.add_argument("--accept", metavar="NAME", action="append", default=[],
                        help="use this memory, although some writers of the stream's header may "
                             "not; repeatable")
    args = parser.parse_args(argv)
    if args.save:
        matplotlib.use("Agg")
        if args.after is None and args.looks is None:
            args.after = 3
    try:
        # show the last image even of an ended stream
        with Stream(args.buffer, observe=True, latest=True, from_start=True,
                    accept=args.accept) as stream:
            return (save if args.save else window)(args, Looker(stream))
    except Error as failure:
        print(f"view: {failure.strerror}", file=sys.stderr)
        return EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
