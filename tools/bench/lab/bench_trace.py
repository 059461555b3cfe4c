# SPDX-License-Identifier: LGPL-2.1-or-later
"""Calls of functions and their times, from traces: JSON TRACE..., one for each size, an event, and its steps."""
import collections
import json
import re
import statistics
import sys
from pathlib import Path

# the traced functions; with interrupts, the tracer also records others
CALLERS = ("rashpa_ioc_map", "rashpa_map_fill_locked", "bare_ioctl", "rashpa_vector_fire", "rashpa_channel_waker",
           "vfio_msihandler")
STEPS = "rashpa_interrupt", "rashpa_event", "rashpa_wakeup", "sched_switch", "rashpa_read"
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


def steps(path):
    """Median microseconds from an interrupt to each step, of events that have all steps; their number."""
    chains, times = [], []
    for at, name in re.findall(r" (\d+\.\d+): (\w+):", path.read_text()):
        if name == STEPS[0]:
            times = []
        if len(times) < len(STEPS) and name == STEPS[len(times)]:
            times.append(float(at) * 1e6)
            if len(times) == len(STEPS):
                chains.append([t - times[0] for t in times])
    return [{"step": name, "median_us": round(statistics.median(c[i] for c in chains), 2)}
            for i, name in enumerate(STEPS) if chains], len(chains)


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
    paths = {path.name: path for path in map(Path, sys.argv[2:])}
    way, events = steps(paths.pop("steps"))
    rows = [{"of": name, "caller": caller, "calls": called or "(itself)", "median_us": round(us, 2)}
            for name, path in paths.items() for caller, called, us in medians(path)]
    rows.sort(key=lambda row: (row["caller"], row["of"], -row["median_us"]))
    Path(sys.argv[1]).write_text(json.dumps({"bench": "trace", "rows": rows, "steps": way, "events": events}, indent=1) + "\n")
    for row in rows:
        print(f"{row['of']:>5}  {row['caller']:24} {row['calls']:32} {row['median_us']:9.2f} us")
    for step in way:
        print(f"{step['step']:>24}  {step['median_us']:9.2f} us after the interrupt (median of {events} events)")


if __name__ == "__main__":
    main()
