#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prints a line for each folder of tools: the other folders whose headers it includes, as in the
table of house.rst. Exit status 1 if there is a cycle, or an include that is not written from tools/."""
import pathlib
import re
import sys

TOOLS = pathlib.Path("tools")
PUBLIC = {path.name: path.parent.name for path in TOOLS.glob("*/rashpa*.h")}
arrows, wrong = {}, False
for path in TOOLS.rglob("*.[ch]"):
    folder = path.parts[1]
    if "tests" in path.parts:
        continue
    known = arrows.setdefault(folder, set())
    for system, header in re.findall(r'^\s*#\s*include (?:<([^>]+)>|"([^"]+)")', path.read_text(), re.M):
        if (TOOLS / header).is_file() and header:
            known.add(header.split("/")[0])
        elif system in PUBLIC:
            known.add(PUBLIC[system])
        elif header in PUBLIC and path.name in PUBLIC:
            known.add(PUBLIC[header])
        elif header and not re.search(r"\.(spv|skel)\.h$|^cuda-kernels\.h$|^rashpa_bare\.h$", header):
            print(f"{path}: \"{header}\" is not written from tools/", file=sys.stderr)
            wrong = True
    known.discard(folder)
for folder in sorted(arrows):
    print(folder, *sorted(arrows[folder]))
while done := [folder for folder, below in arrows.items() if not below]:
    arrows = {folder: below.difference(done) for folder, below in arrows.items() if folder not in done}
if arrows:
    print("cycle: " + ", ".join(sorted(arrows)), file=sys.stderr)
sys.exit(bool(arrows) or wrong)
