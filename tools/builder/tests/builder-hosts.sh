#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=nightly where=host seconds=300
# Event building by the processes of two virtual machines, started by mpirun and ssh, and by a Slurm of both;
# then a process is killed, and a machine. builder-hosts.sh [SERIES]. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/cable.sh
. selftests/lib/cable.sh
series=${1:-newest}
out=build/builder-hosts
rm -rf "$out"
mkdir -p "$out/keys"
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$work"' EXIT
cat <<'END'

  n1: slurmctld, slurmd, sshd, munged              n2: slurmd, sshd, munged
 +--------------------------------------+         +--------------------------------------+
 | mpirun ------------------------------|-- ssh --|--> prted                             |
 | srun --mpi=pmix ---------------------| Slurm --|--> slurmstepd                        |
 | rank 0: manager                      |         |                                      |
 | ranks 1, 2: readouts ----------------|-- TCP --|--> ranks 3, 4: builders (killed)     |
 |                                      | or RoCE |                                      |
 +--------------------------------------+         +--------------------------------------+

END
selftests/lab/lab exec --full -- ssh-keygen -q -t ed25519 -N '' -f "$out/keys/ssh"
head -c 1024 /dev/urandom >"$out/keys/munge"
side() { # END
	cable_end "$1" "$work" --full --kernel "$series" --memory 2G --timeout 1800 --log "$out/kernel-$1.log" \
		-- tools/builder/tests/builder-hosts-guest.sh "$1" "$out"
}
side 2 >"$out/said.2" 2>&1 &
second=$!
side 1 2>"$out/said.1"
bad=$?
wait "$second"
is "switched-off: the second machine was switched off" $? 101 || sed 's/^/# /' "$out/said.2"
((bad == 0)) || sed 's/^/# /' "$out/said.1"
finish
