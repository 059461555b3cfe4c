# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many ranks on one machine that build few events: bench_ranks.py OUT TRANSPORT [RANKS [OPTION...]]

Writes a line of JSON to OUT, instead of an earlier one: time until all are connected, memory of a rank and of the whole machine, and its growth.
As in the event builder of CMS, 6 of 10 ranks are readouts, and 4 are builders."""
import json
import os
import subprocess
import sys
import time

RATE, SECONDS = 5, 20


def read(path):
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def connected(pid):
    """The transport's thread starts then."""
    try:
        return any(read(f"/proc/{pid}/task/{task}/comm") == "transport\n" for task in os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return False


def field(path, name):
    return next((int(line.split()[1]) * 1024 for line in read(path).splitlines() if line.startswith(name)), 0)


def start(transport, count, options):
    """(processes that were started, function that returns the processes of ranks)"""
    command = ["rashpa-builder", "build", "--transport", transport, "--readouts", str((count - 1) * 6 // 10), "--rate", str(RATE),
               "--events", str(RATE * SECONDS), "--block", "1", "--credit", "1", "--fragment", "64", "--timeout", "300", *options]
    if transport == "mpi":
        run = subprocess.Popen(["mpirun", "--bind-to", "none", "-n", str(count), *command], stdout=subprocess.DEVNULL)
        return [run], lambda: [int(pid) for pid in subprocess.run(["pgrep", "-P", str(run.pid), "rashpa-builder"],
                                                                  capture_output=True, text=True, check=False).stdout.split()]
    name = {"RASHPA_MEET": "127.0.0.1:7000"} if transport == "verbs" else {"RASHPA_JOB": f"ranks-{os.getpid()}"}
    runs = [subprocess.Popen(command, stdout=subprocess.DEVNULL, env={
        **os.environ, **name, "RASHPA_RANK": str(rank), "RASHPA_SIZE": str(count)}) for rank in range(count)]
    return runs, lambda: [run.pid for run in runs]


def resident(pids):
    return [field(f"/proc/{pid}/status", "RssAnon:") for pid in pids]


def main():
    out, transport, count = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 182
    free = field("/proc/meminfo", "MemAvailable:")
    began = time.monotonic()
    runs, ranks = start(transport, count, sys.argv[4:])
    while True:
        pids = ranks()
        if len(pids) == count and all(map(connected, pids)):
            break
        if any(run.poll() for run in runs):
            sys.exit("a rank has failed")
        time.sleep(0.1)
    setup = time.monotonic() - began
    time.sleep(SECONDS / 4)
    first, used = resident(pids), free - field("/proc/meminfo", "MemAvailable:")
    time.sleep(SECONDS / 2)
    growth = max(b - a for a, b in zip(first, resident(pids)))
    statuses = {run.wait() for run in runs}
    row = {"name": "ranks that are mostly idle", "transport": transport, "ranks": count, "setup_s": round(setup, 2),
           "resident_bytes": sum(first) // count, "most_resident_bytes": max(first), "machine_bytes": used // count,
           "growth_bytes": growth, "statuses": sorted(statuses)}
    rows = [r for r in map(json.loads, read(out).splitlines()) if (r["transport"], r["ranks"]) != (transport, count)]
    with open(out, "w", encoding="ascii") as file:
        file.writelines(json.dumps(r) + "\n" for r in [*rows, row])
    print(f"{transport:6} {count:4} ranks: connected after {setup:6.1f} s, {row['resident_bytes'] / 1e6:5.1f} MB a rank (at most "
          f"{max(first) / 1e6:.1f}), {used / count / 1e6:5.1f} MB of the machine, growth {growth / 1024:.0f} KiB in {SECONDS // 2} s, "
          f"statuses {row['statuses']}")


if __name__ == "__main__":
    main()
