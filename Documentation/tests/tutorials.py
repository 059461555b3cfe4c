#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Blocks of commands in Start and Guides. Before each of them stands a comment that says who runs it:

.. run: any        needs nothing
.. run: driver     needs the driver
.. run: fpga       needs a board, too
.. run: edu        needs QEMU's device edu, too
.. not run: WHY    files of tests in it have to be there

Blocks of a language (.. code-block:: text, ...) hold no commands.

tutorials.py check PAGE...      a line for each block that does not say so
tutorials.py scripts TO PAGE... what is run of PAGE, as TO/PAGE.sh; a line "between" before each block
"""
import os
import re
import sys

import docutils.core
from docutils import nodes

NEEDS = ("any", "driver", "fpga", "edu")


def blocks(page):
    """(what the comment says, or None; the commands; line) of each block."""
    with open(page, encoding="utf-8") as file:
        tree = docutils.core.publish_doctree(file.read(), page, settings_overrides={"report_level": 3})
    for block in tree.findall(nodes.literal_block):
        if "code" in block["classes"]:
            continue  # of a language
        at = block.parent.index(block)
        before = block.parent[at - 1] if at else None
        said = before.astext() if isinstance(before, nodes.comment) else None
        yield said, block.astext(), block.line or 0


def wrong(said):
    """Return the error of a comment, or None."""
    kind, _, rest = (said or "").partition(": ")
    if kind == "run" and rest in NEEDS:
        return None
    if kind != "not run" or not rest:
        return "says not whether it is run"
    for name in re.findall(r"\b[\w-]+/[\w./-]+\.(?:sh|py)\b", rest):
        if not os.path.exists(name):
            return f"there is no {name}"
    return None


def main():
    what, *pages = sys.argv[1:]
    to = pages.pop(0) if what == "scripts" else None
    for page in pages:
        script = ""
        for said, commands, line in blocks(page):
            if not to and (fault := wrong(said)):
                print(f"{page}: the block before line {line}: {fault}")
            elif said and said.startswith("run: "):
                script += f"between {said.partition(': ')[2]}\n{commands}\n"
        if to:
            name = os.path.splitext(os.path.basename(page))[0]
            with open(f"{to}/{name}.sh", "w", encoding="utf-8") as file:
                file.write(script)


main()
