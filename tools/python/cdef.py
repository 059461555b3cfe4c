#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Make the package's declarations of C: cdef.py OUTPUT HEADER...

The headers lose comments, inline functions and what else cffi does not read; numbers are computed. An
installed package needs neither headers nor a compiler.
"""
import re
import sys

import cffi

TYPES = {"__u8": "uint8_t", "__u16": "uint16_t", "__u32": "uint32_t", "__s32": "int32_t",
         "__u64": "uint64_t", "__aligned_u64": "uint64_t"}


def number(text, known):
    """The value of an expression of C; None: it has none."""
    text = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", text)
    try:
        value = eval(text, {"__builtins__": {}, "_BITUL": lambda n: 1 << n, "_IO": lambda kind, n: kind << 8 | n}, known)
    except (NameError, SyntaxError, TypeError):
        return None
    return value if isinstance(value, int) else None


def declarations(text, known):
    """What cffi reads of a header."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S).replace("\\\n", " ")
    text = re.sub(r"^static inline .*?^}\n", "", text, flags=re.S | re.M)
    text = re.sub(r'^extern "C" \{\n#endif|^#ifdef __cplusplus\n}', "", text, flags=re.M)
    text = re.sub(r"__attribute__\(\(.*?\)\)(?=;|$)|^_Static_assert\(.*?\);", "", text, flags=re.S | re.M)
    numbers = ""
    for name, value in re.findall(r"^#define\s+(\w+)\s+(.+)$", text, re.M):
        known[name] = number(value, known)
        if known[name] is not None:
            numbers += f"#define {name} {known[name]}\n"
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.M)
    return numbers + re.sub(r"\b__\w+\b", lambda word: TYPES.get(word[0], word[0]), text)


def main(output, *headers):
    ffi, known = cffi.FFI(), {}
    for header in headers:
        with open(header, encoding="utf-8") as file:
            ffi.cdef(declarations(file.read(), known))
    ffi.cdef("int munmap(void *address, size_t length);")
    ffi.set_source("rashpa._cdef", None)
    ffi.emit_python_code(output)


if __name__ == "__main__":
    main(*sys.argv[1:])
