#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""Integrate a stream by pyFAI's OpenCL kernels, in place:
integrate_opencl.py BUFFER GEOMETRY.poni BINS PROFILES.npy"""
import sys

import numpy
import pyFAI
import pyopencl
import rashpa
from pyFAI.opencl.azim_csr import OCL_CSR_Integrator
from pyopencl.array import Array

DARK = 1        # RASHPA_IMAGE_DARK
HERE = pyopencl.mem_flags.READ_ONLY | pyopencl.mem_flags.USE_HOST_PTR


class InPlace(OCL_CSR_Integrator):
    """Let the kernel read images in place; pyFAI would copy them to device memory first."""

    def send_buffer(self, data, dest, *args, **options):
        return data.data if dest == "image" else super().send_buffer(data, dest, *args, **options)


def integrator(poni, shape, bins):
    geometry = pyFAI.load(poni)
    matrix = geometry.setup_sparse_integrator(shape, bins, unit="q_nm^-1", split="bbox", algo="CSR")
    return InPlace(matrix.lut, shape[0] * shape[1], bin_centers=matrix.bin_centers, unit="q_nm^-1")


def here(ocl, image):
    """Wrap an image for OpenCL. A buffer keeps the content of its creation, so each image needs one."""
    if not image.flags.c_contiguous:
        sys.exit("the lines of the images are padded, which pyFAI's kernels do not support: "
                 "use packed lines, or romulu")
    return Array(ocl.queue, image.shape, image.dtype,
                 data=pyopencl.Buffer(ocl.ctx, HERE, hostbuf=image))


def main(buffer, poni, bins, file):
    profiles, left_out = [], 0
    with rashpa.Stream(buffer) as stream:
        about = stream.begin()
        ocl = integrator(poni, (about.height, about.width), int(bins))
        for stack in stream:
            # leave out dark images, which have no signal, and wrong ones, whose content is unknown
            signal = (stack.roles != DARK) & (stack.table["wrong"] == 0)
            left_out += len(stack) - signal.sum()
            for i in signal.nonzero()[0]:
                image = stack.images[i]
                there = here(ocl, image)
                profiles.append(ocl.integrate_ng(there).intensity)      # its kernels have ended then
                there.data.release()        # before the slot is given back
    numpy.save(file, profiles)
    if left_out:
        print(f"{left_out} images were dark or wrong: they have no profile")


if __name__ == "__main__":
    main(*sys.argv[1:])
