#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The cost of rashpa-web: bench_page.py RESULT [ROUNDS [SECONDS]].

remu and romulu move 4-Mpixel images through a file of shared memory, 100 in a second. In each round there are no viewers,
then one, then 20, of the whole image. Viewers are another process.
"""
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
import numpy

import rashpa

SIDE, VIEWERS, RATE = 2048, (0, 1, 20), 100


def processor_time(pid):
    """Seconds of a process and of its children."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + sum(map(processor_time, children))


async def view(url, name):
    """Take images for ever; print a dot for each."""
    base, token = url.split("/#token=")
    async with aiohttp.ClientSession() as session, \
            session.ws_connect(base + "/link", headers={"Origin": base}, max_msg_size=1 << 24) as ws:
        await ws.send_str(token)
        await ws.send_str(json.dumps({"want": [[name, None]]}))
        async for message in ws:
            if message.type == aiohttp.WSMsgType.BINARY:
                print(".", end="", flush=True)


async def viewers(url, name, count):
    await asyncio.gather(*(view(url, name) for _ in range(int(count))))


def window(count, page, url, ring, seconds):
    """Images/s of the consumer, processors of the page, and images/s of each viewer."""
    with tempfile.TemporaryFile() as dots, rashpa.Stream(ring, observe=True, latest=True) as stream, contextlib.ExitStack() as end:
        if count:
            crowd = end.enter_context(subprocess.Popen([sys.executable, __file__, "viewers", url, ring, str(count)], stdout=dots))
            end.callback(crowd.terminate)
            while dots.seek(0, os.SEEK_END) < 2 * count:
                time.sleep(0.1)

        stream.latest(60).release()

        def now():
            return time.monotonic(), stream.stat().consumed, processor_time(page.pid), dots.seek(0, os.SEEK_END)
        before = now()
        time.sleep(seconds)
        took, stacks, processors, seen = (b - a for a, b in zip(before, now()))
        return {"images_per_second": stacks * stream.about.bunch / took, "processors": processors / took,
                "seen_per_second": seen / took / count if count else 0}


def measure(rounds, seconds, folder):
    ring = f"{folder}/ring0"
    command = ["remu", "--transport", "memory", "--buffer", ring, "--dataset", f"{folder}/images.raw", "--geometry", f"{SIDE}x{SIDE}",
               "--slots", "8", "--bunch", "1", "--images", "100000000", "--rate", str(RATE)]
    runs = {count: [] for count in VIEWERS}
    with contextlib.ExitStack() as end:
        def start(*words, **options):
            process = end.enter_context(subprocess.Popen(words, **options))
            end.callback(process.terminate)
            return process

        start(*command, stdout=subprocess.DEVNULL)
        while not os.path.exists(ring):
            time.sleep(0.1)
        start("romulu", "--buffer", ring, stdout=subprocess.DEVNULL)
        page = start(sys.executable, "-m", "rashpa.web", "--listen", "127.0.0.1:0", ring, stdout=subprocess.PIPE, text=True)
        url = page.stdout.readline().strip()
        for _ in range(rounds):
            for count in VIEWERS:
                runs[count].append(window(count, page, url, ring, seconds))
    rows = []
    for count in VIEWERS:
        middle = {key: statistics.median(run[key] for run in runs[count]) for key in runs[count][0]}
        ratio = statistics.median(a["images_per_second"] / b["images_per_second"] for a, b in zip(runs[count], runs[0]))
        rows.append({"viewers": count, "ratio": ratio, **middle})
        print(f"{count:2} viewers: {middle['images_per_second']:.1f} images/s, ratio {ratio:.4f}; "
              f"page {middle['processors']:.2f} processors, {middle['seen_per_second']:.1f} images/s to each viewer", flush=True)
    return rows


def main(result, rounds="5", seconds="10"):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        numpy.random.default_rng(1).poisson(20, (4, SIDE, SIDE)).astype("u2").tofile(f"{folder}/images.raw")
        rows = measure(int(rounds), float(seconds), folder)
    with open(result, "w", encoding="utf-8") as file:
        json.dump({"rounds": int(rounds), "seconds": float(seconds), "rows": rows}, file, indent=1)


if __name__ == "__main__":
    if sys.argv[1] == "viewers":
        asyncio.run(viewers(*sys.argv[2:]))
    else:
        main(*sys.argv[1:])
