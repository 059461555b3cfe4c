#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check with the C compiler that what ../cdef.py made of the headers has their layouts and numbers."""
import os
import subprocess
import sys

from rashpa._abi import ffi, lib

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))


def assertions():
    for name in ffi.list_types()[1]:
        kind = ffi.typeof("struct " + name)
        for field, about in kind.fields or ():
            member = f"((struct {name} *)0)->{field}"
            yield f"offsetof(struct {name}, {field}) == {about.offset}"
            if about.type.kind == "array" and about.type.length is None:
                continue
            yield f"sizeof({member}) == {ffi.sizeof(about.type)}"
            if about.type.kind == "primitive":
                signed = int(about.type.cname.startswith(("int", "float")))
                yield f"((__typeof__({member}))-1 < 0) == {signed}"
        if kind.fields is not None:
            yield f"sizeof(struct {name}) == {ffi.sizeof(kind)}"
    for name in dir(lib):
        if name.isupper():
            yield f"{name} == {getattr(lib, name)}"


def source(spoil):
    lines = ["#include <stddef.h>", "#include <sys/mman.h>", "#include <rashpa-board.h>", "#include <rashpa-gpu.h>",
             "#include <rashpa-processing.h>"]
    lines += [f'_Static_assert({what}, "{what}");' for what in assertions()]
    text = "\n".join(lines) + "\n"
    return text.replace(*spoil) if spoil else text


def compiles(spoil=None):
    text = source(spoil)
    if spoil and spoil[1] not in text:
        sys.exit(f"the text to replace is missing: {spoil[0]}")
    run = subprocess.run(["gcc", "-std=gnu17", "-fsyntax-only", "-x", "c", "-I", f"{TOP}/uapi",
                          "-I", f"{TOP}/tools/lib",
                          "-I", f"{TOP}/tools/processing", "-"],
                         input=text, text=True, capture_output=True, check=False)
    if run.returncode and not spoil:
        print(run.stderr)
    return not run.returncode


if __name__ == "__main__":
    good = compiles()
    # and the check must detect a planted difference
    good &= not compiles(("offsetof(struct rashpa_stack, user) == ",
                          "offsetof(struct rashpa_stack, user) == 1"))
    print(f"# {len(list(assertions()))} facts,", "all true" if good else "not all true")
    sys.exit(not good)
