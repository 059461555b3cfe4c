#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check seconds=3
"""Files of a folder of tools do not call each other in a circle. Reads the objects in build/tools. TAP."""
import pathlib
import subprocess
import sys

BUILD = pathlib.Path("build/tools")


def source_of(path):
    """bench_loop_ring.c.o in the folder of a target is bench/loop/ring.c."""
    folder = path.relative_to(BUILD).parent.parent
    return str(folder / path.name[:-2].replace("_", "/"))


def calls(objects):
    """{source: sources whose functions it uses}, within each folder"""
    homes, used = {}, {}
    for line in subprocess.run(["nm", "-A", "-g", *objects], check=True, capture_output=True, text=True).stdout.splitlines():
        path, words = line.split(":", 1)
        *_, kind, name = words.split()
        source = source_of(pathlib.Path(path))
        if kind == "T":
            homes.setdefault(name, set()).add(source)
        elif kind == "U":
            used.setdefault(source, set()).add(name)
    to = {}
    for source, names in used.items():
        folder = source.split("/")[0]
        to[source] = {home for name in names for home in homes.get(name, ())
                      if home.split("/")[0] == folder and home != source and len(homes[name]) == 1}
    return to


def circles(to):
    """Files that reach themselves"""
    def reach(source):
        seen, todo = set(), [source]
        while todo:
            for next_one in to.get(todo.pop(), ()):
                if next_one not in seen:
                    seen.add(next_one)
                    todo.append(next_one)
        return seen
    return sorted(source for source in to if source in reach(source))


def main():
    objects = [path for path in BUILD.rglob("*.c.o") if "test" not in path.name and "fake" not in str(path) and ".._" not in path.name]
    to = calls(objects)
    found = circles(to)
    for source in found:
        print("#", source, "calls", *sorted(to[source] & set(found)))
    print("not ok" if found or len(to) < 200 else "ok", "1 - none: no files of a folder call each other in a circle")
    # every call backwards, too
    both = {source: set(below) for source, below in to.items()}
    for source, below in to.items():
        for other in below:
            both.setdefault(other, set()).add(source)
    seen = len(circles(both)) > 150
    print("ok" if seen else "not ok", "2 - seen: circles are found if each call also goes back")
    print("1..2")
    return bool(found) or not seen


if __name__ == "__main__":
    sys.exit(main())
