#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes telegrams-reference.rst from the schema of telegrams.

telegrams.py            write it
telegrams.py --check    exit with status 1 if the page is not up to date
telegrams.py --settings detector|receiver    names of settings, a line each
"""
import os
import sys
import textwrap
import xml.etree.ElementTree as ET

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMA = os.path.join(HERE, "../tools/link/rashpa.xsd")
PAGE = os.path.join(HERE, "telegrams-reference.rst")
XS = "{http://www.w3.org/2001/XMLSchema}"
WIDTH = 110
HEAD = """.. SPDX-License-Identifier: LGPL-2.1-or-later
.. Made by Documentation/telegrams.py from tools/link/rashpa.xsd: change these.

===================
Telegrams reference
===================

The elements of `telegrams <telegrams.rst>`__. *others* are elements of other name spaces. For the file of an experiment
see `A manager <manager.rst#the-file>`__.

.. contents::
   :depth: 1
"""

root = ET.parse(SCHEMA).getroot()
types = {t.get("name"): t for t in root if t.tag in (XS + "simpleType", XS + "complexType")}
elements = {e.get("name"): e for e in root.findall(XS + "element")}


# --- of the schema

def words(node):
    """Return the documentation of a node."""
    said = node.find(f"{XS}annotation/{XS}documentation")
    return "" if said is None else " ".join(said.text.split())


def info(node):
    """Return {key: value} of the appinfo of a node."""
    said = node.find(f"{XS}annotation/{XS}appinfo")
    if said is None:
        return {}
    pairs = said.text.split('"')
    return {key.strip(" ="): value for key, value in zip(pairs[::2], pairs[1::2])}


def content_type(node):
    """The complex type of an element, its own or one that has a name; None: it has none."""
    own = node.find(XS + "complexType")
    named = types.get(node.get("type", ""))
    if own is None and named is not None and named.tag == XS + "complexType":
        own = named
    return own


def text_type(kind):
    """Name of the type of what is between the tags, or None."""
    extension = kind.find(f"{XS}simpleContent/{XS}extension")
    return None if extension is None else extension.get("base")


def bodies(kind):
    """Where the attributes and the elements of a complex type are, those that it extends first."""
    for content in ("simpleContent", "complexContent"):
        extension = kind.find(f"{XS}{content}/{XS}extension")
        if extension is not None:
            base = types.get(extension.get("base", ""))
            if base is not None and base.tag == XS + "complexType":
                yield from bodies(base)
            yield extension
            return
    yield kind


def attributes(kind):
    return [a for body in bodies(kind) for a in body.findall(XS + "attribute")]


def inside(kind):
    """Elements, and what others may add, in their order."""
    for body in bodies(kind):
        for group in body:
            if group.tag in (XS + "sequence", XS + "choice"):
                yield from particles(group)


def particles(group):
    """(element, whether there is one of several only)."""
    for node in group:
        if node.tag in (XS + "element", XS + "any", XS + "group"):
            yield node, group.tag == XS + "choice"
        elif node.tag in (XS + "sequence", XS + "choice"):
            yield from particles(node)


def listed(name):
    """Return the documentation of a type that is a list of values."""
    kind = types.get(name)
    return "" if kind is None or kind.find(f".//{XS}enumeration") is None else words(kind)


def often(node):
    least, most = node.get("minOccurs", "1"), node.get("maxOccurs", "1")
    if most == "unbounded":
        return f"{least}–"
    return least if least == most else f"{least}–{most}"


def settings(of):
    group = next(g for g in root.findall(XS + "group") if g.get("name") == of + "-setting")
    return group.findall(f"{XS}choice/{XS}element")


# --- as text

def title(text, line):
    return f"{text}\n{line * len(text)}\n"


def paragraph(text, indent=""):
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent,
                         break_long_words=False, break_on_hyphens=False) + "\n"


def table(head, rows):
    """The last column may have several lines."""
    sizes = [max(len(row[i]) for row in [head] + rows) for i in range(len(head))]
    sizes[-1] = max(len(head[-1]), min(sizes[-1], max(40, WIDTH - sum(sizes[:-1]))))
    rule = "  ".join("=" * size for size in sizes)
    lines = [rule, "  ".join(cell.ljust(size) for cell, size in zip(head, sizes)).rstrip(), rule]
    for row in rows:
        last = textwrap.wrap(row[-1], sizes[-1], break_long_words=False,
                             break_on_hyphens=False) or [""]
        lines.append("  ".join(c.ljust(s) for c, s in zip(row[:-1] + [last[0]], sizes)).rstrip())
        before = sum(sizes[:-1]) + 2 * (len(sizes) - 1)
        lines += [" " * before + line for line in last[1:]]
    return "\n".join(lines + [rule]) + "\n"


def type_name(node):
    return node.get("type", "").removeprefix("xs:")


def rows_of(kind, path):
    """Rows of a table: attributes, then elements and what is in these."""
    for a in attributes(kind):
        yield [f"``{path}@{a.get('name')}``", type_name(a),
               "1" if a.get("use") == "required" else "0–1",
               words(a) or listed(a.get("type"))]
    for node, choice in inside(kind):
        if node.tag == XS + "any":
            yield [path + "others", "", often(node), ""]
            continue
        if node.tag == XS + "group":
            yield [path + "settings", "", "0–", "See Settings_."]
            continue
        if node.get("ref"):
            continue
        name, own = path + node.get("name"), content_type(node)
        named = own is not None and own.get("name")
        said = words(node) or (words(own) if named else "")
        times = "choice" if choice else often(node)
        between = text_type(own) if own is not None else type_name(node)
        yield [f"``{name}``", between or "", times, said]
        if own is not None and named != "empty":
            yield from rows_of(own, name + "/")


def element(name):
    node = elements[name]
    kind, told = content_type(node), info(node)
    out = [title(name, "-"), paragraph(words(node))]
    if told:
        states = told["states"].split()
        said = "In any state" if len(states) == len(list(types["state"].iter(XS + "enumeration"))) else \
            "In state " + ", ".join(states)
        said += "; the leader only" if told["leader"] == "yes" else ""
        out.append(paragraph(said + (f"; to a {told['role']} only." if "role" in told else ".")))
    if text_type(kind):
        out.append(paragraph(f"Between its tags: {text_type(kind)}."))
    rows = list(rows_of(kind, ""))
    if rows:
        out.append(table(["what", "type", "times", "meaning"], rows))
    return "\n".join(out)


def values():
    out, rows = [], []
    for name, node in types.items():
        if node.tag != XS + "simpleType":
            continue
        known = list(node.iter(XS + "enumeration"))
        pattern = node.find(f"{XS}restriction/{XS}pattern")
        if known:
            out.append(title(name, "-"))
            out.append(paragraph(words(node)))
            out.append(table(["value", "meaning"],
                             [[f"``{v.get('value')}``", words(v)] for v in known]))
        else:
            shown = "" if pattern is None else f" ``{pattern.get('value')}``"
            rows.append([name, words(node) + shown])
    rows += [["boolean", "``true``, ``false``, ``1`` or ``0``"], ["int", "A number of 32 bits with a sign."]]
    return "\n".join([table(["type", "what it is"], rows)] + out)


def page():
    """All of it."""
    asked = [n for n, e in elements.items() if info(e)]
    said = [n for n, e in elements.items() if not info(e) and n not in ("telegram", "experiment")]
    groups = {g.get("name"): words(g) for g in root.findall(XS + "group")}
    parts = [HEAD, title("Telegrams of a manager", "="),
             paragraph("In another state they are answered by an error, and change nothing.")]
    parts += [element(name) for name in asked]
    parts.append(title("Telegrams of a daemon", "="))
    parts += [element(name) for name in said]
    parts += [title("Settings", "="),
              paragraph("Each is an option with its name, and means the same; without a value it is an empty element. "
                        "Only dtp and to may be repeated. The options accept, daemon, json, leader, progress, tls and "
                        "tune are no settings."),
              paragraph("Of a detector: " + groups["detector-setting"]),
              paragraph("Of a receiver: " + groups["receiver-setting"]),
              title("Values", "="), values()]
    return "\n".join(parts)


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--settings"]:
        print(*(s.get("name") for s in settings(arguments[1])), sep="\n")
        return 0
    made = page()
    if arguments == ["--check"]:
        with open(PAGE, encoding="utf-8") as file:
            same = file.read() == made
        if not same:
            print(f"{PAGE} is not what {sys.argv[0]} makes of the schema: run it", file=sys.stderr)
        return 0 if same else 1
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
