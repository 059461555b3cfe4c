# SPDX-License-Identifier: LGPL-2.1-or-later
"""Calls of functions and their times, from traces of function_graph: JSON TRACE..., one for each size, or an event."""
import collections
import json
import re
import statistics
import sys
from pathlib import Path

# the traced functions; with interrupts, the tracer also records others
CALLERS = ("rashpa_ioc_map", "rashpa_map_fill_locked", "bare_ioctl", "rashpa_vector_fire", "rashpa_channel_teller",
           "vfio_msihandler")
LINE = re.compile(r"^ *\d+\) .*?(?:(?P<us>[\d.]+) us)? *\| (?P<in> *)(?P<end>} /\* )?(?P<name>[\w.]+)")


def calls(path):
    """For each call: (caller, {called function: microseconds, "": time in the caller itself})."""
    below = collections.Counter()
    for line in path.read_text().splitlines():
        found = LINE.match(line)
        if not found or not found["us"]:
            continue
        if len(found["in"]) > 2:
            below[found["name"]] += float(found["us"])
        else:
            below[""] = float(found["us"]) - sum(below.values())
            yield found["name"], below
            below = collections.Counter()


def medians(path):
    times = collections.defaultdict(list)
    for caller, below in calls(path):
        times[caller].append(below)
    for caller, found in times.items():
        if caller not in CALLERS:
            continue
        # leave out the first round, which is a warm-up, and may be incomplete
        found = found[1:]
        for name in {name for below in found for name in below}:
            median = statistics.median(below[name] for below in found)
            if median:  # otherwise a function of occasional interrupts
                yield caller, name, median


def main():
    rows = [{"of": path.name, "caller": caller, "calls": name or "(itself)", "median_us": round(us, 2)}
            for path in map(Path, sys.argv[2:]) for caller, name, us in medians(path)]
    rows.sort(key=lambda row: (row["caller"], row["of"], -row["median_us"]))
    Path(sys.argv[1]).write_text(json.dumps({"bench": "trace", "rows": rows}, indent=1) + "\n")
    for row in rows:
        print(f"{row['of']:>5}  {row['caller']:24} {row['calls']:32} {row['median_us']:9.2f} us")


if __name__ == "__main__":
    main()
