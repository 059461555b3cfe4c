# SPDX-License-Identifier: LGPL-2.1-or-later
"""librashpa, with the declarations that ../cdef.py makes of its headers."""
import os

from ._cdef import ffi

try:
    lib = ffi.dlopen(os.environ.get("RASHPA_LIBRARY") or "librashpa.so.0")
except OSError as failure:
    raise ImportError(f"{failure}: install it, run ldconfig, or set RASHPA_LIBRARY "
                      "to its path") from None
libc = ffi.dlopen(None)


def names_of(enum, prefix):
    """Names of an enum's numbers in Python: {0: "wait", ...}."""
    elements = ffi.typeof("enum " + enum).elements
    return {value: name.removeprefix(prefix).lower() for value, name in elements.items()}


def size_of(struct):
    """Bytes of a struct as declared here, for functions named ..._sized."""
    return ffi.sizeof(ffi.typeof(struct).item)


def shown(text):
    """Escape the text of another program as the tools do: see tools/common/shown.h."""
    text = text.decode(errors="backslashreplace")
    return "".join(c if c.isprintable() else "".join(f"\\x{byte:02x}" for byte in c.encode()) for c in text)


def plain(struct):
    """The fields of a struct as a dict of Python's own types."""
    fields = {}
    for name, field in struct_fields(struct):
        value = getattr(struct, name)
        if field.type.kind == "array":
            value = shown(ffi.string(value)) if field.type.item.cname == "char" else tuple(value)
        fields[name] = value
    return fields


def struct_fields(struct):
    kind = ffi.typeof(struct)
    kind = kind.item if kind.kind == "pointer" else kind
    return [(name, field) for name, field in kind.fields if not name.startswith("_")]
