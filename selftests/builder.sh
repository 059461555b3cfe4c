#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the lab's root: rashpa-builder among processes of this machine, over shared memory and
# MPI. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=lib/shell.sh
. "$(dirname "$0")/lib/shell.sh"
PATH=$PWD/${RASHPA_TOOLS:-build/tools}:$PATH
# Open MPI refuses root, binds to processors, and looks for networks
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,sm PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
job=0

# parallel N ARGUMENT...: rank 0 writes to standard output; the worst status of all
parallel() {
	local count=$1 status
	shift
	status=0
	timeout 120 mpirun --bind-to none -n "$count" rashpa-builder "$@" 2>"$work/err" || status=$?
	((status == 0)) || grep -E '^rashpa-builder' "$work/err" | sed 's/^/# /' >&2
	return "$status"
}

# by_hand N ARGUMENT...: the same without a launcher; sets pids
by_hand() {
	local count=$1 rank
	shift
	job=$((job + 1))
	pids=()
	for ((rank = 0; rank < count; rank++)); do
		RASHPA_RANK=$rank RASHPA_SIZE=$count RASHPA_JOB=test-$$-$job \
			rashpa-builder "$@" >"$work/out.$rank" 2>"$work/err.$rank" &
		pids+=($!)
	done
}

# sets statuses: of all that by_hand started
reap() {
	local pid status
	statuses=
	for pid in "${pids[@]}"; do
		status=0
		wait "$pid" 2>/dev/null || status=$?
		statuses+=" $status"
	done
	statuses=${statuses# }
}

# --- each message, of all sizes of a run

for transport in shm mpi; do
	for count in 2 4 8; do
		for depth in 1 8 64; do
			total=$((count * count * 200))
			json ".received == $total and .sent == $total and .lost + .duplicate + .late + .wrong == 0
				and (.ranks | length) == $count and all(.ranks[]; .registrations == 1)" \
				parallel "$count" nxn --transport "$transport" --depth "$depth" --messages 200 \
				--size 6000 --jitter 100 --verify --json
			ok $? "$transport: $count to $count, depth $depth: each message is right"
		done
	done
	json ".received == 4000 and .lost + .duplicate + .late + .wrong == 0
		and [.ranks[].received] == [0, 0, 2000, 2000]" \
		parallel 4 nton --transport "$transport" --messages 1000 --size 1 --verify --json
	ok $? "$transport: 2 to 2, one way"
	json ".received == 4000 and .lost + .duplicate + .late == 0 and .buffers == 1" \
		parallel 2 nxn --transport "$transport" --messages 1000 --size 100K --one-buffer --json
	ok $? "$transport: all in one buffer"
done
for poll in test testsome testall; do
	json ".received == 8000 and .lost + .duplicate + .late + .wrong == 0" \
		parallel 4 nxn --transport mpi --poll "$poll" --messages 500 --size 20K --verify --json
	ok $? "mpi: --poll $poll"
done
json ".ranks_measured == 2 and .least_bytes_per_s > 0 and .mean_bytes_per_s <= .most_bytes_per_s
	and all(.ranks[2:][]; .samples > 1)" \
	parallel 4 nton --seconds 1 --interval 0.1 --json
ok $? "samples, without the first and last"

# --- who starts it

by_hand 3 nxn --messages 100 --verify --json
reap
is "by hand, without a launcher" "$statuses" "0 0 0"
json ".received == 900" cat "$work/out.0"
ok $? "rank 0 says it for all"
rashpa-builder nxn >"$work/out" 2>"$work/err"
is "without any" "$? $(grep -o "mpirun or srun" "$work/err")" "1 mpirun or srun"
RASHPA_RANK=0 RASHPA_SIZE=3 RASHPA_JOB=odd rashpa-builder nton >"$work/out" 2>"$work/err"
is "nton of three" "$? $(grep -o "even number of processes, not 3" "$work/err")" "1 even number of processes, not 3"
RASHPA_RANK=0 RASHPA_SIZE=2 RASHPA_JOB=alone-$$ rashpa-builder nxn --timeout 0.2 >"$work/out" 2>"$work/err"
is "one that is alone" "$? $(grep -o "rank 1 of 2 did not come within 200 ms" "$work/err")" \
	"3 rank 1 of 2 did not come within 200 ms"

# --- one that dies

sending() { # all ranks have threads that send
	local pid
	for pid in "${pids[@]}"; do
		[[ $(wc -w <"/proc/$pid/stat" 2>/dev/null) && $(ls "/proc/$pid/task" | wc -l) -ge 5 ]] || return
	done
}
good=0
for ((round = 0; round < 6; round++)); do
	victim=$((round % 3))
	by_hand 3 nxn --seconds 60 --timeout 20
	wait_for 30 sending
	kill -9 "${pids[victim]}"
	reap
	expected=(1 1 1)
	expected[victim]=137
	# who sees that another one has ended for this names that one
	said=$(cat "$work"/err.* | grep -c "it has gone")
	if [[ $statuses == "${expected[*]}" ]] && ((said == 2)) && grep -q "rank $victim: it has gone" "$work"/err.*; then
		good=$((good + 1))
	else
		echo "# rank $victim died: $statuses, $said said it: $(cat "$work"/err.*)"
	fi
done
is "kill -9 of a rank: all others end with a sentence" "$good" 6
finish
