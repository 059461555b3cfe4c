# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by tests of rashpa-builder: its processes without a launcher.

job=0
pids=()

# by_hand N ARGUMENT...: output of rank R is in $work/out.R and err.R; sets pids
by_hand() {
	local count=$1 rank
	shift
	job=$((job + 1))
	pids=()
	for ((rank = 0; rank < count; rank++)); do
		# shellcheck disable=SC2154 # work is of shell.sh
		RASHPA_RANK=$rank RASHPA_SIZE=$count RASHPA_JOB=test-$$-$job \
			rashpa-builder "$@" >"$work/out.$rank" 2>"$work/err.$rank" &
		pids+=($!)
	done
}

# reap: sets statuses, of all that by_hand started
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
