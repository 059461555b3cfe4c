#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Consumers in several places of a stream, which are killed: places.py FPGA FOLDER; without FPGA of a stream in a file.

Places a, b and c are waited for, as that of romulu, which runs beside; three workers share place w; two
observers look on. Each is killed again and again while it holds a stack, and replaced. Lines are TAP.
"""
import json
import mmap
import os
import selectors
import signal
import subprocess
import sys
import traceback

import numpy

import rashpa

WIDTH, HEIGHT, BUNCH = 64, 32, 4
LONG = bool(os.environ.get("RASHPA_LONG")) or not sys.argv[1]
BUFFER = "places" if sys.argv[1] else f"{sys.argv[2]}/places"
STACKS, TIMEOUT = (240, 240) if LONG else (120, 120)
EVERY = dict.fromkeys("abco", 12) | {"w": 4 if LONG else 12}    # stacks from kill to kill
ROLES = {"a": {"keep": None}, "b": {"keep": None}, "c": {"keep": None}, "w": {"keep": None, "workers": 3},
         "o": {}}
CHILDREN = {"a": 1, "b": 1, "c": 1, "w": 3, "o": 2}

images = numpy.random.default_rng(1).integers(0, 1 << 16, (7, HEIGHT, WIDTH), "<u2")
# for each role and stack: number of uses, and whether a child was killed with it
seen = {role: mmap.mmap(-1, STACKS) for role in ROLES}
held = {role: mmap.mmap(-1, STACKS) for role in ROLES}


def check(stack):
    frames, shown = stack.frames, stack.images
    good = all(numpy.array_equal(image, images[frame % len(images)]) for frame, image in zip(frames, shown))
    assert good or (stack._stream.observes and not stack.intact()), f"stack {stack.number} is another one"


def take_all(role, stream, say):
    for stack in stream:
        check(stack)
        number = stack.number
        if number % EVERY[role] == EVERY[role] - 1 and not held[role][number]:
            held[role][number] = 1
            os.write(say, b"h")
            signal.pause()
        seen[role][number] += 1


def consume(role, say):
    signal.alarm(TIMEOUT)
    with rashpa.Stream(BUFFER, place=role, timeout=1, **ROLES[role]) if role != "o" else \
            rashpa.Stream(BUFFER, observe=True, from_start=True, timeout=1) as stream:
        os.write(say, b"!")
        while True:
            try:
                return take_all(role, stream, say)
            except rashpa.Timeout:
                # the other workers had what was left, and a stream that is over does not begin
                if 0 not in seen[role][:]:
                    return None


def start(role):
    listen, say = os.pipe()
    pid = os.fork()
    if pid:
        os.close(say)
        return pid, listen
    try:
        consume(role, say)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def report(good, name):
    report.n += 1
    print(f"{'ok' if good else 'not ok'} {report.n} - {name}", flush=True)
    report.bad |= not good


report.n, report.bad = 0, False


def main(fpga, folder):
    for i, image in enumerate(images):
        image.tofile(f"{folder}/raw{i:02}.bin")
    shape = ["--dataset", folder, "--geometry", f"{WIDTH}x{HEIGHT},u16"]
    waiting = selectors.DefaultSelector()
    kills = dict.fromkeys(ROLES, 0)
    failed = 0

    def begin(role):
        pid, listen = start(role)
        waiting.register(listen, selectors.EVENT_READ, (role, pid))
        return listen

    if not fpga:
        with open(BUFFER, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 4 << 20)
    opened = [begin(role) for role, n in CHILDREN.items() for _ in range(n)]
    for listen in opened:
        assert os.read(listen, 1) == b"!", "a consumer did not open the stream"
    romulu = subprocess.Popen(["romulu", "--buffer", BUFFER, "--timeout", str(TIMEOUT),
                               f"--json={folder}/romulu.json"], stdout=subprocess.DEVNULL)

    def places():
        top = json.loads(subprocess.run(["rashpactl", "--json", "top", "--count", "1", "--interval", "0.01", BUFFER],
                                        check=True, capture_output=True, text=True).stdout)
        return {p["name"]: p for s in top["streams"] for p in s.get("places", ())}

    source = ["--fpga", fpga] if fpga else ["--transport", "memory"]
    remu = subprocess.Popen(["remu", "--buffer", BUFFER, *source, *shape, "--bunch", str(BUNCH), "--slots", "6",
                             "--images", str(STACKS * BUNCH), "--timeout", str(TIMEOUT)], stdout=subprocess.DEVNULL)
    shown = {}
    while waiting.get_map():
        for key, _ in waiting.select():
            role, pid = key.data
            word = os.read(key.fd, 1)
            if word == b"!":
                continue
            if word == b"h" and not shown:
                shown = places()
            if word == b"h":
                kills[role] += 1
                os.kill(pid, signal.SIGKILL)
            waiting.unregister(key.fd)
            os.close(key.fd)
            failed += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) not in (0, -signal.SIGKILL)
            if word == b"h":
                begin(role)
    report(not remu.wait(TIMEOUT), "producer: it ends well")
    report(not romulu.wait(TIMEOUT), "romulu: it ends well")
    report(not failed, "compared: each frame of each consumer is right")
    report({"a", "b", "c", "w"} <= set(shown) and shown["w"]["workers"] >= 2, f"shown: top shows {sorted(shown)}")
    for role in "abcw":
        report(set(seen[role][:]) == {1}, f"once-{role}: each stack once, with {kills[role]} kills; not "
               f"{[number for number, times in enumerate(seen[role][:]) if times != 1]}")
        report(kills[role] == STACKS // EVERY[role], f"killed-{role}: {kills[role]} times")
    report(kills["o"] > 0, f"killed-o: {kills['o']} times")
    print(f"1..{report.n}")
    return report.bad


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
