# SPDX-License-Identifier: LGPL-2.1-or-later
"""python3 -m rashpa.view BUFFER: see a stream, without slowing anybody."""
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
SIZE = 11, 7    # inches
ENDS = (ProducerDied, Removed, Replaced, Stopped)


class Looker:
    """Takes the last stack now and then, and keeps what is shown."""

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
        self.lost = self.skipped = self.frame = 0

    @property
    def rate(self):
        """Images per second between the last few looks, or None."""
        if len(self.marks) < 2:
            return None
        (begin, first), (end, last) = self.marks[0], self.marks[-1]
        return (last - first) * self.stream.about.bunch / (end - begin)

    def look(self, timeout=0):
        """Is there something new?"""
        try:
            stack = self.stream.latest(timeout)
        except ENDS as end:
            self.state = end.strerror
            return False
        if stack is None:
            if self.stream.about:
                self.state = self.stream.status().state
            return False
        with stack:
            return self._take(stack)

    def _take(self, stack):
        image = stack.images[-1]
        step = 1
        while image[::step, ::step].size > MOST_PIXELS:
            step += 1
        copy = image[::step, ::step].astype(numpy.float64)
        if not stack.intact():
            self.torn += 1      # it was overwritten while it was copied
            return False
        now = time.monotonic()
        if stack.run != self.run:
            self._begin_run(stack.run)
            self.sum = numpy.zeros_like(copy)
        self.marks.append((now, stack.number))
        self.image = copy
        self.sum += copy
        self.looks += 1
        self.frame = stack.frame + len(stack) - 1
        self.lost += stack.lost
        self.skipped = stack.skipped
        self.state = "running"
        return True


class Picture:
    """The last image, the mean one, a histogram, and numbers."""

    def __init__(self, figure, looker, log):
        self.figure = figure
        self.looker = looker
        self.log = log
        places = figure.subplots(2, 2, width_ratios=(3, 2))
        self.panes = [(place, place.imshow(numpy.zeros((1, 1)), cmap="viridis"))
                      for place in places[:, 0]]
        for place, shown in self.panes:
            figure.colorbar(shown, ax=place)
        self.histogram, self.text = places[:, 1]
        self.text.set_axis_off()
        self.words = self.text.text(0, 1, "", va="top", family="monospace", size="small",
                                    wrap=True)
        figure.suptitle(looker.stream.name)
        self.draw()

    def scale(self, image):
        """Contrast: what is between the darkest and the brightest few pixels."""
        good = image[numpy.isfinite(image)]
        if self.log:
            good = good[good > 0]
        if not good.size:
            return Normalize(0, 1)
        low, high = numpy.percentile(good, (0.5, 99.5))
        return (LogNorm if self.log else Normalize)(low, high if high > low else low + 1)

    def draw(self, images=True):
        looker = self.looker
        self.words.set_text(self.numbers())
        if looker.image is None or not images:
            return
        titles = (f"image {looker.frame}", f"mean of {looker.looks} images that were looked at")
        for (place, shown), image, title in zip(
                self.panes, (looker.image, looker.sum / looker.looks), titles):
            shown.set_norm(self.scale(image))
            shown.set_data(image)
            shown.set_extent((0, image.shape[1], image.shape[0], 0))
            place.set_title(title, size="small")
        self.histogram.clear()
        good = looker.image[numpy.isfinite(looker.image)]
        if good.size:
            self.histogram.hist(good, bins=100, log=True, histtype="stepfilled")
        self.histogram.set_title("pixels of the image", size="small")

    def numbers(self):
        looker = self.looker
        rows = [("state", looker.state)]
        about = looker.stream.about
        if about:
            rows += [("images", f"{about.width} x {about.height} {about.dtype}"),
                     ("stack", f"{about.bunch} images"),
                     ("policy", about.policy),
                     ("dataset", about.dataset or "-")]
        rows += [("rate", "-" if looker.rate is None else f"{looker.rate:.1f} images/s"),
                 ("looked at", looker.looks),
                 ("lost", f"{looker.lost} (overwritten before a look)"),
                 ("skipped", f"{looker.skipped} (left out by the stream)"),
                 ("torn", f"{looker.torn} (overwritten during a look)")]
        return "\n".join(f"{name:<10} {value}" for name, value in rows)


class Enough:
    """Is it time to end? From the first question on."""

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
    """Look for so long, without a window, and write a picture."""
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
    """Until it is closed."""
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
        description="Show the stream of a buffer: the last image, the mean of all that were looked "
                    "at, a histogram, rate and losses. It only looks on: nobody waits for it.",
        epilog="Exit status: 0; 1 failed; 2 wrong usage; 3 no image came within --after.")
    parser.add_argument("buffer", help="name of the buffer")
    parser.add_argument("--log", action="store_true", help="logarithmic colours")
    parser.add_argument("--interval", type=float, default=0.2, metavar="SECONDS",
                        help="from look to look (default: %(default)s)")
    parser.add_argument("--save", metavar="FILE", help="no window: write a picture (PNG, PDF ...)")
    parser.add_argument("--after", type=float, metavar="SECONDS",
                        help="look for so long, then write it, or close the window")
    parser.add_argument("--looks", type=int, metavar="NUMBER",
                        help="until so many images were looked at; with --save and neither of both, "
                             "--after 3")
    args = parser.parse_args(argv)
    if args.save:
        matplotlib.use("Agg")
        if args.after is None and args.looks is None:
            args.after = 3
    try:
        # the last image of a stream that has ended is worth a look, too
        with Stream(args.buffer, observe=True, latest=True, from_start=True) as stream:
            return (save if args.save else window)(args, Looker(stream))
    except Error as failure:
        print(f"view: {failure.strerror}", file=sys.stderr)
        return EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
