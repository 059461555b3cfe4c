#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The example of OpenCL compared with pyFAI's integration, on a stream of a driver that is a file of this
process (librashpa-fake.so). A line "ok NAME", "not ok NAME" or "skip NAME # REASON" each, then "end"."""
import ctypes
import functools
import os
import sys
import tempfile
import types
import warnings

import numpy

warnings.simplefilter("ignore")
PIXEL, SHAPE, BINS, IMAGES, BUNCH = 2 ** -14, (128, 256), 100, 6, 2
DARK, WRONG = 0, 3


def ok(good, name):
    print("ok" if good else "not ok", name, flush=True)


def open_example():
    """The example, or the reason to skip it."""
    sys.path.insert(0, "tools/examples")
    try:
        import pyopencl
        import integrate_opencl
        if not any(platform.get_devices() for platform in pyopencl.get_platforms()):
            return None, "OpenCL has no device"
    except ImportError as failure:
        return None, str(failure)
    except pyopencl.Error as failure:       # no driver: pocl-opencl-icd has one for processors
        return None, f"no OpenCL ({failure})".replace(":", ",")
    return integrate_opencl, None


def fill(rashpa, images):
    """A stream that has ended: the driver here wakes no waiters. One is dark; one has no metadata."""
    with rashpa.Producer("ring", SHAPE, "u2", bunch=BUNCH, images=IMAGES, meta=True) as producer:
        for first in range(0, IMAGES, BUNCH):
            with producer.slot(0) as slot:
                slot.images[:] = images[first:first + BUNCH]
                for i in range(BUNCH):
                    if first + i != WRONG:
                        slot.describe(i, role=int(first + i == DARK))


def main(example):
    import rashpa
    from pyFAI.detectors import Detector
    from pyFAI.integrator.azimuthal import AzimuthalIntegrator
    driver = ctypes.CDLL(os.environ["RASHPA_LIBRARY"])
    driver.fake_buffer.restype = ctypes.c_void_p
    if driver.fake_driver_load() or not driver.fake_buffer(b"ring", ctypes.c_uint64(1 << 20)):
        sys.exit("no driver")
    images = numpy.random.default_rng(5).poisson(200, (IMAGES, *SHAPE)).astype("u2")
    geometry = AzimuthalIntegrator(detector=Detector(PIXEL, PIXEL, max_shape=SHAPE), wavelength=1e-10,
                                   dist=0.1, poni1=40.25 * PIXEL, poni2=128.5 * PIXEL)
    geometry.save("geometry.poni")
    fill(rashpa, images)
    example.rashpa = types.SimpleNamespace(Stream=functools.partial(rashpa.Stream, from_start=True))
    example.main("ring", "geometry.poni", str(BINS), "profiles.npy")
    profiles = numpy.load("profiles.npy")
    right = [geometry.integrate1d(image.astype("f4"), BINS, unit="q_nm^-1", method=("bbox", "csr", "cython"),
                                  correctSolidAngle=False).intensity for image in images]
    signal = numpy.delete(right, (DARK, WRONG), 0)
    ok(profiles.shape == signal.shape, "image-stream-profile: each image of the stream has a profile, but dark and wrong ones")
    ok(profiles.shape == signal.shape and numpy.allclose(profiles, signal, rtol=1e-5),
       "pyfai-integration: which is that of pyFAI's own integration")

    # in place: the kernel has the image's own buffer, which shows what comes into the slot later
    ocl = example.integrator("geometry.poni", SHAPE, BINS)
    image = images[0].copy()
    there = example.here(ocl, image)
    image[:] = images[1]
    profile = ocl.integrate_ng(there).intensity
    ok(ocl.cl_kernel_args["corrections4a"]["image"] == there.data, "pyfai-copies-nothing: pyFAI copies nothing")
    if ocl.ctx.devices[0].type & example.pyopencl.device_type.CPU:
        ok(numpy.allclose(profile, right[1], rtol=1e-5), "opencl: nor does OpenCL")
    else:
        print("skip opencl: nor does OpenCL # a device that is no processor may copy what is the host's")
    said = None
    try:
        example.here(ocl, numpy.zeros((SHAPE[0], SHAPE[1] + 4), "u2")[:, :SHAPE[1]])
    except (SystemExit, ValueError) as failure:
        said = str(failure)
    ok(said and "padded" in said, "lines-not-packed: lines that are not packed are refused by a sentence")
    driver.fake_driver_unload()


if __name__ == "__main__":
    found, reason = open_example()
    if found:
        os.chdir(tempfile.mkdtemp(dir=os.environ.get("TMPDIR")))
        main(found)
    else:
        print(f"skip image-stream-profile: integration by OpenCL # {reason}")
    print("end")
