#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Peak finders compared with NumPy versions of their descriptions, and with pyFAI's kernels
where there is OpenCL. A line "ok NAME", "not ok NAME" or "skip NAME # REASON" each, then "end"."""
import tempfile
import warnings

import numpy

warnings.simplefilter("ignore")
from pyFAI.detectors import Detector            # noqa: E402
from pyFAI.integrator.azimuthal import AzimuthalIntegrator      # noqa: E402

from rashpa.processing import Pipeline      # noqa: E402

SHAPE = (140, 210)
CENTRE = (100.3, 61.8)      # x, y
RADIUS = numpy.hypot(numpy.arange(SHAPE[1]) + 0.5 - CENTRE[0],
                     numpy.arange(SHAPE[0])[:, None] + 0.5 - CENTRE[1])


def ok(good, name):
    print("ok" if good else "not ok", name, flush=True)


def made_up(random, peaks, level):
    """Counts around a beam, and peaks: an image, and where they are."""
    y, x = numpy.mgrid[:SHAPE[0], :SHAPE[1]]
    image = random.poisson(level * (1 + 2 * numpy.exp(-((RADIUS - 50) / 12) ** 2))).astype(float)
    where = []
    for _ in range(peaks):
        py, px = random.uniform(4, SHAPE[0] - 5), random.uniform(4, SHAPE[1] - 5)
        if any(abs(py - b) + abs(px - a) < 14 for a, b in where):
            continue
        where.append((px, py))
        spot = numpy.exp(-((x - px) ** 2 + (y - py) ** 2) / (2 * 0.9 ** 2))
        image += random.poisson(40 * level * spot)
    return numpy.minimum(image, 65000).astype("u2"), where


def rings_of(r, rings):
    return (r * (rings / r.max() * 0.999999)).astype("f4")


def moments(values, cycles, bounds, cumulative):
    """Mean and deviation of what is left after so many cycles, each of which has bounds()."""
    mean, deviation, left = numpy.nan, 0., values
    for _ in range(cycles + 1):
        if not left.size:
            break
        mean, deviation = left.mean(), left.std()
        if deviation <= 1e-6 * abs(mean):
            break
        low, high = bounds(mean, deviation, left.size)
        source = left if cumulative else values
        left = source[(source >= low) & (source < high)]
    return mean, deviation


def pyfai(image, r, rings, cycles, clip, pick, noise, patch, connected):
    """The steps of pyFAI's kernels csr_sigma_clip4 and peakfinder: x, y, sum, signal to noise."""
    def bounds(mean, deviation, n):
        far = deviation * max(clip, numpy.sqrt(2 * max(0, numpy.log(n / numpy.sqrt(2 * numpy.pi)))))
        return mean - far, numpy.nextafter(mean + far, numpy.inf)

    place = rings_of(r, rings)
    which = place.astype(int)
    stat = numpy.array([moments(image[(which == b) & ~numpy.isnan(image)], cycles, bounds, True)
                        for b in range(rings)])
    middle = numpy.arange(rings) + 0.5
    there = ~numpy.isnan(stat[:, 0])
    nearest = numpy.where(there, numpy.arange(rings), -1)
    nearest = numpy.maximum.accumulate(nearest)
    nearest[nearest < 0] = there.argmax()
    mean = numpy.interp(place, middle, stat[nearest, 0])
    deviation = numpy.interp(place, middle, stat[nearest, 1])
    above = numpy.where(numpy.isnan(image), 0, image - mean)
    uncertain = numpy.hypot(deviation, noise)
    out = (above > 0) & (above >= pick * uncertain)
    half, found = patch // 2, []
    for y, x in zip(*out.nonzero()):
        if not (half <= y < image.shape[0] - half and half <= x < image.shape[1] - half):
            continue
        box = slice(y - half, y + half + 1), slice(x - half, x + half + 1)
        if above[y, x] < above[box].max() or out[box].sum() < connected:
            continue
        weight = numpy.maximum(above[box], 0)
        dy, dx = numpy.mgrid[box]
        found.append(((weight * dx).sum() / weight.sum(), (weight * dy).sum() / weight.sum(),
                      weight.sum(), weight.sum() / numpy.sqrt((uncertain[box][weight > 0] ** 2).sum())))
    return found


def of_pyfai(image, r, rings, cycles, clip, pick, noise, patch, connected):
    """pyFAI's kernels themselves, which need OpenCL."""
    from pyFAI.opencl.peak_finder import OCL_PeakFinder
    place = rings_of(r, rings)
    which = place.astype(int).ravel()
    start = numpy.append(0, numpy.cumsum(numpy.bincount(which, minlength=rings)))
    finder = OCL_PeakFinder((numpy.ones(image.size, "f4"), numpy.argsort(which, kind="stable").astype("i4"),
                             start.astype("i4")), image.size, radius=place, empty=0.,
                            bin_centers=(numpy.arange(rings) + 0.5).astype("f4"))
    peaks = finder.peakfinder(image.astype("f4"), error_model="azimuthal", cutoff_clip=clip, cycle=cycles,
                              noise=noise, cutoff_peak=pick, patch_size=patch, connected=connected)
    peaks = numpy.sort(peaks, order="index")
    return numpy.array([peaks["pos1"], peaks["pos0"], peaks["intensity"],
                        peaks["intensity"] / peaks["sigma"]]).T


def peakfinder8(image, r, rings, cycles, snr, threshold, least, most, radius):
    """The steps of Cheetah's peakfinder8: x, y, sum, signal to noise."""
    def bounds(mean, deviation, _):
        return -numpy.inf, numpy.float32(max(mean + snr * deviation, threshold))

    which = rings_of(r, rings).astype(int)
    stat = numpy.array([moments(image[(which == b) & ~numpy.isnan(image)], cycles, bounds, False)
                        for b in range(rings)])
    limit = numpy.maximum(stat[:, 0] + snr * stat[:, 1], threshold).astype("f4")
    out = image > limit[which]
    used, found = numpy.zeros(image.shape, bool), []
    height, width = image.shape
    for y, x in zip(*out.nonzero()):
        if used[y, x] or not (0 < y < height - 1 and 0 < x < width - 1):
            continue
        pixels, used[y, x] = [(y, x)], True
        for py, px in pixels:
            for near in range(9):
                ny, nx = py + near // 3 - 1, px + near % 3 - 1
                if 0 <= ny < height and 0 <= nx < width and out[ny, nx] and not used[ny, nx]:
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
        rest = image[ny, nx][~out[ny, nx] & ~numpy.isnan(image[ny, nx])]
        weight = image[at] - rest.mean()
        deviation = rest.std() or 0.01
        if weight.sum() >= snr * deviation and image[at].max() >= rest.max():
            found.append(((weight * at[1]).sum() / weight.sum(), (weight * at[0]).sum() / weight.sum(),
                          weight.sum(), weight.sum() / deviation))
    return found


def same(peaks, right):
    """All of them, in order."""
    got = numpy.array([peaks["x"], peaks["y"], peaks["sum"], peaks["snr"]]).T
    right = numpy.array(right).reshape(-1, 4)
    return got.shape == right.shape and numpy.allclose(got, right, rtol=1e-4, atol=1e-3)


STEPS = {
    "pyfai": (pyfai, {"rings": 60, "cycles": 5, "clip": 5, "pick": 4, "noise": 2, "patch": 5,
                      "connected": 3}),
    "peakfinder8": (peakfinder8, {"rings": 60, "cycles": 4, "snr": 5, "threshold": 8,
                                  "min_pixels": 2, "max_pixels": 40, "radius": 3}),
}


def compare(finder, options, image, floating, name, where=(), r=RADIUS, beam=None):
    """Both engines, and NumPy."""
    right = STEPS[finder][0](floating, r, *options.values())
    hits = sum(any(abs(x - a) + abs(y - b) < 2 for x, y, *_ in right) for a, b in where)
    for engine in "cpu", "reference":
        config = {"peaks": {"finder": finder, **(beam or {"centre": CENTRE}), **options},
                  "veto": {"peaks": max(len(right), 1)}}
        result = Pipeline(config, engine)(image)
        ok(same(result.peaks, right) and result.kept == bool(right),
           f"peaks-numpy-put/{engine}/{finder}: {engine}: {finder}, {name}: {len(result.peaks)} peaks are NumPy's; {hits} of {len(where)} "
           "that were put there")
    return right


def is_pyfai(finder, options, image, floating, name):
    """The kernels of pyFAI find the same."""
    result = Pipeline({"peaks": {"finder": finder, "centre": CENTRE, **options}})(image)
    try:
        theirs = of_pyfai(floating, RADIUS, *options.values())
    except Exception as failure:    # no OpenCL, or none that works: each fails in its own way
        print(f"skip peaks-pyfai-kernels: peaks as pyFAI's kernels find them, {name} # there is no OpenCL ({type(failure).__name__})")
        return
    ok(same(result.peaks, theirs), f"peaks-pyfai-kernels: {name}: {len(result.peaks)} peaks are those of pyFAI's kernels")


def main():
    for finder, (_, options) in STEPS.items():
        random = numpy.random.default_rng(11)
        for count, level in (0, 3), (12, 3), (25, 200), (10, 0.2):
            image, where = made_up(random, count, level)
            floating = image.astype(float)
            image[random.random(SHAPE) < 0.01] = 65535
            floating[image == 65535] = numpy.nan
            compare(finder, options, image, floating, f"level {level}", where)
            if finder == "pyfai":
                is_pyfai(finder, options, image, floating, f"level {level}")
    # far fewer deviations than chance has in rings of so many pixels
    few = {**STEPS["pyfai"][1], "rings": 20, "clip": 2, "patch": 3, "connected": 2}
    image, where = made_up(random, 12, 20)
    compare("pyfai", few, image, image.astype(float), "Chauvenet", where)
    is_pyfai("pyfai", few, image, image.astype(float), "Chauvenet")
    # more than threads share at a time, and what is far around them
    image, _ = made_up(random, 0, 5)
    image[4:-4:8, 4:-4:8] = 700 + numpy.arange(17)[:, None] + numpy.arange(26)
    image[4:-4:8, 5:-4:8] = 500
    many = {**STEPS["peakfinder8"][1], "radius": 40, "threshold": 100, "snr": 2}
    right = compare("peakfinder8", many, image, image.astype(float), "many")
    few = Pipeline({"peaks": {"finder": "peakfinder8", "centre": CENTRE, **many, "capacity": 300}})
    result = few(image)
    ok(len(right) > 400 and len(result.peaks) == 300 and same(result.peaks, right[:300]) and
       few.stat()["overflow"] == 1, f"peaks-first-300: the first 300 of {len(right)} peaks are kept, and the overflow is counted")
    # a shade around the beam, peaks at the edges, a streak that is too long for a peak
    image, where = made_up(random, 8, 100)
    image[RADIUS < 25] = 65535
    image[0, 30:33] = image[70:72, -1] = image[-3:-1, 50:53] = 900
    image[-2, 50:53] = 1000
    image[100:103, 120:180] = 2000
    floating = numpy.where(image == 65535, numpy.nan, image)
    for finder, (_, options) in STEPS.items():
        right = compare(finder, options, image, floating, "shade, edges, streak", where)
        rim = [p for p in right if abs(numpy.hypot(p[0] - CENTRE[0], p[1] - CENTRE[1]) - 26) < 2]
        pieces = [p for p in right if 118 < p[0] < 182 and 98 < p[1] < 105]
        ok(not rim, f"no-peak-shade/{finder}: {finder}: no peak is at the shade's rim")
        if finder == "peakfinder8":
            ok(not pieces, f"no-peak-piece/{finder}: {finder}: no peak is a piece of the streak")
    # rings of the same angle, as a file of pyFAI says
    ai = AzimuthalIntegrator(detector=Detector(1e-4, 1e-4, max_shape=SHAPE), dist=0.02, poni1=0.004,
                             poni2=0.009, rot1=0.3, rot2=-0.2, rot3=0.1)
    angle = ai.array_from_unit(SHAPE, "center", "2th_deg", scale=True)
    image, where = made_up(random, 12, 20)
    with tempfile.TemporaryDirectory() as folder:
        ai.save(f"{folder}/a.poni")
        for finder, (_, options) in STEPS.items():
            compare(finder, options, image, image.astype(float), "tilted", where, angle,
                    {"poni": f"{folder}/a.poni"})
    print("end")


if __name__ == "__main__":
    main()
