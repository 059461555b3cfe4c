#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Frames go to a file, through processing and to a picture, without root, driver and virtual machine: the
stream lives in a file of shared memory. Needs only what the tools need to be built, and Python.

try.py [TOOLS]: folder with remu, romulu and rashpactl (default: build them in build/try). Results are
in build/try/results.
"""
import array
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, "build", "try")
PROGRAMS = ["remu", "romulu", "rashpactl"]
WIDTH, HEIGHT, FRAMES, PROCESSED = 1024, 512, 200, 48
PATIENCE = 300      # seconds, for hangs
# what names it: of a program, or of pkg-config; and the package of Debian
NEEDS = {
    "gcc": "gcc", "meson": "meson", "ninja": "ninja-build", "pkg-config": "pkg-config", "objcopy": "binutils",
    "gnutls": "libgnutls28-dev", "hdf5": "libhdf5-dev", "hwloc": "libhwloc-dev", "json-c": "libjson-c-dev",
    "libibverbs": "libibverbs-dev", "libkmod": "libkmod-dev", "liblz4": "liblz4-dev", "libpcap": "libpcap-dev",
    "libpci": "libpci-dev", "libudev": "libudev-dev", "libxml-2.0": "libxml2-dev", "libzmq": "libzmq3-dev",
    "libzstd": "libzstd-dev", "ncursesw": "libncurses-dev", "zlib": "zlib1g-dev",
}


def missing():
    """Packages that a build needs, and that this machine does not have."""
    def there(name):
        return subprocess.run(["pkg-config", "--exists", name], check=False).returncode == 0

    programs = list(NEEDS)[:5]
    lacks = [NEEDS[p] for p in programs if not shutil.which(p)]
    if "pkg-config" in lacks:
        return lacks + [package for name, package in NEEDS.items() if name not in programs]
    return lacks + [package for name, package in NEEDS.items()
                    if name not in programs and not there(name) and not there(name + "-serial")]


def build():
    """Return the folder with the programs."""
    lacks = missing()
    if lacks:
        sys.exit("make try: packages are missing: apt install " + " ".join(lacks))
    begin = time.monotonic()
    print("== Building " + ", ".join(PROGRAMS) + " (build/try.log)", flush=True)
    os.makedirs(BUILD, exist_ok=True)
    with open(BUILD + ".log", "w") as log:
        for command in (["meson", "setup", BUILD, os.path.join(TOP, "tools"), "-Dauto_features=disabled", "-Ddebug=false"],
                        ["ninja", "-C", BUILD] + PROGRAMS):
            if subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode:
                sys.exit("make try: " + " ".join(command[:2]) + " failed: see build/try.log")
    print(f"   {time.monotonic() - begin:.0f} s", flush=True)
    return BUILD


class Station:
    """A program of the run; its report is JSON."""
    all = []

    def __init__(self, name, *options):
        self.report = f"{name}-{os.getpid()}.json"
        print("   " + " ".join((name,) + options), flush=True)
        self.process = subprocess.Popen([name, *options, "--json=" + self.report, "--timeout", str(PATIENCE)])
        self.all.append(self)

    def end(self):
        """Its report."""
        if self.process.wait():
            sys.exit("make try: " + " ".join(self.process.args) + " failed")
        with open(self.report) as file:
            report = json.load(file)
        os.unlink(self.report)
        return report

    def await_file(self, path):
        """Until it has made that file."""
        while not os.path.exists(path) and self.process.poll() is None:
            time.sleep(0.01)


def stream(ring, frames, *receiver):
    """A detector and its receiver: the reports of both."""
    detector = Station("remu", "--transport", "memory", "--buffer", ring, "--images", str(frames),
                       "--dataset", "generate", "--slots", "4")
    detector.await_file(ring)
    return detector, Station("romulu", "--buffer", ring, *receiver)


def settings():
    """Calibration, geometry and pipeline for the generated frames, of three gains."""
    for name, values in (("pedestal", (2600, 15000, 14500)), ("gain", (38, -1, -0.125))):
        with open(name + ".raw", "wb") as file:
            for value in values:
                array.array("f", [value] * (WIDTH * HEIGHT)).tofile(file)
    with open("geometry.poni", "w") as file:
        file.write("poni_version: 2.1\nDetector: Detector\n"
                   'Detector_config: {"pixel1": 7.5e-05, "pixel2": 7.5e-05, "orientation": 3}\n'
                   "Distance: 0.1\nPoni1: -0.0045\nPoni2: 0.041175\nRot1: 0\nRot2: 0\nRot3: 0\nWavelength: 1e-10\n")


def pipeline(profiles):
    """Its file; profiles go into another stream."""
    with open("pipeline.json", "w") as file:
        json.dump({"pretreat": {"detector": "jungfrau", "pedestal": "pedestal.raw", "gain": "gain.raw",
                                "round": True},
                   "peaks": {"finder": "pyfai", "centre": [549, -60]},
                   "integrate": {"poni": "geometry.poni", "bins": 64},
                   "sinks": {"nexus": {"file": "results.h5", "what": ["images", "profiles", "peaks"],
                                       "compression": "bitshuffle-lz4"},
                             "streams": {"profile": {"buffer": profiles}}}}, file)
    return "pipeline.json"


def picture(raw, name):
    """The last frame of a file as a picture, by its photons: brighter by the square root."""
    pixels = array.array("H")
    with open(raw, "rb") as file:
        file.seek(-WIDTH * HEIGHT * 2, os.SEEK_END)
        pixels.fromfile(file, WIDTH * HEIGHT)
    if sys.byteorder == "big":
        pixels.byteswap()
    photons = [max(0, v - 2600) // 38 if v < 1 << 14 else max(0, 15000 - (v & 0x3fff)) for v in pixels]
    lines = b"".join(b"\0" + bytes(min(255, int(32 * v ** 0.5)) for v in photons[y * WIDTH:(y + 1) * WIDTH])
                     for y in range(HEIGHT))
    parts = ((b"IHDR", struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 0, 0, 0, 0)),
             (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    with open(name, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
            for kind, data in parts))
    return sum(photons) / len(photons), max(photons)


def run(memory):
    """Both streams, in files of this folder."""
    ring, other, profiles = (os.path.join(memory, name) for name in ("ring0", "ring1", "profiles"))
    print(f"== A detector streams {FRAMES} frames into shared memory; a writer takes them")
    detector, writer = stream(ring, FRAMES, "--write", "frames.raw")
    written, sent = writer.end(), detector.end()
    print("   {frames} frames, {lost} lost, {0:.2f} GB/s".format(written["bytes"] / written["seconds"] / 1e9, **written))
    print(f"== {PROCESSED} frames are processed: photons, peaks, azimuthal profile, NeXus")
    settings()
    detector, processor = stream(other, PROCESSED, "--pipeline", pipeline(profiles))
    processor.await_file(profiles)
    top = subprocess.run(["rashpactl", "top", "--interval", "0.5", "--count", "1", "./ring1", "./profiles"],
                         cwd=memory, stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in top.splitlines():
        print("   | " + line)
    done = processor.end()
    detector.end()
    print("   {frames} frames, {lost} lost, in {seconds:.1f} s; {0} MiB in, {1} MiB in results.h5".format(
        done["bytes"] >> 20, os.path.getsize("results.h5") >> 20, **done))
    mean, most = picture("frames.raw", "frame.png")
    print(f"== The last frame: {WIDTH} x {HEIGHT}, {mean:.2f} photons a pixel, {most} at most: frame.png")
    return (sent["images"], written["frames"], written["lost"], os.path.getsize("frames.raw"), done["frames"],
            done["lost"], done["processing"]["images"])


def main():
    tools = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else build()
    os.environ["PATH"] = tools + ":" + os.environ["PATH"]
    results = os.path.join(BUILD, "results")
    shutil.rmtree(results, ignore_errors=True)
    os.makedirs(results)
    os.chdir(results)
    with tempfile.TemporaryDirectory(prefix="rashpa-try-", dir="/dev/shm") as memory:
        try:
            counts = run(memory)
        finally:
            for station in Station.all:
                station.process.kill()
    print("   All of it is in build/try/results.")
    if counts != (FRAMES, FRAMES, 0, FRAMES * WIDTH * HEIGHT * 2, PROCESSED, 0, PROCESSED):
        sys.exit(f"make try: the counts are wrong: {counts}")


if __name__ == "__main__":
    main()
