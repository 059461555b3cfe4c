#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare the recorder of romulu with fio: bench_record.py RESULT FOLDER [ROUNDS].

Both write 1 GiB to FOLDER, in turn, with O_DIRECT and io_uring, from a mapped file of /dev/shm. romulu takes a stream
that is in memory already.
"""
import functools
import json
import multiprocessing
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, "tools/romulu/tests")
from recorder import produce

ALL, SIZES, DEPTH = 1 << 30, (1 << 16, 1 << 20, 1 << 22, 1 << 24), 64


def fio(folder, size, depth):
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as memory:
        out = subprocess.run(
            ["fio", "--name=fio", f"--directory={folder}", "--rw=write", "--direct=1", "--ioengine=io_uring",
             f"--iodepth={depth}", f"--bs={size}", f"--size={ALL}", "--fallocate=native", f"--iomem=mmap:{memory.name}",
             "--output-format=json"], check=True, stdout=subprocess.PIPE).stdout
    return json.loads(out)["jobs"][0]["write"]["bw_bytes"]


def romulu(folder):
    report = f"{folder}/report"
    subprocess.run(["build/tools/romulu-fake", "--buffer", "frames", "--tune", "from-start", "--timeout", "10",
                    f"--json={report}", f"--write={folder}", "--sync", "never"], check=True)
    with open(report) as file:
        return json.load(file)["bytes_per_second"]


def measure(where, rounds, size):
    depth = min(DEPTH, max(2, (256 << 20) // size), ALL // size - 1)
    driver = produce(f"{size // 512}x256", 1, ALL // size)
    runs = romulu, functools.partial(fio, size=size, depth=depth)
    speeds = [], []
    for k in range(rounds):
        for i in (0, 1) if k % 2 else (1, 0):
            folder = tempfile.mkdtemp(dir=where)
            speeds[i].append(runs[i](folder))
            shutil.rmtree(folder)
    driver.fake_driver_unload()
    ours, theirs = map(statistics.median, speeds)
    ratio = statistics.median(a / b for a, b in zip(*speeds))
    print(f"{size >> 10:6} KiB, {depth:2} at a time: {ours / 1e6:6.0f} MB/s, fio {theirs / 1e6:6.0f} MB/s, ratio {ratio:.2f}",
          flush=True)
    return {"bytes": size, "depth": depth, "ratio": ratio, "recorder_bytes_per_second": ours,
            "fio_bytes_per_second": theirs}


def main(result, where, rounds="9"):
    # a process each: the driver of files can be loaded once
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        rows = pool.map(functools.partial(measure, where, int(rounds)), SIZES, chunksize=1)
    with open(result, "w") as file:
        json.dump({"rounds": int(rounds), "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
