#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each verdict in scripts and Python tests begins with an id, "id: sentence", which is literal and
unique in its file. ids.py FILE... prints verdicts without such an id."""
import ast
import glob
import os
import re
import sys

# position of a verdict's name among the arguments
SHELL = {"ok": 1, "is": 0, "holds": 0, "good": 0, "skip": 0}
COMMAND = (r"(?:^\t*|[;&|{][ \t]*|(?:^\t*|; )(?:then|do|else|if|!)[ \t]+)"
           r"(?:\w+=(?:\"[^\"]*\"|'[^']*'|[^\s\"'])*[ \t]+)*(%s)[ \t]+")
FUNCTION = re.compile(r"^(\t*)(\w+)\(\) \{( *(?:#[^\n]*)?\n.*?\n\1|[^\n]*)\}", re.M | re.S)
LIBRARY = sorted(glob.glob("selftests/lib/*.sh"))
PYTHON = {"ok": 1, "check": 0, "same": 0, "skip": 0}
ID = re.compile(r"[a-z0-9_./-]*[a-z0-9][a-z0-9_./-]*")
VALUES = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|\$\w+|\{[^}]*\}|%[a-z]+")


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


def emitters(text):
    """Functions of a script that take the name of a verdict, and the position of that argument."""
    found = {}
    for _, function, body in FUNCTION.findall(text):
        named = dict(re.findall(r"\b(\w+)=\$(\d)", body))
        for command, place in SHELL.items():
            said = re.search(rf"\b{command} {'[^ ]+ ' * place}\"\$(\w+)\"", body)
            number = said and (said[1] if said[1].isdigit() else named.get(said[1]))
            if number and function not in SHELL:
                found[function] = int(number) - 1
    return found


def shell_names(text):
    """(line, command, begin, end) of the names of verdicts."""
    places = dict(SHELL)
    for file in LIBRARY:
        with open(file, encoding="utf-8") as library:
            places |= emitters(library.read())
    places |= emitters(text)
    for match in re.finditer(COMMAND % "|".join(places), text, re.M):
        found = list(words(text, match.end()))
        place = places[match[1]]
        if len(found) > place and text[found[place][0]] in "\"'":
            yield text.count("\n", 0, match.start(1)) + 1, match[1], *found[place]
    for match in re.finditer(r'\bcheck\(("[^"]*")', text):  # of jq
        yield text.count("\n", 0, match.start()) + 1, "check", *match.span(1)


def python_names(text):
    """The same of Python."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in PYTHON:
            place = PYTHON[node.func.id]
            if len(node.args) > place and isinstance(node.args[place], (ast.Constant, ast.JoinedStr)):
                name = node.args[place]
                begin = len(text.encode()[:starts[name.lineno - 1] + name.col_offset].decode())
                end = len(text.encode()[:starts[name.end_lineno - 1] + name.end_col_offset].decode())
                yield name.lineno, node.func.id, begin, end


def c_names(text):
    """The same of C."""
    for match in re.finditer(r"\bok\(", text):
        at, depth = match.end(), 0
        while text[at] != "," or depth:
            found = re.match(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', text[at:])
            depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(text[at], 0)
            if depth < 0:
                break
            at += len(found[0]) if found else 1
        name = re.match(r'[,\s]*("(?:[^"\\]|\\.)*")', text[at:])
        if depth == 0 and name:
            yield text.count("\n", 0, at + name.start(1)) + 1, "ok", at + name.start(1), at + name.end(1)


def main():
    bad = False
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        seen = set()
        for line, command, begin, end in NAMES[os.path.splitext(path)[1]](text):
            name = text[begin:end].lstrip("f").strip("\"'")
            key, colon, _ = name.partition(": ")
            fixed = VALUES.sub("", key)
            if not fixed.strip("-./"):
                continue  # the caller supplies the id
            if not colon or not ID.fullmatch(fixed):
                print(f"{path}:{line}: no id: {name}")
            elif key in seen and command != "skip":
                print(f"{path}:{line}: duplicate id: {key}")
            else:
                if command != "skip":
                    seen.add(key)
                continue
            bad = True
    return bad


NAMES = {".c": c_names, ".py": python_names, ".sh": shell_names}
if __name__ == "__main__":
    sys.exit(main())
