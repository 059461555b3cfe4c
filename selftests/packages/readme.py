#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Commands of README.md, for a test that runs them.

readme.py script WHERE: prints the commands for WHERE (root: a plain Debian; guest: the machine that
boots from it) as a script for bash. readme.py list: prints all blocks, and why some are not run. A
block without a rule is an error.
"""
import re
import sys

# beginning of a line, or of a fenced block; place where it runs, or reason why it does not
RULES = (
    ("make try", "not: the packages come later; tools/tests/memory.sh runs it"),
    ("make demo", "not: makes a separate lab with machines; make check runs parts of it"),
    ("make bench", "not: as make demo"),
    ("make check", "not: runs this, except for the packages"),
    ("apt install bpftool", "not: only for romulu --tune xdp; this is a build without it"),
    ("apt install", "root"),
    ("make install", "root"),
    ("adduser ", "not: names a user of the machine"),
    ("# ", "not: a comment"),
    ("modprobe ", "guest"),
    ("rashpactl ", "guest"),
    ("romulu ", "guest"),
    ("remu ", "guest"),
    ("rashpa-manager ", "guest"),
    ("```c", "not: part of a program; install.sh compiles the complete ones of tools/examples"),
    ("```python", "not: part of a program; selftests/tools/python.sh runs complete ones"),
    ("```", "not: a picture"),
)
# values that differ on each machine, or take too long on an emulated processor
INSTEAD = (("0000:03:00.0", "$BOARD"), ("--images 1000", "--images 100"))


def commands(text):
    """Commands with their continuation lines, and the first lines of fenced blocks."""
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
    sys.exit(f"readme.py: no rule for: {command.strip()}")


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
