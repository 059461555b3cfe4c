# SPDX-License-Identifier: LGPL-2.1-or-later
"""Memory of a slow rank that another one sends to over MPI: MPI_Issend compared with MPI_Isend. FOLDER."""
import json
import subprocess
import sys
import time

COMMAND = ("mpirun --bind-to none -n 2 rashpa-builder nxn --transport mpi --size 1000 --messages 20000 "
           "--slow 100 --json").split()


def resident(pid):
    """Resident bytes, or 0 if the process has ended."""
    try:
        with open(f"/proc/{pid}/status") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS")), 0)
    except OSError:
        return 0


def samples(command):
    """Samples: seconds, and the memory of the larger rank."""
    began, found = time.monotonic(), []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        while run.poll() is None:
            ranks = subprocess.run(["pgrep", "-P", str(run.pid), "rashpa-builder"], capture_output=True, text=True)
            most = max((resident(pid) for pid in ranks.stdout.split()), default=0)
            if most:
                found.append([round(time.monotonic() - began, 2), most])
            time.sleep(0.25)
        if run.returncode:
            sys.exit(f"{' '.join(command)}: exit status {run.returncode}")
    return found


def main():
    runs = {"MPI_Issend": samples(COMMAND), "MPI_Isend": samples([*COMMAND, "--buffered"])}
    with open(f"{sys.argv[1]}/builder-resident.json", "w") as file:
        json.dump({"command": " ".join(COMMAND), "samples_s_bytes": runs}, file)
    for name, found in runs.items():
        some = found[::max(1, len(found) // 8)]
        print(f"{name:10} MiB at s: " + ", ".join(f"{b / 1048576:.0f} at {s:.1f}" for s, b in some))


if __name__ == "__main__":
    main()
