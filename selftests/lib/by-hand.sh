# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by tests of rashpa-builder: its processes without a launcher.

job=0
pids=()
# options of single ranks, after the common ones
declare -A extra
# prefix of all commands
apart=()

# by_hand N ARGUMENT...: output of rank R is in $work/out.R and err.R; sets pids. RASHPA_MEET, if
# set, is the name of the run.
by_hand() {
	local count=$1 rank
	local -a name
	shift
	job=$((job + 1))
	pids=()
	[[ ${RASHPA_MEET-} ]] || name=("RASHPA_JOB=test-$$-$job")
	for ((rank = 0; rank < count; rank++)); do
		# shellcheck disable=SC2154,SC2086 # shell.sh sets work; options are words
		"${apart[@]}" env RASHPA_RANK="$rank" RASHPA_SIZE="$count" "${name[@]}" \
			rashpa-builder "$@" ${extra[$rank]-} >"$work/out.$rank" 2>"$work/err.$rank" &
		pids+=($!)
	done
}

# reap: sets statuses of all processes that by_hand started
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

# --- events in files

# built READOUTS SOURCES FILTER: another program reads $work/events; is FILTER true of its output?
built() {
	json "$3" python3 -B tools/builder/tests/events.py "$work/events" "$1" "$2"
}
fresh() { rm -rf "$work/events"; mkdir "$work/events"; }
some_files() { (($(find "$work/events" -name 'events-*' | wc -l) >= $1)); }

# --- kill -9 while events are assembled: 2 readouts, 3 builders; RASHPA_SEED selects the moments

RANDOM=${RASHPA_SEED:=1}
echo "# RASHPA_SEED=$RASHPA_SEED"

# killed RANK ARGUMENT...: sets statuses
killed() {
	local victim=$1
	shift
	fresh
	by_hand 6 build --readouts 2 --block 4 --timeout 20 --files "$work/events" --json "$@"
	wait_for 120 some_files $((20 + RANDOM % 100))
	kill -9 "${pids[victim]}"
	reap
}

# consistent: rank 0's report matches the files
consistent() {
	python3 -B tools/builder/tests/events.py "$work/events" 2 4 >"$work/files"
	jq -se '
		def all_of: [.[] | range(.[0]; .[1] + 1)];
		.[0] as $said | .[1] as $files |
		($files.ranges | all_of) as $there | ($said.lost_ranges | all_of) as $lost |
		($said.unknown_ranges | all_of) as $unknown |
		def in_order: . == sort and ([.[][0]][1:] as $next | [.[][1] + 1][:-1] | [., $next] | transpose | all(.[0] < .[1]));
		($said.lost_ranges | in_order) and ($said.unknown_ranges | in_order) and
		$files.twice == [] and $files.wrong == [] and
		($there - $lost) == $there and
		(($there + $lost + $unknown) | unique) == [range(0; $said.events)] and
		$said.built + $said.lost + $said.unknown == $said.events' "$work/out.0" "$work/files" >/dev/null
}

# builder_died RANK ARGUMENT...: no event is wrong, written twice, or lost without a report; --hold
# keeps all of them
builder_died() {
	local expected=(4 0 0 0 0 0) hold
	hold=$([[ " ${*:2} " != *" --hold "* ]] || echo yes)
	killed "$@"
	expected[$1]=137
	# held events are built elsewhere: the run may succeed
	[[ $hold ]] && jq -e '.lost + .unknown == 0' "$work/out.0" >/dev/null && expected[0]=0
	[[ $statuses == "${expected[*]}" ]] && consistent &&
		{ [[ ! $hold ]] || jq -e '.lost == 0' "$work/out.0" >/dev/null; } && return
	echo "# builder $1 died: $statuses: $(jq -c 'del(.ranks)' "$work/out.0") $(cat "$work"/err.*)"
	cut -c 1-300 "$work/files" | sed 's/^/#   /'
	return 1
}

# named RANK FILE...: each file's process names RANK as the one that ended, and no other rank
named() {
	local said="readout $(($1 - 1)) (rank $1) has gone" file
	(($1)) || said="the event manager (rank 0) has gone"
	for file in "${@:2}"; do
		grep -q "$said" "$file" && ! grep -v "$said" "$file" | grep -q "^rashpa-builder" || return
	done
}

# other_died RANK ARGUMENT...: the run ends, each rank names RANK and no other, files are complete
other_died() {
	local expected=(1 1 1 1 1 1) others=() rank
	killed "$@"
	expected[$1]=137
	for rank in 0 1 2 3 4 5; do
		((rank == $1)) || others+=("$work/err.$rank")
	done
	[[ $statuses == "${expected[*]}" ]] && built 2 4 '.twice == [] and .wrong == []' && named "$1" "${others[@]}" &&
		return
	echo "# rank $1 died: $statuses: $(cat "$work"/err.*)"
	return 1
}

# stopped RANK ARGUMENT...: SIGSTOP while 2 readouts and 3 builders work; all others end in time and
# name RANK
stopped() {
	local victim=$1 rank who="builder $(($1 - 3)) (rank $1)" expected=(3 3 3 3 3 3)
	((victim > 2)) || who="readout $((victim - 1)) (rank $victim)"
	((victim)) || who="the event manager (rank 0)"
	shift
	fresh
	# if this test's parent ends, the kernel hangs up process groups with a stopped process
	apart=(setsid)
	by_hand 6 build --readouts 2 --block 1 --timeout 3 --gather 60 --files "$work/events" --json "$@"
	apart=()
	wait_for 120 some_files 3
	kill -STOP "${pids[victim]}"
	for rank in "${!pids[@]}"; do
		((rank == victim)) || wait_for 60 gone "${pids[rank]}" || return
	done
	kill -CONT "${pids[victim]}"
	reap
	# the stopped rank may receive the reason for the end, or find the others gone
	expected[victim]=${statuses:$((2 * victim)):1}
	for rank in "${!pids[@]}"; do
		((rank == victim)) || grep -q "$who has sent nothing for 3 s" "$work/err.$rank" || expected=()
	done
	[[ $statuses == "${expected[*]}" ]] && return
	echo "# rank $victim was stopped: $statuses: $(cat "$work"/err.*)"
	return 1
}
