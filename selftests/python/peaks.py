#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Peak finders beside NumPy, written once more from their descriptions. A line "ok NAME" or
"not ok NAME" each, then "end"."""
import numpy

from rashpa.processing import Pipeline

SHAPE = (140, 210)
CENTRE = (100.3, 61.8)      # x, y


def ok(good, name):
    print("ok" if good else "not ok", name, flush=True)


def made_up(random, peaks, level):
    """Counts around a beam, and peaks: an image, and where they are."""
    y, x = numpy.mgrid[:SHAPE[0], :SHAPE[1]]
    r = numpy.hypot(x + 0.5 - CENTRE[0], y + 0.5 - CENTRE[1])
    image = random.poisson(level * (1 + 2 * numpy.exp(-((r - 50) / 12) ** 2))).astype(float)
    where = []
    for _ in range(peaks):
        py, px = random.uniform(4, SHAPE[0] - 5), random.uniform(4, SHAPE[1] - 5)
        if any(abs(py - b) + abs(px - a) < 14 for a, b in where):
            continue
        where.append((px, py))
        spot = numpy.exp(-((x - px) ** 2 + (y - py) ** 2) / (2 * 0.9 ** 2))
        image += random.poisson(40 * level * spot)
    return numpy.minimum(image, 65000).astype("u2"), where


def rings_of(shape, rings):
    y, x = numpy.mgrid[:shape[0], :shape[1]]
    r = numpy.hypot(x + 0.5 - CENTRE[0], y + 0.5 - CENTRE[1])
    return (r * (rings / r.max() * 0.999999)).astype("f4")


def clipped(values, cycles, keep):
    """Mean and deviation of those that keep() leaves, after so many cycles."""
    mean, deviation, left = 0., 0., values
    for _ in range(cycles + 1):
        if not left.size:
            break
        mean, deviation = left.mean(), left.std()
        if deviation <= 1e-6 * abs(mean):
            break
        left = values[keep(values, mean, deviation)]
    return mean, deviation


def pyfai(image, rings, cycles, clip, pick, noise, patch, connected):
    place = rings_of(image.shape, rings)
    which = place.astype(int)
    stat = numpy.array([clipped(image[(which == b) & ~numpy.isnan(image)], cycles,
                                lambda v, m, d: numpy.abs(v - m) <= clip * d) for b in range(rings)])
    middle = numpy.arange(rings) + 0.5
    mean = numpy.interp(place, middle, stat[:, 0])
    deviation = numpy.interp(place, middle, stat[:, 1])
    out = image > mean + numpy.maximum(pick * deviation, noise)
    half, found = patch // 2, []
    for y, x in zip(*out.nonzero()):
        box = (slice(max(y - half, 0), y + half + 1), slice(max(x - half, 0), x + half + 1))
        inside, before = image[box], numpy.zeros(image.shape, bool)
        before.ravel()[:y * image.shape[1] + x] = True
        if (inside > image[y, x]).any() or (before[box] & (inside == image[y, x])).any():
            continue
        if out[box].sum() < connected:
            continue
        above = numpy.where(numpy.isnan(inside), 0, numpy.maximum(inside - mean[y, x], 0))
        dy, dx = numpy.mgrid[box]
        found.append(((above * dx).sum() / above.sum(), (above * dy).sum() / above.sum(), above.sum()))
    return found


def peakfinder8(image, rings, cycles, snr, threshold, least, most, radius):
    which = rings_of(image.shape, rings).astype(int)
    stat = numpy.array([clipped(image[(which == b) & ~numpy.isnan(image)], cycles,
                                lambda v, m, d: v < numpy.float32(max(m + snr * d, threshold)))
                        for b in range(rings)])
    limit = numpy.maximum(stat[:, 0] + snr * stat[:, 1], threshold).astype("f4")
    out = image > limit[which]
    used, found = numpy.zeros(image.shape, bool), []
    height, width = image.shape
    for y, x in zip(*out.nonzero()):
        if used[y, x]:
            continue
        pixels, used[y, x] = [(y, x)], True
        for py, px in pixels:
            if len(pixels) > most:
                break
            for near in range(9):
                ny, nx = py + near // 3 - 1, px + near % 3 - 1
                if (len(pixels) <= most and 0 <= ny < height and 0 <= nx < width and out[ny, nx]
                        and not used[ny, nx]):
                    used[ny, nx] = True
                    pixels.append((ny, nx))
        if not least <= len(pixels) <= most:
            continue
        at = tuple(numpy.array(pixels).T)
        weight = image[at] - stat[which[at], 0]
        cy, cx = (weight * at[0]).sum() / weight.sum(), (weight * at[1]).sum() / weight.sum()
        ring = 2 * radius
        dy, dx = numpy.mgrid[-ring:ring, -ring:ring]
        ny, nx = dy + round(cy), dx + round(cx)
        inside = (dy ** 2 + dx ** 2 <= ring ** 2) & (ny >= 0) & (ny < height) & (nx >= 0) & (nx < width)
        ny, nx = ny[inside], nx[inside]
        rest = image[ny, nx][~used[ny, nx] & ~numpy.isnan(image[ny, nx])]
        above = image[at] - rest.mean()
        if above.sum() >= snr * rest.std() and above.max() >= rest.max() - rest.mean():
            found.append((cx, cy, above.sum()))
    return found


def same(peaks, right):
    """All of them, in order."""
    got = numpy.array([peaks["x"], peaks["y"], peaks["sum"]]).T
    right = numpy.array(right).reshape(-1, 3)
    return got.shape == right.shape and numpy.allclose(got, right, rtol=1e-4, atol=1e-3)


if __name__ == "__main__":
    steps = {
        "pyfai": (pyfai, {"rings": 60, "cycles": 5, "clip": 5, "pick": 4, "noise": 2, "patch": 5,
                          "connected": 3}),
        "peakfinder8": (peakfinder8, {"rings": 60, "cycles": 5, "snr": 5, "threshold": 8,
                                      "min_pixels": 2, "max_pixels": 40, "radius": 3}),
    }
    for name, (function, options) in steps.items():
        random = numpy.random.default_rng(11)
        for count, level in (0, 3), (12, 3), (25, 200), (10, 0.2):
            image, where = made_up(random, count, level)
            floating = image.astype(float)
            image[random.random(SHAPE) < 0.01] = 65535
            floating[image == 65535] = numpy.nan
            right = function(floating, *options.values())
            hits = sum(any(abs(x - a) + abs(y - b) < 2 for x, y, _ in right) for a, b in where)
            for engine in "cpu", "reference":
                config = {"peaks": {"finder": name, "centre": CENTRE, **options},
                          "veto": {"peaks": max(len(right), 1)}}
                pipeline = Pipeline(config, engine)
                r = pipeline(image)
                ok(same(r.peaks, right) and r.kept == bool(right),
                   f"{engine}: {name}, level {level}: {len(r.peaks)} peaks are NumPy's; {hits} of "
                   f"{len(where)} that were put there")
    print("end")
