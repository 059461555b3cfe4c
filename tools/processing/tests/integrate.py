#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Azimuthal integration compared with pyFAI's. A line "ok NAME" or "not ok NAME" each, then "end"."""
import os
import sys
import tempfile
import warnings

import numpy

warnings.simplefilter("ignore")
from pyFAI.detectors import Detector            # noqa: E402
from pyFAI.integrator.azimuthal import AzimuthalIntegrator      # noqa: E402

from rashpa.processing import Pipeline   # noqa: E402

# pyFAI has positions of pixels in single precision, which moves pixels to other bins: these sizes and
# points are sums of few powers of two, so that nothing is rounded.
PIXEL = 2 ** -14
GEOMETRIES = {
    "straight": {"dist": 0.1, "poni1": 260.25 * PIXEL, "poni2": 500.75 * PIXEL},
    "tilted": {"dist": 0.15, "poni1": 100.5 * PIXEL, "poni2": 250.25 * PIXEL, "rot1": 0.2,
               "rot2": -0.1, "rot3": 0.3},
    "off the beam": {"dist": 0.2, "poni1": -600 * PIXEL, "poni2": 1200 * PIXEL, "rot1": 0.05},
}
SHAPES = (512, 1024), (67, 103)


def ok(good, name):
    print("ok" if good else "not ok", name, flush=True)


def worst(got, right):
    """Largest relative difference; bins that only one of them has are infinitely wrong."""
    if (numpy.isnan(got) != numpy.isnan(right)).any():
        return numpy.inf
    return numpy.nanmax(numpy.abs(got - right) / numpy.nanmax(numpy.abs(right)))


def spread(ai, image, hidden, unit, polarization, theirs):
    """Error of the mean of each bin, from how much its pixels differ; each is in one bin."""
    norm = (ai.solidAngleArray(image.shape) * ai.polarization(image.shape, polarization)).ravel()
    place = ai.center_array(image.shape, unit=unit, scale=True).ravel()
    width = theirs.radial[1] - theirs.radial[0]
    which = numpy.floor((place - theirs.radial[0]) / width + 0.5).astype(int)
    which[hidden.ravel() | (which < 0) | (which >= len(theirs.radial))] = len(theirs.radial)
    bins = len(theirs.radial) + 1

    def total(what):
        return numpy.bincount(which, what, bins)[:-1]

    x = image.ravel().astype(float)
    mean = total(x) / total(norm)
    off = x - numpy.append(mean, 0)[which] * norm
    return numpy.sqrt(total(off ** 2)) / total(norm)


def compare(name, shape):
    ai = AzimuthalIntegrator(detector=Detector(PIXEL, PIXEL, max_shape=shape), wavelength=1e-10,
                                   **GEOMETRIES[name])
    ai.save("geometry.poni")
    random = numpy.random.default_rng(3)
    image = random.poisson(200, shape).astype("u2")
    mask = random.random(shape) < 0.05
    mask[10:20] = True
    numpy.save("mask.npy", mask.astype("u1"))
    image[random.random(shape) < 0.01] = 65535          # invalid in this image only
    hidden = mask | (image == 65535)
    bins = shape[1] // 2
    for split, unit, polarization, error in (("no", "2th_deg", None, "poisson"),
                                             ("bbox", "q_nm^-1", 0.95, None),
                                             ("bbox", "r_mm", None, "poisson"),
                                             ("no", "q_A^-1", -0.5, "azimuthal")):
        places = ai.array_from_unit(shape, "center", unit, scale=True)[~hidden]
        low, high = numpy.percentile(places, [1, 99])
        # bins that do not depend on who finds the first and the last pixel
        theirs = ai.integrate1d(image.astype("f4"), bins, unit=unit, mask=hidden, dummy=numpy.nan,
                                method=(split, "csr", "cython"), correctSolidAngle=True,
                                polarization_factor=polarization, error_model=error,
                                radial_range=(low, high))
        right_sigma = theirs.sigma
        if error == "azimuthal":    # pyFAI's depends on the order of pixels
            right_sigma = spread(ai, image, hidden, unit, polarization, theirs)
        config = {"poni": "geometry.poni", "bins": bins, "unit": unit, "split": split,
                  "range": [float(low), float(high)]}
        if polarization is not None:
            config["polarization"] = polarization
        if error:
            config["error"] = error
        for engine in "cpu", "reference":
            pipeline = Pipeline({"pretreat": {"mask": "mask.npy"}, "integrate": config}, engine)
            result = pipeline(image)
            axis, said = pipeline.axis()
            # The outer ones differ in what becomes of cut pixels; pyFAI has pixels' corners in single
            # precision, which shows in bins of few pixels.
            inner = theirs.count > (30 if split == "bbox" else 0)
            inner[[0, -1]] = False
            empty = theirs.count == 0
            empty[[0, -1]] = False
            good = numpy.isnan(result.intensity[empty]).all() and inner.sum() > bins * 0.7
            off = worst(result.intensity[inner], theirs.intensity[inner])
            sigma = worst(result.sigma[inner], right_sigma[inner]) if error else 0
            moved = numpy.abs(axis - theirs.radial).max() / abs(high)
            ok(good and off < 1e-6 and sigma < 2e-5 and moved < 1e-6 and said == unit,
               f"integrals/{engine}/{unit}: {engine}: {shape[1]} x {shape[0]}, {name}, {unit}, split {split}: {off:.1e} off, "
               f"error {error}: {sigma:.1e}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for which in GEOMETRIES:
            for shape_ in SHAPES:
                compare(which, shape_)
        os.chdir("/")
    print("end")
    sys.exit()
