#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check with the C compiler that the package's declarations match the C headers."""
import os
import re
import subprocess
import sys

from rashpa import _abi, processing

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))


def structs(ffi):
    return [name for name in ffi.list_types()[1]
            if ffi.typeof("struct " + name).fields is not None]


def assertions():
    yield from of(_abi.ffi, _abi.STREAM + _abi.EVENTS)
    yield from of(processing.ffi, processing.DECLARATIONS)


def of(ffi, text):
    for name in structs(ffi):
        kind = ffi.typeof("struct " + name)
        yield f"sizeof(struct {name}) == {ffi.sizeof(kind)}"
        yield f"_Alignof(struct {name}) <= {_abi.LINE}"
        for field, about in kind.fields:
            if field.startswith("_pad"):
                continue
            member = f"((struct {name} *)0)->{field}"
            yield f"offsetof(struct {name}, {field}) == {about.offset}"
            yield f"sizeof({member}) == {ffi.sizeof(about.type)}"
            if about.type.kind == "primitive":
                signed = int(about.type.cname.startswith(("int", "float")))
                yield f"((__typeof__({member}))-1 < 0) == {signed}"
    for name, value in re.findall(r"(RASHPA_[A-Z0-9_]+)[ =]+(\d+)", text):
        yield f"{name} == {value}"


def source(spoil):
    lines = ["#include <stddef.h>", "#include <sys/mman.h>", '#include "rashpa.h"',
             '#include "rashpa-stream.h"', '#include "rashpa-processing.h"']
    # a declaration that differs from the header is an error
    lines += re.findall(r"^(?:[a-z].*\b(?:rashpa_\w+)\((?:.|\n)*?\);)", _abi.STREAM + _abi.EVENTS + _abi.BUFFERS +
                        processing.DECLARATIONS, re.M)
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
    # and the check must detect planted differences
    good &= not compiles(("uint32_t index", "uint64_t index"))
    good &= not compiles(("offsetof(struct rashpa_stack, user) == ",
                          "offsetof(struct rashpa_stack, user) == 1"))
    print(f"# {len(list(assertions()))} facts,", "all true" if good else "not all true")
    sys.exit(not good)
