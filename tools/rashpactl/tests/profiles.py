#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check where=root seconds=7
"""Device profiles: the schema and the tool agree on each. TAP.

Each rule of the schema is broken once, in a profile that has all keys: rashpactl has to refuse that, and to name the
place. Keys of the schema are those of profile.c. With python3-jsonschema the schema itself judges all of it, too.
Quiesce sequences of the profiles are played against models of their boards' registers: they end when the board has
stopped, and not before.
"""
import collections
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    jsonschema = None

RASHPACTL = os.path.join(os.environ.get("RASHPA_TOOLS", "build/tools"), "rashpactl")
SCHEMA = "tools/data/profiles/profile.schema.json"
SOURCE = "tools/rashpactl/profile-file.c"
NONE = object()     # a key that is taken away

# All keys, with the steps of engines and boards.
WAIT = {"wait": {"bar": 0, "offset": 4, "value": 0, "mask": 1, "timeout_ms": 1}}
FULL = {
    "$schema": "profile.schema.json",
    "name": "full", "description": "all keys",
    "match": [{"vendor": 1, "device": "0x2"}],
    "disclose": False, "dma_bits": 64,
    "segments": {"max_length": 4096, "boundary": "4K", "alignment": 8},
    "windows": [{"name": "t", "description": "table", "bar": 0, "offset": 0, "length": 8192, "cache": "uc", "user": False},
                {"name": "d", "bar": 2, "length": 0, "user": True}],
    "vectors": ["first"],
    "quiesce": [{"write": {"bar": 0, "offset": 0, "value": 1, "mask": 1}}, {"wait": {**WAIT["wait"], "else": "reset"}}],
    "quiesce_ms": 1000, "reset": True,
    "table": {"window": "t", "offset": 0, "length": 8192, "stride": 32, "address": {"offset": 0, "bits": 64},
              "length_field": {"offset": 8, "bits": 64}, "control": {"offset": 16, "bits": 32, "set": 1, "clear": 0},
              "sum": {"offset": 24, "bits": 64}, "segment_size": 0, "upper_first": True, "write_only": True},
    "engines": [{"name": "e", "description": "one", "bounds": {"bar": 1, "first": 0, "limit": 4}, "first": 0, "count": 8,
                 "quiesce": [WAIT], "optional": True}],
}

# The same for a board that fetches addresses, with all keys for that.
FETCH = {**FULL, "table": {
    "window": "t", "offset": 0, "length": 8192, "stride": 32, "fetch": {
        "description": "a ring", "size": 32, "max": 1024, "closed": True, "entries": 8, "segment_size": 0,
        "fields": [
            {"kind": "address", "description": "low", "offset": 0, "bits": 64, "shift": 12, "width": 52, "unit": 12},
            {"kind": "length", "offset": 8, "width": 20, "unit": 12, "minus_one": True},
            {"kind": "constant", "offset": 12, "value": 1, "only": "last"},
            {"kind": "next", "offset": 16, "bits": 64}],
        "registers": [{"kind": "address", "offset": 0, "bits": 64}, {"kind": "count", "offset": 8, "clear": 1, "keep": False}]}}}

# The same for a board that takes segments one after the other.
PUSH = {**FULL, "table": {
    "window": "t", "offset": 0, "length": 8192, "stride": 32, "push": {
        "description": "a FIFO", "max": 256, "spread": False, "entries": 8, "segment_size": 0,
        "words": [
            {"kind": "address", "offset": 0, "bits": 64}, {"kind": "end", "offset": 8, "bits": 64},
            {"kind": "constant", "offset": 12, "value": 1, "keep": True, "only": "last"},
            {"kind": "constant", "offset": "0x400", "width": 1, "value": 1, "entry_bit": True}]}}}

# Errors: the place in FULL, the wrong value, a part of rashpactl's message, and whether a schema can detect it.

BOTH, TOOL = True, False
WRONG = [
    ((), [], "must be one JSON object", BOTH),
    (("table", "length_field"), NONE, "segment_size must be a power of two", TOOL),
    (("windows",), NONE, "there is no window \"t\"", BOTH),
    (("table",), NONE, "need the key \"table\"", BOTH),
    (("quiesce",), NONE, "need the key \"quiesce\"", BOTH),
    (("quiesce",), [], "need the key \"quiesce\"", TOOL),
    (("engines", 0, "quiesce"), NONE, "no quiesce sequence", BOTH),
    (("quiesce", 1), {"write": {"bar": 0, "offset": 0, "value": 1}}, "last step must wait", BOTH),
    (("quiesce", 0, "wait"), WAIT["wait"], "must be one of", BOTH),
    (("quiesce", 1, "wait", "value"), 2, "outside the mask", TOOL),
    (("quiesce", 1, "wait", "else"), "stop", "must be \"reset\"", BOTH),
    (("engines", 0, "quiesce", 0, "wait", "else"), "reset", "cannot be reset alone", TOOL),
    (("segments", "alignment"), 12, "power of two", TOOL),
    (("segments", "boundary"), "5K", "multiple of 4096", TOOL),
    (("windows", 1, "name"), "t", "given twice", TOOL),
    (("windows", 0, "user"), True, "is for users", TOOL),
    (("table", "window"), "x", "there is no window", TOOL),
    (("table", "sum", "offset"), 8, "overlap", TOOL),
    (("table", "length"), 16384, "outside the window", TOOL),
    (("table", "segment_size"), 4096, "both length_field and segment_size", BOTH),
    (("table", "control", "clear"), 1, "set and clear are the same", TOOL),
    (("engines", 0, "count"), 1000, "not in the table", TOOL),
    (("engines", 0, "bounds", "bar"), 0, "holds its bounds", TOOL),
    (("dma_bits",), "65", "24 to 64", TOOL),
    (("dma_bits",), "64 bits", "not a number", BOTH),
    (("dma_bits",), 64.5, "whole number", BOTH),
]

# The same for FETCH.
PART = ("table", "fetch")
FIELDS = (*PART, "fields")
WRONG_FETCH = [
    (("table", "address"), {"offset": 0, "bits": 64}, "exclude each other", BOTH),
    (("table", "fetch"), NONE, "neither address nor fetch nor push", BOTH),
    ((*PART, "size"), 16, "not in a descriptor of 16 bytes", TOOL),
    ((*PART, "segment_size"), 4096, "both a length and segment_size", TOOL),
    ((*FIELDS, 0, "kind"), "constant", "unit must be 0 to 63, and 0 for a constant", TOOL),
    ((*FIELDS, 0), {"kind": "index", "offset": 0}, "no field has the address", TOOL),
    ((*FIELDS, 1), {"kind": "index", "offset": 8}, "segment_size must be a power of two", TOOL),
    ((*FIELDS, 0, "minus_one"), True, "for length and count", TOOL),
    ((*FIELDS, 0, "only"), "first", "are for constants", TOOL),
    ((*FIELDS, 1, "shift"), 13, "are not in a word of 32", TOOL),
    ((*FIELDS, 1, "value"), 1, "only a constant has a value", TOOL),
    ((*FIELDS, 1, "offset"), 4, "overlaps", TOOL),
    ((*FIELDS, 1, "clear"), 1, "are for registers", TOOL),
    ((*FIELDS, 2, "value"), 1 << 32, "wider than 32 bits", TOOL),
    ((*FIELDS, 3), {"kind": "index", "offset": 16}, "is closed", TOOL),
    ((*FIELDS, 3, "offset"), 20, "multiple of the word's bytes", TOOL),
    ((*PART, "registers", 0, "kind"), "count", "no register has the address", TOOL),
    ((*PART, "registers", 1, "kind"), "next", "describes a ring", TOOL),
    ((*PART, "registers", 1, "offset"), 8000, "not in the stride", TOOL),
    ((*PART, "registers", 1), {"kind": "constant", "offset": 8, "only": "last"}, "only is for descriptors", TOOL),
]

# The same for PUSH.
WORDS = ("table", "push", "words")
WRONG_PUSH = [
    (("table", "address"), {"offset": 0, "bits": 64}, "exclude each other", BOTH),
    (("table", "fetch"), FETCH["table"]["fetch"], "exclude each other", BOTH),
    (("table", "push", "segment_size"), 4096, "both a length and segment_size", TOOL),
    (("table", "push", "entries"), 300, "more than the 256", TOOL),
    ((*WORDS, 0), {"kind": "index", "offset": 0}, "no word has the address", TOOL),
    ((*WORDS, 1), {"kind": "index", "offset": 8}, "segment_size must be a power of two", TOOL),
    ((*WORDS, 1), {"kind": "next", "offset": 8}, "no next descriptor", TOOL),
    ((*WORDS, 1, "entry_bit"), True, "are for constants", TOOL),
    ((*WORDS, 3, "width"), 2, "of width 1", TOOL),
    ((*WORDS, 3, "shift"), 25, "a bit for each entry", TOOL),
    ((*WORDS, 3, "offset"), 8192, "not in the table", TOOL),
    ((*WORDS, 0, "offset"), 8000, "not in the stride", TOOL),
]

# Variants of FULL that both accept.
RIGHT = [
    ((), {"name": "least", "match": [{"vendor": 1, "device": 2}]}),
    (("engines",), []),
    (("engines", 0, "first"), NONE),
    (("table", "control"), NONE),
    (("table", "segment_size"), NONE),
    (("windows", 0, "length"), "8KiB"),
    (("windows", 0, "cache"), "wc"),
    (("windows", 0, "name"), "t"),
    (("table", "length"), "0x2000"),
    (("quiesce", 1, "wait", "mask"), NONE),
]

tests = 0
times = collections.Counter()
ALL_ONES = 0xffffffff
READS = 1000        # as long as any step waits


# --- boards ---

class Reference:
    """The reference interface, and each engine of it: a control register, and a status register with a busy bit."""

    def __init__(self, step):
        self.control, self.status = step[0]["write"], step[1]["wait"]
        self.running = {"it": True}
        self.pending = 0
        self.stuck = None

    def write(self, offset, value):
        assert offset == int(self.control["offset"], 0) and value, f"{value} is not to be written to {offset:#x}"
        if self.stuck != "it":
            self.running["it"], self.pending = False, 3

    def read(self, offset):
        assert offset == int(self.status["offset"], 0), f"there is no status register at {offset:#x}"
        self.pending -= 0 < self.pending
        return int(self.running["it"] or self.pending > 0)


class Xdma:
    """PG195: after its run bit is cleared, a channel is busy (status bit 0) until its descriptor is complete."""

    CHANNELS = {f"{name}{i}": target + 0x100 * i for name, target in (("h2c", 0), ("c2h", 0x1000)) for i in range(4)}

    def __init__(self, _):
        self.running = dict.fromkeys(self.CHANNELS, True)
        self.pending = dict.fromkeys(self.CHANNELS, 0)
        self.stuck = None

    def channel(self, offset):
        return next(((name, offset - base) for name, base in self.CHANNELS.items() if 0 <= offset - base < 0x100), (None, 0))

    def write(self, offset, value):
        name, register = self.channel(offset)
        assert name and register in (0x04, 0x08, 0x0c), f"there is no control register at {offset:#x}"
        was = self.running[name]
        run = {0x04: value, 0x08: was | value, 0x0c: was & ~value}[register] & 1
        self.running[name] = bool(run) or name == self.stuck
        if was and not run:
            self.pending[name] = 3

    def read(self, offset):
        name, register = self.channel(offset)
        assert name and register == 0x40, f"there is no status register at {offset:#x}"
        self.pending[name] -= 0 < self.pending[name]
        # descriptor_completed and idle_stopped, which are not used here
        return 0x44 | int(self.running[name] or self.pending[name] > 0)


class Lite:
    """LitePCIe: writer and reader have an enable register, and a table with its level, emptied by a write of 1."""

    BASE = 0x1800

    def __init__(self, _):
        self.running = {"writer": True, "reader": True, "writer's table": True, "reader's table": True}
        self.stuck = None

    def register(self, offset):
        assert 0 <= offset - self.BASE < 0x40, f"there is no register of its DMA at {offset:#x}"
        return ("writer", "reader")[(offset - self.BASE) // 0x20], (offset - self.BASE) % 0x20

    def write(self, offset, value):
        name, register = self.register(offset)
        assert (register, value) in ((0x00, 0), (0x1c, 1)), f"{value} is not to be written to {offset:#x}"
        part = name if register == 0x00 else f"{name}'s table"
        self.running[part] = part == self.stuck

    def read(self, offset):
        name, register = self.register(offset)
        assert register in (0x00, 0x18), f"there is nothing to wait for at {offset:#x}"
        return int(self.running[name]) if register == 0x00 else 256 * self.running[f"{name}'s table"]


class Wupper:
    """Wupper: a bit for each descriptor."""

    def __init__(self, _):
        self.running = {"descriptors": True}
        self.stuck = None

    def write(self, offset, value):
        assert (offset, value) == (0x400, 0), f"{value} is not to be written to {offset:#x}"
        self.running["descriptors"] = self.stuck == "descriptors"

    def read(self, offset):
        assert offset == 0x400, f"there is nothing to wait for at {offset:#x}"
        return 0x81 if self.running["descriptors"] else 0


class Verilog:
    """The example design of verilog-pcie: an enable register, counters of reads and writes under way."""

    def __init__(self, _):
        self.running = {"reads": True, "writes": True}
        self.stuck = None

    def write(self, offset, value):
        assert (offset, value) == (0, 0), f"{value} is not to be written to {offset:#x}"
        self.running = {part: part == self.stuck for part in self.running}

    def read(self, offset):
        assert offset in (0x20, 0x28), f"there is nothing to wait for at {offset:#x}"
        return int(self.running["reads" if offset == 0x20 else "writes"])


class Dead:
    """A removed board."""

    def write(self, offset, value):
        pass

    def read(self, _):
        return ALL_ONES


BOARDS = {"rashpa-fpga": Reference, "rashpa-fetch": Reference, "rashpa-chain": Reference, "rashpa-packed": Reference,
          "xilinx-xdma": Xdma, "xilinx-xdma-stream": Xdma, "litepcie": Lite, "wupper": Wupper, "verilog-pcie": Verilog}


def number(value, default=None):
    return default if value is None else int(value, 0) if isinstance(value, str) else value


def play(steps, board):
    """Run the steps as the driver does (rashpa_steps_run()), and return the result."""
    for step in steps:
        (kind, step), = step.items()
        offset, value, mask = number(step["offset"]), number(step["value"]), number(step.get("mask"), ALL_ONES)
        if kind == "write":
            board.write(offset, value if mask == ALL_ONES else board.read(offset) & ~mask | value & mask)
            continue
        for _ in range(READS):
            got = board.read(offset)
            if got == ALL_ONES and mask != ALL_ONES:
                return "does not answer"
            if got & mask == value:
                break
        else:
            return "timed out"
    return "idle"


def stops(steps, kind, stuck=None):
    """Return the verdict of the sequence on a board, and whether it is true; stuck: the part that does not stop."""
    board = kind(steps)
    board.stuck = stuck
    try:
        said = play(steps, board)
    except AssertionError as error:
        said = f"contradicts its register map: {error}"
    return said, said != "idle" or not any(board.running.values())


def test_quiesce(path, steps, kind):
    said, true = stops(steps, kind)
    ok(said == "idle" and true, f"stops-board: {path}: stops its board", said)
    for part in kind(steps).running:
        said, true = stops(steps, kind, part)
        ok(said == "timed out", f"waits-vain-not: {path}: times out if {part} does not stop", said)
    said = play(steps, Dead())
    ok(said == "does not answer", f"dead-board-not: {path}: a dead board has not stopped", said)
    # Each step counts: without it some part runs on undetected, or gets no request to stop.
    for i in range(len(steps) if kind is not Reference else 0):
        rest = steps[:i] + steps[i + 1:]
        results = [stops(rest, kind, part) for part in (None, *kind(steps).running)]
        noticed = results[0][0] != "idle" or not all(true for _, true in results)
        ok(noticed, f"step-counts: {path}: step {i} counts")



def ok(good, name, *notes):
    global tests
    tests += 1
    key, _, sentence = name.partition(": ")
    times[key] += 1
    print(f"{'ok' if good else 'not ok'} {tests} - {key}{f'.{times[key]}' if times[key] > 1 else ''}: {sentence}", *(() if good else (f"# {note}" for note in notes)), sep="\n",
          flush=True)
    return good


def changed(place, value, profile=None):
    """FULL, or another profile, with another value at this place."""
    whole = [json.loads(json.dumps(profile or FULL))]    # WAIT is in it twice
    *way, last = (0, *place)
    at = whole
    for step in way:
        at = at[step]
    if value is NONE:
        del at[last]
    else:
        at[last] = value
    return whole[0]


def key(place):
    """Name of a place as in messages of rashpactl."""
    return re.sub(r"^\.", "", "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place))


class Judge:
    """Verdicts of rashpactl and the schema."""

    def __init__(self, schema, folder):
        self.path = os.path.join(folder, "board.json")
        self.schema = jsonschema.Draft202012Validator(schema) if jsonschema else None

    def tool(self, profile):
        """Return the message of the tool, or an empty string."""
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump(profile, file)
        done = subprocess.run([RASHPACTL, "profile", self.path], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            return f"exit status {done.returncode}: {done.stderr}"
        return done.stderr if done.returncode else ""

    def takes(self, profile):
        """Does the schema accept it? None without jsonschema."""
        return self.schema.is_valid(profile) if self.schema else None


def resolve(schema, part):
    """A part of the schema with references resolved; numbers without their form as a string."""
    while "$ref" in part:
        rest = {name: value for name, value in part.items() if name != "$ref"}
        target = schema
        for step in part["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        part = {**target, **rest}
    if "anyOf" in part and {"$ref": "#/$defs/numeral"} in part["anyOf"]:
        part = {**part["anyOf"][0], "number": True}
    return part


def parts(schema, part, place, value):
    """(part of the schema, place, value) of this value and of all values in it."""
    part = resolve(schema, part)
    yield part, place, value
    if part.get("type") == "array":
        for i, item in enumerate(value):
            yield from parts(schema, part["items"], (*place, i), item)
    if part.get("type") == "object":
        for name, item in value.items():
            yield from parts(schema, part["properties"][name], (*place, name), item)


def broken(part, place, value):
    """(place, value) of each rule of this part of the schema that can be broken."""
    if part.get("number"):
        yield place, True
        yield place, "many"
    if "enum" in part:
        yield place, 7 if part.get("number") else "colour"
    for rule, more in (("minimum", -1), ("maximum", 1)):
        if rule in part:
            yield place, part[rule] + more * part.get("multipleOf", 1)
    if "multipleOf" in part:
        yield place, part["multipleOf"] * 2 + 1
    if part.get("type") == "boolean":
        yield place, 1
    if part.get("type") == "string":
        yield place, 1
        if "maxLength" in part:
            yield place, "x" * (part["maxLength"] + 1)
        if "minLength" in part or "pattern" in part:
            yield place, ""
        if "pattern" in part:
            yield place, "a/b"
    if part.get("type") == "array":
        yield place, {}
        if "maxItems" in part:
            yield place, value[-1:] * (part["maxItems"] + 1)
        if "minItems" in part:
            yield place, []
    if part.get("type") == "object":
        if place:
            yield place, 1
        yield (*place, "colour"), 1
        for name in part.get("required", ()):
            if name in value:
                yield (*place, name), NONE


def limits(part, value):
    """Values at the limits of this part of the schema."""
    for rule in ("minimum", "maximum", "multipleOf"):
        if rule in part:
            yield part[rule]
    yield from part.get("enum", ())
    if "maxLength" in part:
        yield "x" * part["maxLength"]
    if "maxItems" in part:
        yield value[-1:] * part["maxItems"]


def objects(schema, part):
    """The keys of each object in the schema, with whether they are required."""
    part = resolve(schema, part)
    if "properties" in part and "type" in part:
        yield frozenset((name, name in part.get("required", ())) for name in part["properties"])
    for item in part.get("properties", {}).values():
        yield from objects(schema, item)
    if "items" in part:
        yield from objects(schema, part["items"])


def test_keys(schema):
    """The keys that profile.c reads are those of the schema."""
    with open(SOURCE, encoding="utf-8") as file:
        tables = re.findall(r"struct json_key keys\[\] = \{(.*?)\n\t\};", file.read(), re.S)
    read = {frozenset((name, required == "true") for name, required in re.findall(r'\{ "([^"]+)", (true|false),', table))
            for table in tables}
    # one function reads fields with and without the values of control
    read.add(frozenset((("offset", True), ("bits", True))))
    described = set(objects(schema, schema))
    wide = [place for full in (FULL, FETCH, PUSH) for part, place, _ in parts(schema, schema, (), full)
            if part.get("type") == "object" and part.get("additionalProperties") is not False]
    ok(not wide, "schema-takes-no: the schema takes no other keys", *map(key, wide))
    ok(read == described, "schema-keys-read: the schema has the keys that are read, with the same required ones",
       f"read only: {[sorted(keys) for keys in read - described]}",
       f"in the schema only: {[sorted(keys) for keys in described - read]}")


def test_full(judge, schema):
    said = judge.tool(FULL) + judge.tool(FETCH) + judge.tool(PUSH)
    ok(not said, "profiles-all-keys: profiles with all keys are taken", said)
    seen = set(objects(schema, schema))
    used = set()

    def walk(part, value):
        part = resolve(schema, part)
        if isinstance(value, dict):
            used.update((frozenset(part["properties"]), name) for name in value)
            for name, item in value.items():
                walk(part["properties"][name], item)
        if isinstance(value, list):
            for item in value:
                walk(part["items"], item)
    walk(schema, FULL)
    walk(schema, FETCH)
    walk(schema, PUSH)
    left = [name for keys in seen for name, _ in keys if (frozenset(name for name, _ in keys), name) not in used]
    ok(not left, "all-keys-schema: they have all keys of the schema", f"not: {left}")


def test_broken(judge, schema):
    """Break each rule of the schema, one by one."""
    count, taken, elsewhere, missed = 0, [], [], []
    for full, place, value in ((full, *wrong) for full in (FULL, FETCH, PUSH) for part in parts(schema, schema, (), full)
                               if full is FULL or "table" in part[1] for wrong in broken(*part)):
        count += 1
        profile = changed(place, value, full)
        what = f"{key(place)}: {'taken away' if value is NONE else json.dumps(value)[:60]}"
        said = judge.tool(profile)
        if not said:
            taken.append(what)
        # the message names the table for an error in a field, and the object for a missing key
        elif f"board.json: {key(place[:-2] or place[:1])}" not in said:
            elsewhere.append(f"{what}: {said.strip()}")
        if judge.takes(profile):
            missed.append(what)
    ok(count > 150 and not taken, f"broken-rules-schema: {count} broken rules of the schema are refused by rashpactl", *taken)
    ok(not elsewhere, "place: each message names the place", *elsewhere)
    if jsonschema:
        ok(not missed, "schema: and they are refused by the schema", *missed)
    # A value at the limit may cause other errors, as in a table of one word, but not one of the limit.
    narrow = []
    for full, part, place, value in ((full, *part) for full in (FULL, FETCH)
                                     for part in parts(schema, schema, (), full) if full is FULL or "table" in part[1]):
        for limit in limits(part, value):
            said = judge.tool(changed(place, limit, full))
            if re.search(f"{re.escape(key(place))}: .*(must be|does not fit|not one of|longer|at most)", said):
                narrow.append(f"{json.dumps(limit)[:60]}: {said.strip()}")
    ok(not narrow, "no-rule-rashpactl: no limit of rashpactl is narrower", *narrow)


def test_tables(judge):
    for full, place, value, words, both in [(FULL, *wrong) for wrong in WRONG] + [(FETCH, *wrong) for wrong in WRONG_FETCH] + \
            [(PUSH, *wrong) for wrong in WRONG_PUSH]:
        profile = changed(place, value, full)
        said = judge.tool(profile)
        by_schema = judge.takes(profile)
        ok(words in said and by_schema in (None, not both),
           f"refused: refused{'' if both else ', by rashpactl alone'}: {key(place)}: {words}", f"rashpactl: {said.strip()}",
           f"the schema takes it: {by_schema}")
    for place, value in RIGHT:
        profile = changed(place, value)
        said = judge.tool(profile)
        ok(not said and judge.takes(profile) is not False,
           f"taken: {key(place)} {'taken away' if value is NONE else json.dumps(value)[:60]}", said)


def test_installed(judge):
    for path in sorted(set(glob.glob("tools/data/profiles/**/*.json", recursive=True)) - {SCHEMA}):
        with open(path, encoding="utf-8") as file:
            profile = json.load(file)
        said = judge.tool(profile)
        errors = [error.message for error in judge.schema.iter_errors(profile)] if judge.schema else []
        ok(not said and not errors, path, said, *errors)
        # a profile of an untested board says so in its name
        untried = "untried" in path
        ok(untried == ("(never tried on a card)" in profile["name"]), f"whether-tried: {path}: its name says if it is untested")
        kind = BOARDS[os.path.basename(path).removesuffix(".json")]
        test_quiesce(path, profile["quiesce"], kind)
        wrong = [engine["name"] for engine in profile.get("engines", ())
                 if stops(engine["quiesce"], Reference) != ("idle", True) or
                 stops(engine["quiesce"], Reference, "it")[0] != "timed out"]
        ok(not wrong, f"engines-stopped-waited: {path}: its engines are stopped, with a wait for their end", *wrong)


def main():
    with open(SCHEMA, encoding="utf-8") as file:
        text = file.read()
    schema = json.loads(text)
    ok(subprocess.run([RASHPACTL, "profile", "--schema"], capture_output=True, text=True, check=False).stdout == text,
       "rashpactl-profile-schema: rashpactl profile --schema prints it")
    if jsonschema:
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
            ok(True, "schema-one: the schema is valid")
        except jsonschema.SchemaError as error:
            ok(False, "schema/schema-one: the schema is valid", error.message)
    else:
        ok(True, "schema-judges-itself: the schema judges itself # SKIP there is no python3-jsonschema")
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(schema, folder)
        test_keys(schema)
        test_full(judge, schema)
        test_broken(judge, schema)
        test_tables(judge)
        test_installed(judge)
    print(f"1..{tests}")


if __name__ == "__main__":
    sys.exit(main())
