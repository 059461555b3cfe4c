#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Print the sentences that the driver and the tools say to users, one per line: FILE:LINE: SENTENCE.

These are the strings of all calls whose function takes a format, except output of results (printf and the
like) and logs of debugging. To be read as a whole: "messages.py [FOLDER...]".
"""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
KNOWN = {"argp_error", "argp_failure", "error", "errx", "err", "warn", "warnx", "dev_err", "dev_warn", "dev_info", "dev_notice",
         "pr_err", "pr_warn", "pr_info", "dev_err_ratelimited", "dev_warn_ratelimited", "dev_err_probe"}
STRING = r'"(?:[^"\\]|\\.)*"|[A-Z]{1,4}[A-Z0-9_]*(?=\s+")|(?<=")\s*PRI\w+'
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def formats(sources):
    """Functions with a format attribute."""
    names = set(KNOWN)
    for source in sources.values():
        for match in re.finditer(r"(?:format\s*\(\s*(?:__)?printf|__printf\s*\()", source):
            around = source[max(0, match.start() - 300):match.end() + 300]
            at = min(300, match.start())
            before = re.findall(r"(\w+)\s*\([^;{}()]*(?:\([^()]*\)[^;{}()]*)*\)\s*__attribute__\s*\(\(?[^;]*$", around[:at])
            after = re.search(r"\)+[^;{(]*?\b(\w+)\s*\(", around[at:])
            names.update(before[-1:] or ([after[1]] if after else []))
    return names


def sentences(source, names):
    for match in re.finditer(r"\b(%s)\s*\(" % "|".join(sorted(names)), source):
        depth, at = 1, match.end()
        parts, start = [], None
        while depth and at < len(source):
            if source[at] == '"':
                end = at + 1
                while source[end] != '"':
                    end += 2 if source[end] == "\\" else 1
                if start is None:
                    start = at
                parts.append(source[at + 1:end])
                at = end + 1
                continue
            if source[at] == "," and depth == 1 and parts:
                break
            depth += {"(": 1, ")": -1}.get(source[at], 0)
            at += 1
        said = "".join(parts).replace("\\n", " ").strip()
        if re.search(r"[a-z]{3}", said):
            yield source.count("\n", 0, match.start()) + 1, said


def main():
    folders = sys.argv[1:] or ["drivers", "tools"]
    paths = sorted(path for folder in folders for path in (TOP / folder).rglob("*.[ch]") if "tests" not in path.parts and "selftest" not in path.name)
    sources = {path: COMMENT.sub(blank, path.read_text(encoding="utf-8")) for path in paths}
    names = formats({**sources, **{p: p.read_text(encoding="utf-8") for p in TOP.glob("tools/*/*.h")}})
    for path, source in sources.items():
        for line, said in sentences(source, names):
            print(f"{path.relative_to(TOP)}:{line}: {said}")


if __name__ == "__main__":
    main()
