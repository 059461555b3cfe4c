#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check where=root seconds=25
"""Pipelines whose stacks are processed at once, of streams in files: by threads of one receiver (--tune workers), and by
receivers that share the stacks (--tune share), which are killed. RASHPA_KILLS: how often. TAP."""
import collections
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import h5py
import numpy

TOOLS = os.path.join(os.getcwd(), os.environ.get("RASHPA_TOOLS", "build/tools"))
KILLS = int(os.environ.get("RASHPA_KILLS", 5))
SHAPE = 32, 48
images = numpy.random.default_rng(3).poisson([[[1.5]], [[3]]] * 4, (8, *SHAPE)).astype("u2")
darks = numpy.random.default_rng(4).poisson(1, (3, *SHAPE)).astype("u2")
tests = bad = 0


def ok(good, name):
    global tests, bad
    tests += 1
    bad += not good
    print(f"{'ok' if good else 'not ok'} {tests} - {name}", flush=True)


def run(tool, *options):
    return subprocess.Popen([f"{TOOLS}/{tool}", "--buffer", "./ring", "--timeout", "20", *map(str, options)],
                            stdout=subprocess.DEVNULL, stderr=open(f"{tool}.err", "a"))


def produce(*options):
    if os.path.exists("ring"):
        os.unlink("ring")
    producer = run("remu", "--transport", "memory", "--dataset", "images.raw", "--geometry", "48x32,u16", *options)
    while not os.path.exists("ring") and producer.poll() is None:
        time.sleep(.005)
    return producer


def process(pipeline, engine, *options, dark=()):
    """Status of a receiver, its report, and bytes of its files."""
    producer = produce("--bunch", 3, "--slots", 12, "--images", 400, *dark)
    with open("pipeline.json", "w") as file:
        json.dump(pipeline, file)
    status = run("romulu", "--json=report", "--tune", "from-start", "--pipeline", "pipeline.json", "--engine", engine,
                 *options).wait()
    if status == 2:
        producer.kill()
    producer.wait()
    if status:
        return status, {}, {}
    with open("report") as file:
        report = json.load(file)
    found = {}

    def read(name, item):
        if isinstance(item, h5py.Dataset) and "time" not in name:
            # packed chunks as they are: the filter may not be here
            found[name] = [item.id.read_direct_chunk((i, 0, 0))[1] for i in range(len(item))] \
                if item.ndim == 3 else numpy.asarray(item[()]).tobytes()

    with h5py.File("out.h5") as file:
        file.visititems(read)
    if "raw" in pipeline["sinks"]:
        with open("out.f32", "rb") as file:
            found["raw"] = file.read()
    return status, report, found


PIPELINE = {
    "correct": {"common_mode": {"chip_width": 16, "chip_height": 16, "below": 3}},
    "assemble": {"wide_every_x": 16, "bin_y": 2}, "peaks": {"finder": "peakfinder8", "centre": [20, 9], "snr": 3},
    "veto": {"threshold": 9, "pixels": 3}, "compress": {"threshold": 9}, "accumulate": {"images": 5},
    "sinks": {"raw": {"file": "out.f32", "overwrite": True},
              "nexus": {"file": "out.h5", "overwrite": True, "compression": "bitshuffle-lz4"}}}


def threads(engine):
    for name, dark in ("", ()), ("-darks", ("--tune", "darks=darks.raw", "--tune", "dark-every=40")):
        first = None
        for workers in 0, 1, 4:
            status, report, found = process(PIPELINE, engine, *(("--tune", f"workers={workers}") if workers else ()),
                                            dark=dark)
            counts = {key: report["processing"][key] for key in ("images", "dark", "vetoed", "lost", "overflow")} | {
                stage["name"]: [stage[key] for key in ("images", "bytes_in", "bytes_out")]
                for kind in ("stages", "sinks") for stage in report["processing"][kind]} if report else None
            first = first or (found, counts)
            ok(not status and found == first[0] and len(found["raw"]) > 1000 and report["frames"] == 400,
               f"equal/{engine}{name}-{workers}: {engine}, {workers} workers{name}: files have the same bytes")
            ok(counts and counts == first[1] and report["processing"]["workers"] == workers and
               counts["dark"] == 10 * bool(dark) and 0 < counts["vetoed"] < 390,
               f"counts/{engine}{name}-{workers}: {engine}, {workers} workers{name}: the same counts")


def raw():
    """Images as the stream has them, straight from its slots; dark ones, too."""
    dark, kept = ("--tune", "darks=darks.raw", "--tune", "dark-every=40"), {}
    for packing in "none", "bitshuffle-lz4", "zstd":
        for workers in 0, 3:
            pipeline = {"sinks": {"nexus": {"file": "out.h5", "what": ["raw"], "compression": packing, "overwrite": True}}}
            status, report, found = process(pipeline, "cpu", *(("--tune", f"workers={workers}") if workers else ()),
                                            dark=dark)
            kept.setdefault(packing, found)
            ok(not status and found == kept[packing] and report["processing"]["stages"] == [],
               f"raw/{packing}-{workers}: raw images, {packing}, {workers} workers: files have the same bytes, by no stage")
        if packing == "zstd":
            continue
        with h5py.File("out.h5") as file:
            data, role = file["entry/data/data"][:], file["entry/instrument/detector/role"][:]
        sent = [darks[i // 40 % 3] if i % 40 == 39 else images[(i % 120 - i // 40 % 3) % 8] for i in range(400)]
        ok(data.dtype == "u2" and list(role) == [i % 40 == 39 for i in range(400)] and numpy.array_equal(data, sent),
           f"raw-right/{packing}: raw images, {packing}: each is right")
    producer = produce("--images", 50, "--bunch", 1, "--slots", 60, "--policy", "overwrite")
    producer.wait()
    status = run("romulu", "--tune", "from-start", "--write", "write.h5").wait()
    with h5py.File("write.h5") as file:
        ok(not status and numpy.array_equal(file["entry/data/data"][:], images[numpy.arange(50) % 8]) and
           file["entry/complete"][()] == 1, "written: --write FILE.h5 of a stream that overwrites, each is right")


def refused():
    ok(process(PIPELINE, "vulkan", "--tune", "workers=2")[0] == 2, "gpu: a GPU has no workers")
    status = process(PIPELINE, "cpu", "--tune", "workers=2", dark=("--policy", "overwrite"))[0]
    with open("romulu.err") as file:
        reason = file.read()
    ok(status == 1 and "--policy wait" in reason,
       "overwritten: workers take no stream that overwrites")


def shared():
    """Three receivers have stacks of one place. One after the other is killed; the next one has its stacks."""
    producer, receivers, kills = produce("--bunch", 1, "--slots", 12, "--images", 0), collections.deque(), 0

    def start():
        number = kills + len(receivers)
        sinks = {"raw": {"file": f"{number}.f32"}, "nexus": {"file": f"{number}.h5"}}
        receivers.append((run("romulu", f"--json={number}.json", "--tune", "share=3", "--pipeline",
                              json.dumps({"sinks": sinks})), number))

    def await_images(process, number):
        while process.poll() is None and (not os.path.exists(f"{number}.f32") or not os.path.getsize(f"{number}.f32")):
            time.sleep(.002)

    while len(receivers) < 3:
        start()
    while kills < KILLS:
        process, number = receivers[0]
        await_images(process, number)
        process.kill()
        if process.wait() != -signal.SIGKILL:
            break
        receivers.popleft()
        kills += 1
        start()
    for receiver in receivers:
        await_images(*receiver)
    producer.send_signal(signal.SIGINT)
    sent = producer.wait()
    last = [(number, process.wait()) for process, number in receivers]
    frames, right = [], True
    for number in range(kills + 3):
        if not os.path.exists(f"{number}.h5"):
            continue
        # of one that was killed others may have a part, of images without a number
        with h5py.File(f"{number}.h5", swmr=True) as file:
            numbers = file["entry/instrument/detector/sequence_number"][:]
            data = file["entry/data/data"][:len(numbers)]
        right &= numpy.array_equal(data, images[numbers.astype(int) % len(images)])
        frames += [numbers]
    reported = []
    for number, _ in last:
        with open(f"{number}.json") as file:
            reported.append(json.load(file)["frames"])
    every, times = numpy.unique(numpy.concatenate(frames), return_counts=True)
    ok(not sent and not any(status for _, status in last), f"ended: all end well, {last}")
    ok(kills == KILLS and numpy.array_equal(every, numpy.arange(len(every))),
       f"killed: {len(every)} images without a gap after {kills} kills")
    ok(right and (times > 1).sum() <= kills, f"right: all are right, {(times > 1).sum()} twice")
    ok(sorted(reported) == sorted(len(frames[-1 - i]) for i in range(3)) and min(reported) > 0,
       f"reported: those that lived report what they have, {reported}")


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        os.chdir(folder)
        images.tofile("images.raw")
        darks.tofile("darks.raw")
        try:
            threads("cpu")
            threads("reference")
            raw()
            refused()
            shared()
        finally:
            subprocess.run("sort -u *.err | sed 's/^/# /'", shell=True, check=False)
            os.chdir("/")
    print(f"1..{tests}")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
