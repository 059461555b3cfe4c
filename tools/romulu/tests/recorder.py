#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What recorder.sh needs. recorder.py stream WIDTHxHEIGHT BUNCH STACKS POLICY: a stream that has ended, in a driver of
files (librashpa-fake.so); it writes what names the files, and lets go of them at the end of its input.
recorder.py compare WIDTHxHEIGHT IMAGES DIR...: are these images in the recording, each once and in order? IMAGES "some":
as many as there are.
recorder.py kill WIDTHxHEIGHT STACKS KILLS ROMULU DIR...: the same of a stream whose receiver is killed so many times,
each one after some hundreds of stacks."""
import ctypes
import os
import subprocess
import sys
import time

import numpy


def image(shape, frame):
    return (numpy.arange(shape[0] * shape[1], dtype="u4").reshape(shape) * 7 + frame * 65521).astype("u2")


def shape_of(text):
    width, height = map(int, text.split("x"))
    return height, width


def load(length):
    """The driver of files, with a buffer."""
    driver = ctypes.CDLL(os.environ["RASHPA_LIBRARY"])
    driver.fake_buffer.restype = ctypes.c_void_p
    if driver.fake_driver_load() or not driver.fake_buffer(b"frames", ctypes.c_uint64(length)):
        sys.exit("no driver")
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_char_p
    os.environ["RASHPA_DEV"] = libc.getenv(b"RASHPA_DEV").decode()
    return driver


def produce(size, bunch, stacks, policy="wait"):
    import rashpa

    shape, bunch, stacks = shape_of(size), int(bunch), int(stacks)
    driver = load((stacks + 1) * ((shape[0] * shape[1] * 2 * bunch + 4095) // 4096 * 4096 + bunch * 128 + 4096) + (1 << 20))
    images = stacks * bunch - bunch // 2    # the last stack has fewer
    with rashpa.Producer("frames", shape, "u2", bunch=bunch, images=images, slots=stacks, policy=policy) as producer:
        while slot := producer.slot(0):
            with slot:
                for i, data in enumerate(slot.images):
                    data[:] = image(shape, slot.frame + i)
    return driver


def stream(*what):
    driver = produce(*what)
    print(os.environ["RASHPA_DEV"], flush=True)
    sys.stdin.read()
    driver.fake_driver_unload()


def compare(size, images, *folders):
    from rashpa.recording import Recording

    recording, shape = Recording(*folders), shape_of(size)
    count = len(recording) if images == "some" else int(images)
    assert len(recording) == count, f"{len(recording)} images"
    assert numpy.array_equal(recording.images["frame"], numpy.arange(count)), recording.images["frame"]
    for frame, data in enumerate(recording):
        assert numpy.array_equal(data, image(shape, frame)), f"frame {frame} differs"
    if count:
        assert numpy.array_equal(recording.frame(count - 1), data)
    print(f"# {count} images")


def kill(size, stacks, kills, romulu, *folders):
    def kept():
        return os.path.getsize(index) if os.path.exists(index) else 0

    driver, index, killed = produce(size, 1, stacks), f"{folders[0]}/frames.index", 0
    command = [romulu, "--buffer", "frames", "--timeout", "30", *(f"--write={folder}" for folder in folders)]
    while killed < int(kills):
        end = kept() + 300 * 64
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            while kept() < end and process.poll() is None:
                time.sleep(.0002)
            process.kill()
        compare(size, "some", *folders)
        if not process.returncode:
            break       # it was faster
        killed += 1
    else:
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    print(f"# killed {killed} times")
    compare(size, stacks, *folders)
    driver.fake_driver_unload()


if __name__ == "__main__":
    {"stream": stream, "compare": compare, "kill": kill}[sys.argv[1]](*sys.argv[2:])
