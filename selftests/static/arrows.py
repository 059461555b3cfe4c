#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prints a line for each folder of tools: the other folders whose headers it includes, as in the
table of house.rst. Exit status 1 if there is a cycle."""
import collections
import os
import re
import sys

homes, files = collections.defaultdict(set), []
for path, _, names in os.walk("tools"):
    parts = path.split(os.sep)
    if len(parts) < 2:
        continue
    for name in names:
        if name.endswith((".c", ".h", ".cu", ".cuh", ".comp", ".glsl")) and "selftest" not in name and not {"selftest", "tests"} & set(parts):
            files.append((parts[1], os.path.join(path, name)))
            if name.endswith(".h"):
                homes[name].add(parts[1])
arrows = {folder: set() for folder, _ in files}
for folder, name in files:
    with open(name, encoding="utf-8") as file:
        for header in re.findall(r'^\s*#\s*include "([^"]+)"', file.read(), re.M):
            home = homes[os.path.basename(header)]
            if len(home) == 1 and folder not in home:
                arrows[folder] |= home
for folder in sorted(arrows):
    print(folder, *sorted(arrows[folder]))
while done := [folder for folder, below in arrows.items() if not below]:
    arrows = {folder: below.difference(done) for folder, below in arrows.items() if folder not in done}
if arrows:
    print("cycle: " + ", ".join(sorted(arrows)), file=sys.stderr)
sys.exit(bool(arrows))
