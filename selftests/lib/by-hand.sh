# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by tests of rashpa-builder: its processes without a launcher.

job=0
pids=()

# by_hand N ARGUMENT...: output of rank R is in $work/out.R and err.R; sets pids. RASHPA_MEET, where
# it is set, is the name of the run.
by_hand() {
	local count=$1 rank
	local -a name
	shift
	job=$((job + 1))
	pids=()
	[[ ${RASHPA_MEET-} ]] || name=("RASHPA_JOB=test-$$-$job")
	for ((rank = 0; rank < count; rank++)); do
		# shellcheck disable=SC2154 # work is of shell.sh
		env RASHPA_RANK="$rank" RASHPA_SIZE="$count" "${name[@]}" \
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
