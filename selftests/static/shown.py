#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Texts of others that tools print as they are: FILE:LINE: WHAT for each. With names of files only these. See
tools/common/shown.h: SHOWN() around the argument, or json_shown(), is the remedy."""
import os
import re
import sys

# members and functions whose text another user, a file, a board or a peer wrote; add yours
FOREIGN = re.compile(r"""
    (?:->|\.)(?:comm|dataset|lock_name|payload_name|engine|sentence|reason|driver|common_name)\b(?!\s*(?:->|\(|\?))
    | \b(?:rashpa_reason|json_object_get_string)\(
    | \b(?:why|reason)\b(?!\s*\()
""", re.X)
# what prints without a look at it; say(), fail(), progress_show() and screen_line() look
PRINTS = re.compile(r"(?<![\w>.])(?:printf|puts|fputs|dprintf|vprintf|fprintf)\(")
# JSON for a terminal or a file. These are messages to programs, which parse them
TO_PROGRAMS = ("tools/common/json-out.c", "tools/daemon/led.c", "tools/daemon/child.c", "tools/link/control-link.c",
               "tools/builder/agree.c", "tools/builder/build.c", "tools/builder/traffic.c")
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'')
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def without(pattern, text):
    """The text with blanks for what matches; lines stay."""
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def end_of(text, at):
    """Behind the parenthesis that closes the one before @at."""
    depth = 1
    while depth and at < len(text):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return at


def without_shown(call):
    """A call without the arguments of SHOWN(), or of label() of metrics.c, which is one."""
    while found := re.search(r"\b(?:SHOWN|label)\(", call):
        call = call[:found.start()] + call[end_of(call, found.end()):]
    return call


def findings(name, text):
    text = without(QUOTED, without(COMMENT, text))
    for found in PRINTS.finditer(text):
        call = without_shown(text[found.end():end_of(text, found.end())])
        for foreign in FOREIGN.finditer(call):
            yield text.count("\n", 0, found.start()) + 1, f"{foreign.group().strip('(')} is printed as it is: SHOWN()"
    if name not in TO_PROGRAMS:
        for found in re.finditer(r"\bjson_object_to_json_string\w*\(", text):
            yield text.count("\n", 0, found.start()) + 1, "JSON is printed as it is: json_shown()"


def main():
    # it finds what is planted, and nothing else
    planted = 'int f(void)\n{\n\tprintf("%s why %s", SHOWN(h->comm),\n\t       h->comm);\n\tfail("%s", why);\n}\n'
    if [line for line, _ in findings("planted.c", planted)] != [3]:
        print("shown.py finds nothing, or too much")
    names = sys.argv[1:] or [os.path.join(path, name) for path, _, names in os.walk("tools") for name in names]
    for name in sorted(names):
        parts = name.split(os.sep)
        if not name.endswith(".c") or parts[0] != "tools" or {"tests", "selftest", "examples"} & set(parts) or \
           "selftest" in name:
            continue
        with open(name, encoding="utf-8") as file:
            for line, what in findings(name, file.read()):
                print(f"{name}:{line}: {what}")


main()
