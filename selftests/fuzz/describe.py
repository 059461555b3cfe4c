#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=5
"""Description of the ioctls for syzkaller, made from uapi/linux/rashpa.h.

describe.py FOLDER   makes rashpa.txt and rashpa.txt.const there
describe.py          checks that they can be made; TAP

Structs, fields, numbers and flags come from the header, sizes and offsets from the
compiler. What a header cannot tell (which fd, which flags, which pointer) stands in
annotations.py; an annotation of something that is not there is an error, and so is a
flag that no field takes.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from annotations import CALLS, FIELDS, FLAGS, HEAD, UNUSED, PREAMBLE

HERE = Path(__file__).resolve().parent
UAPI = HERE.parent.parent / "uapi"
HEADER = UAPI / "linux/rashpa.h"
INTS = {"__u32": "int32", "__s32": "int32", "__aligned_u64": "int64", "char": "int8"}
ARCHES = "386, amd64, arm64"


def read_header():
    """Structs as {name: [(type, field, array or None)]}, and the names of constants."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    structs = {}
    for name, body in re.findall(r"struct (rashpa_\w+) \{(.*?)\n\};", text, flags=re.S):
        structs[name] = []
        for line in filter(None, (s.strip() for s in body.split(";"))):
            m = re.fullmatch(r"(?:struct )?(\w+) (\w+)(?:\[(\w*)\])?", line)
            if not m:
                sys.exit(f"describe: {name}: {line}: not understood")
            structs[name].append(m.groups())
    names = re.findall(r"^#define (RASHPA_\w+)\s", text, flags=re.M)
    enums = re.findall(r"^\s(RASHPA_\w+) = ", text, flags=re.M)
    # the guards of the header are defined empty
    return structs, [n for n in names if not n.endswith("_H")], enums


def ask_compiler(structs, constants):
    """Values of constants; size of each struct; offset and size of each field."""
    lines = ["#include <stdio.h>", "#include <stddef.h>", "#include <linux/rashpa.h>",
             "int main(void) {"]
    for c in constants:
        lines.append(f'printf("{c} %llu\\n", (unsigned long long)({c}));')
    for s, fields in structs.items():
        lines.append(f'printf("{s} %zu\\n", sizeof(struct {s}));')
        for kind, field, array in fields:
            if array == "":  # a flexible array has no size
                continue
            lines.append(f'printf("{s}.{field} %zu\\n", offsetof(struct {s}, {field}));')
            lines.append(f'printf("{s}.{field}.size %zu\\n", '
                         f"sizeof(((struct {s} *)0)->{field}));")
    lines.append("}")
    with tempfile.TemporaryDirectory() as work:
        source, program = Path(work, "ask.c"), Path(work, "ask")
        source.write_text("\n".join(lines))
        subprocess.run(["gcc", f"-I{UAPI}", "-o", program, source], check=True)
        out = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {k: int(v) for k, v in (line.split() for line in out.splitlines())}


def width(kind, array, values, structs):
    """Bytes of a field as the description has it."""
    one = {"int8": 1, "int32": 4, "int64": 8}.get(INTS.get(kind)) or values[kind]
    return one * (values.get(array) or int(array) if array else 1)


def plain(kind, field, array):
    """A field without an annotation."""
    base = INTS.get(kind, kind)
    if field.startswith("__reserved"):
        base = "const[0, " + base + "]"
    if array == "":
        return f"array[{base}]"
    return f"array[{base}, {array}]" if array else base


def check_layout(structs, values):
    """The description has no padding, so the struct must have none."""
    for s, fields in structs.items():
        at = 0
        for kind, field, array in fields:
            if array == "":
                continue
            if at != values[f"{s}.{field}"]:
                sys.exit(f"describe: {s}.{field}: a hole before it")
            if width(kind, array, values, structs) != values[f"{s}.{field}.size"]:
                sys.exit(f"describe: {s}.{field}: size")
            at += values[f"{s}.{field}.size"]
        if at != values[s]:
            sys.exit(f"describe: {s}: a hole at its end")


def describe_struct(name, fields, values, used):
    lines = []
    for kind, field, array in fields:
        key = f"{name.removeprefix('rashpa_')}.{field}"
        text = FIELDS.get(key, plain(kind, field, array))
        if kind == "rashpa_head":
            flags = HEAD.get(name.removeprefix("rashpa_"))
            flags = f"flags[{flags}, int32]" if flags else "const[0, int32]"
            text = f"rashpa_head[{values[name]}, {flags}]"
        elif field.startswith("out_"):
            text += " (out)"
        used.add(key)
        lines.append(f"\t{field}\t{text}")
    return f"{name} {{\n" + "\n".join(lines) + "\n}\n"


def make_text(structs, enums, constants, values):
    used, parts = set(), [PREAMBLE]
    numbers = [c for c in constants if c.startswith("RASHPA_IOC_") and c != "RASHPA_IOC_TYPE"]
    described = {node_number.split("@")[0] for node_number in CALLS}
    if described != {n.removeprefix("RASHPA_IOC_") for n in numbers}:
        sys.exit(f"describe: calls: {described ^ {n.removeprefix('RASHPA_IOC_') for n in numbers}}")
    for call, (fd, struct) in CALLS.items():
        number, suffix = call.split("@")[0], call.replace("@", "_")
        parts.append(f"ioctl$RASHPA_IOC_{suffix}(fd {fd}, cmd const[RASHPA_IOC_{number}], "
                     f"arg ptr[inout, rashpa_{struct}])")
    parts.append("")
    for name, members in FLAGS.items():
        parts.append(f"{name} = " + ", ".join(members))
    parts.append("")
    for name, fields in structs.items():
        if name != "rashpa_head":
            parts.append(describe_struct(name, fields, values, used))
    text = "\n".join(parts)

    unknown = (set(FIELDS) - used) | ({f"rashpa_{h}" for h in HEAD} - set(structs))
    if unknown:
        sys.exit(f"describe: annotated, but not in the header: {sorted(unknown)}")
    taken = {m for members in FLAGS.values() for m in members} | set(numbers) | set(UNUSED)
    if taken ^ set(enums + constants):
        sys.exit(f"describe: not in both header and annotations: "
                 f"{sorted(taken ^ set(enums + constants))}")
    for name in FLAGS:
        if f"flags[{name}" not in text:
            sys.exit(f"describe: no field takes {name}")
    return text


def make_const(text, constants, values):
    lines = ["# Code generated by describe.py. DO NOT EDIT.", f"arches = {ARCHES}",
             "AT_FDCWD = 18446744073709551516"]
    lines += [f"{c} = {values[c]}" for c in sorted(constants) if re.search(rf"\b{c}\b", text)]
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    structs, constants, enums = read_header()
    values = ask_compiler(structs, constants + enums)
    check_layout(structs, values)
    text = make_text(structs, enums, constants, values)
    const = make_const(text, constants + enums, values)
    for folder in map(Path, sys.argv[1:]):
        (folder / "rashpa.txt").write_text(text)
        (folder / "rashpa.txt.const").write_text(const)
    if len(sys.argv) == 1:
        print("ok 1 - described: all of the header is described for syzkaller\n1..1")


if __name__ == "__main__":
    main()
