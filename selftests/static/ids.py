#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each verdict in scripts and Python tests begins with an id, "id: sentence", that is written in the source and
stands once in a file: ids.py FILE... prints those that do not."""
import re
import sys

# where the name of a verdict stands among the arguments
SHELL = {"ok": 1, "is": 0, "holds": 0, "good": 0, "skip": 0}
COMMAND = re.compile(r"(?:^|[;&|{(]|\b(?:then|do|else|if|!))[ \t]*(%s)[ \t]+" % "|".join(SHELL), re.M)
PYTHON = re.compile(r"\b(?:ok|skip)\(")
ID = re.compile(r"[a-z0-9$][\w./${}\[\]@#%,*-]*: \S")


def words(text, at):
    """Words of a command of the shell, up to its end: (begin, end) of each."""
    nest, begin = [], None
    while at < len(text):
        c = text[at]
        if c == "\\":
            if begin is None and text[at + 1] == "\n":
                at += 2
                continue
            begin = at if begin is None else begin
            at += 2
            continue
        if nest and nest[-1] == "'":
            if c == "'":
                nest.pop()
        elif c == "$" and text[at + 1:at + 2] in "({":
            begin = at if begin is None else begin
            nest.append(")" if text[at + 1] == "(" else "}")
            at += 1
        elif nest and c == nest[-1]:
            nest.pop()
        elif c == '"' or c == "'" and not (nest and nest[-1] == '"'):
            begin = at if begin is None else begin
            nest.append(c)
        elif c == "(" and nest and nest[-1] == ")":
            nest.append(")")
        elif not nest and c in " \t":
            if begin is not None:
                yield begin, at
                begin = None
        elif not nest and c in "\n;|&)":
            break
        elif begin is None:
            begin = at
        at += 1
    if begin is not None:
        yield begin, at


def shell_names(text):
    """(line, command, begin, end) of the names of verdicts."""
    for match in COMMAND.finditer(text):
        if text[text.rfind("\n", 0, match.start(1)) + 1:match.start(1)].lstrip().startswith("#"):
            continue
        found = list(words(text, match.end()))
        place = SHELL[match[1]]
        if len(found) > place and not text[match.end():].startswith(("=", ")")):
            yield text.count("\n", 0, match.start(1)) + 1, match[1], *found[place]


def main():
    bad = False
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        seen = set()
        for line, command, begin, end in shell_names(text):
            name = text[begin:end].strip("\"'")
            if re.fullmatch(r"\$\{?\w+\}?", name):
                continue  # it came with its id
            key = name.partition(": ")[0]
            if not ID.match(name):
                print(f"{path}:{line}: no id: {name}")
            elif key in seen and command != "skip":
                print(f"{path}:{line}: once more: {key}")
            else:
                if command != "skip":
                    seen.add(key)
                continue
            bad = True
    return bad


if __name__ == "__main__":
    sys.exit(main())
