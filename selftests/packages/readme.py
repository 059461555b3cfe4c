#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Commands of README.md as a stranger types them.

readme.py script WHERE: those that run there (root: a Debian that has nothing yet; guest: the machine that
boots from it), as a script for bash. readme.py list: blocks, and why some are not run. A block that is not
spoken of here is an error.
"""
import re
import sys

# beginning of a line, or of a fenced block: where it runs, or why it does not
RULES = (
    ("make demo", "not: makes a lab of its own, and machines in it: by hand, and parts of it in make check"),
    ("make bench", "not: as make demo"),
    ("make check", "not: runs this, but for the packages"),
    ("apt install bpftool", "not: for romulu --xdp only; what is built without it is tried here"),
    ("apt install", "root"),
    ("make install", "root"),
    ("groupadd ", "guest"),
    ("modprobe ", "guest"),
    ("rashpactl ", "guest"),
    ("romulu ", "guest"),
    ("remu ", "guest"),
    ("rashpa-manager ", "guest"),
    ("```c", "not: a piece of a program; tools/examples has whole ones, which install.sh compiles"),
    ("```python", "not: a piece of a program; selftests/tools/python.sh has whole ones"),
    ("```", "not: a picture"),
)
# what is another one on each machine, and what an emulated processor has no time for
INSTEAD = (("0000:03:00.0", "$BOARD"), ("--images 10000", "--images 100"))


def commands(text):
    """Lines that are commands, with what continues them, and the first lines of fenced blocks."""
    fenced, before, line = False, "", ""
    for part in text.splitlines():
        if part.startswith("```"):
            fenced = not fenced
            if fenced:
                yield part
            continue
        if fenced:
            continue
        if line:
            line += "\n" + part
        elif part.startswith("    ") and part.strip() and not before.startswith("- "):
            line = part
        if line and not line.endswith("\\"):
            yield line
            line = ""
        before = part or before


def rule(command):
    for begin, where in RULES:
        if re.sub(" +", " ", command.strip()).startswith(begin):
            return where
    sys.exit(f"readme.py: nothing is said of: {command.strip()}")


def main():
    text = open("README.md").read()
    found = [(command, rule(command)) for command in commands(text)]
    if sys.argv[1] == "list":
        for command, where in found:
            print(f"# {where}: {command.strip().splitlines()[0]}")
        return
    for command, where in found:
        if where == sys.argv[2]:
            for old, new in INSTEAD:
                command = command.replace(old, new)
            print(command.strip())


main()
