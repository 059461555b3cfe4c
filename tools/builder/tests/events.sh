#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=105
# Runs inside the lab's root: rashpa-builder among processes of this machine, over shared memory and
# MPI. TAP. RASHPA_KILLS: how many processes are killed, of each kind (default 1, every night 3).
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/by-hand.sh
. "$(dirname "$0")/../../../selftests/lib/by-hand.sh"
PATH=$PWD/${RASHPA_TOOLS:-build/tools}:$PATH
kills=${RASHPA_KILLS:-$([[ ${RASHPA_TIER-} == nightly ]] && echo 3 || echo 1)}
# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/mpi.sh
. "$(dirname "$0")/../../../selftests/lib/mpi.sh"

# parallel N ARGUMENT...: rank 0 writes to standard output; the worst status of all
parallel() {
	local count=$1 status
	shift
	status=0
	timeout 120 mpirun --bind-to none -n "$count" rashpa-builder "$@" 2>"$work/err" || status=$?
	((status == 0)) || grep -E '^rashpa-builder' "$work/err" | sed 's/^/# /' >&2
	return "$status"
}

# --- each message, of all sizes of a run

for transport in shm mpi; do
	for count in 2 4 8; do
		for depth in 1 8 64; do
			messages=$((400 / count))
			total=$((count * count * messages))
			json ".received == $total and .sent == $total and .lost + .duplicate + .late + .wrong == 0
				and (.ranks | length) == $count and all(.ranks[]; .registrations == 1 and
				.resident_bytes < $((48 + count * depth / 10)) * 1048576)" \
				parallel "$count" nxn --transport "$transport" --depth "$depth" --messages "$messages" \
				--size 6000 --jitter 100 --verify --json
			ok $? "depth-message-right/$transport/$count/$count/$depth: $transport: $count to $count, depth $depth: each message is right, and memory is bounded"
		done
	done
	json ".received == 4000 and .lost + .duplicate + .late + .wrong == 0
		and [.ranks[].received] == [0, 0, 2000, 2000]
		and ([.ranks[] | .receive_queue_low == -1, .send_queue_low == -1] == [true, false, true, false, false, true, false, true])" \
		parallel 4 nton --transport "$transport" --messages 1000 --size 1 --verify --json
	ok $? "2-2-one-way/$transport: $transport: 2 to 2, one way: who does not send has no queue for it"
	# one for each, and that it was the last one: of a pool no more than two are ever taken. A queue may
	# be empty once, where a message is there before the second buffer is.
	json ".received == 4 and all(.ranks[]; .send_pool_low < 16 and .send_pool_low >= 14 and .send_pool_empty == 0
		and (.receive_queue_low | . >= 0 and . < 8))" \
		parallel 2 nxn --transport "$transport" --messages 1 --json
	ok $? "pools-not-needed/$transport: $transport: of pools that are not needed most stays free"
	json ".received == 4000 and .lost + .duplicate + .late == 0 and .buffers == 1" \
		parallel 2 nxn --transport "$transport" --messages 1000 --size 100K --one-buffer --json
	ok $? "all-one-buffer/$transport: $transport: all in one buffer"
done
for poll in test testsome testall; do
	json ".received == 8000 and .lost + .duplicate + .late + .wrong == 0
		and all(.ranks[]; .polls_per_message > 0)" \
		parallel 4 nxn --transport mpi --poll "$poll" --messages 500 --size 20K --verify --json
	ok $? "mpi/poll: mpi: --poll $poll"
done
json ".ranks_measured == 2 and .least_bytes_per_s > 0 and .mean_bytes_per_s <= .most_bytes_per_s
	and all(.ranks[2:][]; .samples > 1)" \
	parallel 4 nton --seconds 2 --interval 0.05 --json
ok $? "samples-without-first: samples, without the first and last"

# --- who sends to a slow receiver: 20 MB, of which none is kept. That MPI_Isend keeps some depends on
# who gets the processor, so bench-builder.sh shows its growth.

json "all(.ranks[]; .resident_bytes < 40 * 1048576)" \
	parallel 2 nxn --transport mpi --messages 5000 --size 3500 --slow 100 --json
ok $? "mpi/memory-bounded: mpi: memory is bounded"
jq -e 'all(.ranks[]; .send_pool_low == 0 and .send_pool_empty > 0 and .receive_queue_low == 0)' "$work/json" >/dev/null
ok $? "pools-queues-empty: pools and queues that were empty say so" || sed 's/^/#   /' "$work/json"
jq -e 'all(.ranks[]; .cpu_s > 0 and .transport_cpu_s > 0 and .transport_cpu_s < .cpu_s
	and .device_node == -1 and .memory_node >= 0 and .thread_node >= 0)' "$work/json" >/dev/null
ok $? "took-processors-numa: what it took of processors, and their NUMA nodes, are there" || sed 's/^/#   /' "$work/json"

# --- who starts it

by_hand 3 nxn --messages 100 --verify --json
reap
is "hand-without-launcher: by hand, without a launcher" "$statuses" "0 0 0"
json ".received == 900" cat "$work/out.0"
ok $? "rank-0-all: rank 0 says it for all"
RASHPA_MEET=nowhere:$$ by_hand 2 nxn --messages 10 --json
reap
is "meet-name-well: where they meet is a name as well" "$statuses" "0 0"
rashpa-builder nxn >"$work/out" 2>"$work/err"
is "without: without any" "$? $(grep -o "mpirun or srun" "$work/err")" "1 mpirun or srun"
RASHPA_RANK=0 RASHPA_SIZE=3 RASHPA_JOB=odd rashpa-builder nton >"$work/out" 2>"$work/err"
is "nton-three: nton of three" "$? $(grep -o "even number of processes, not 3" "$work/err")" "1 even number of processes, not 3"
RASHPA_RANK=0 RASHPA_SIZE=2 RASHPA_JOB=alone-$$ rashpa-builder nxn --timeout 0.2 >"$work/out" 2>"$work/err"
is "one-alone: one that is alone" "$? $(grep -o "rank 1 of 2 did not come within 200 ms" "$work/err")" \
	"3 rank 1 of 2 did not come within 200 ms"

# --- one that dies

sending() { # all ranks have threads that send
	local pid
	for pid in "${pids[@]}"; do
		[[ $(wc -w <"/proc/$pid/stat" 2>/dev/null) && $(ls "/proc/$pid/task" | wc -l) -ge 5 ]] || return
	done
}
good=0
for ((round = 0; round < kills; round++)); do
	victim=$((round % 3))
	by_hand 3 nxn --seconds 60 --timeout 20
	wait_for 30 sending
	kill -9 "${pids[victim]}"
	reap
	expected=(1 1 1)
	expected[victim]=137
	# who sees that another one has ended for this names that one
	said=$(cat "$work"/err.* | grep -c "it has gone")
	if [[ $statuses == "${expected[*]}" ]] && ((said == 2)) &&
		(($(cat "$work"/err.* | grep -c "rank $victim: it has gone") == 2)); then
		good=$((good + 1))
	else
		echo "# rank $victim died: $statuses, $said said it: $(cat "$work"/err.*)"
	fi
done
is "kill-9-rank-all: kill -9 of a rank: all others end with a sentence" "$good" "$kills"

# --- beside MPI alone

json '(.rows | length) == 19 and all(.rows[]; .size_bytes == 8192 and .ours > 0 and .theirs > 0 and .ratio > 0 and
	.ratio_first_quartile <= .ratio and .ratio <= .ratio_third_quartile)' \
	parallel 2 burst --rounds 3 --size 8K --json
ok $? "burst: all ways, beside MPI alone"
json '[.rows[] | .name] == ["layer alone"]' parallel 2 burst --rounds 3 --size 64K --way "layer alone" --json
ok $? "one: or one of them"
parallel 3 burst --rounds 1 >"$work/out" 2>&1
is "three-processes: of three processes" "$? $(grep -c "of two processes, not 3" "$work/err")" "1 3"

# --- a network that is not there: what can be reckoned without it

# modelled FILTER OPTION...
modelled() {
	local filter=$1
	shift
	json "$filter" rashpa-builder model --json --seconds 0.02 "$@"
}
near='def near(a; b): ((a - b) | fabs) < b / 500;'
modelled "$near near(.part_of_link; 4096 / (4096 + 82))" --of nton --readouts 1
ok $? "model/link-full-carries: model: a link that is full carries packets and their heads"
# a message of one packet is sent for 1.6616 ms, is under way for 5, and so is its acknowledgement
modelled "$near near(.mean_bytes_per_s; 4096 / 0.0116616)" --of nton --readouts 1 --size 4096 --depth 1 --seconds 20 \
	--network gbps=0.02,latency=5000,head=58,cost=0
ok $? "model/one-message-time: model: one message at a time waits for its acknowledgement"
modelled "$near near(.part_of_link; 4096 / (4096 + 82) / 4) and near(.least_bytes_per_s; .most_bytes_per_s) and
	.fullest_queue_bytes > 61440 and .fullest_queue_bytes <= 65536" \
	--of nton --readouts 4 --network leaf=4,spines=1,cables=1
ok $? "model/four-share-one: model: four share one link between switches, and no queue is longer than it can be"
modelled "$near near(.part_of_link; 4096 / (4096 + 82))" --of nxn --readouts 5 --size 64K
ok $? "model/all-all-one-switch: model: all to all at one switch, both ways"
# the processor of a readout, not the network
modelled "$near near(.mean_bytes_per_s; 65536 / 100e-6)" --of nton --readouts 1 --network cost=100 --seconds 1
ok $? "model/process-one-message: model: a process does one message after the other"
# 2 readouts of one block each, to one builder, over its one link
modelled "$near near(.part_of_link; 4096 / (4096 + 82)) and near(.events_per_s * 2 * (.block_bytes / 8); .mean_bytes_per_s)" \
	--readouts 2 --builders 1 --fragment 64K --credit 16 --pool 64 --seconds 0.2
ok $? "model/builder-link-carries: model: a builder has what its link carries, in whole events"
rashpa-builder model --readouts 20 --jitter 50 --seconds 0.002 --json --network leaf=5,spines=2,cables=2,mixed >"$work/once"
rashpa-builder model --readouts 20 --jitter 50 --seconds 0.002 --json --network leaf=5,spines=2,cables=2,mixed |
	cmp - "$work/once"
ok $? "model/same-again: model: the same again"

# --- events

for transport in shm mpi; do
	for shape in "3 1 1" "5 2 2" "8 3 8" "4 2 64"; do
		read -r count readouts depth <<<"$shape"
		fresh
		json ".events == 1003 and .built == 1003 and .incomplete + .lost + .unknown + .foreign == 0
			and .readouts == $readouts and .builders == $((count - 1 - readouts))" \
			parallel "$count" build --transport "$transport" --readouts "$readouts" --depth "$depth" \
			--events 1003 --jitter 90 --files "$work/events" --json &&
			built "$readouts" 4 '.ranges == [[0, 1002]] and .twice == [] and .wrong == []'
		ok $? "readouts-builders-depth/$transport/$depth: $transport: $readouts readouts, $((count - 1 - readouts)) builders, depth $depth: all events, once"
	done
	fresh
	json ".built == 1000 and .folded and .readouts == 4 and .builders == 4 and .rebuilt == 0
		and [.ranks[] | select(.readout) | .pool_low] == [0, 0, 0, 0]" \
		parallel 5 build --transport "$transport" --folded --hold --block 7 --credit 1 --pool 1 --sources 1 \
		--events 1000 --files "$work/events" --json &&
		built 4 1 '.ranges == [[0, 999]] and .twice == [] and .wrong == []'
	ok $? "folded-held-little/$transport: $transport: folded, held, as little room as can be"
done
# fault KIND FILTER [SENTENCE]: one fragment of readout 1 is not as it should be
fault() {
	fresh
	# into a file: mpirun may lose what a process says last that ends with another status than 0
	parallel 4 build --readouts 2 --events 200 --fault "$1:1:77" --files "$work/events" --json="$work/json" >/dev/null 2>&1
	is "fragment/exit-status: a fragment that is $1: the exit status" "$?" 4
	is "builder-names: its builder names it" "$(grep -o "event .*" "$work/err")" "${3:+event 77: the fragment of source 0 of readout 1 $3}"
	jq -e ".events == 200 and .built == 200 and .lost == 0 and $2" "$work/json" >/dev/null
	ok $? "counted: and it is counted" || sed 's/^/#   /' "$work/json"
}
fault missing ".incomplete == 1 and .missing == 1 and .late + .duplicate + .corrupt == 0" "is missing"
fault late ".incomplete == 1 and .missing == 1 and .late == 1 and .duplicate + .corrupt == 0" "is missing"
fault duplicate ".incomplete == 0 and .duplicate == 1 and .missing + .late + .corrupt == 0"
fault corrupt ".incomplete == 1 and .corrupt == 1 and .missing + .late + .duplicate == 0" \
	"has another checksum than its readout has sent"
built 2 4 '.events == 200 and (.wrong | length) == 1 and (.wrong[0] | test("event 77, readout 1: checksum of source 0, flags 0x2"))'
ok $? "another-program-finds: and another program finds it where it was made"

by_hand 4 build --readouts 2 --events 10 --fault corrupt:7:5 --timeout 20
reap
is "fault-readout-not: a fault of a readout that is not there" "$statuses $(cat "$work"/err.* | grep -c "there is no readout 7: they are 0 to 1")" "1 1 1 1 4"

# --- options that have to be the same

# differ RANK OPTION SENTENCE
differ() {
	extra=([$1]=$2)
	by_hand 5 build --readouts 2 --events 100 --timeout 20 --json
	reap
	extra=()
	is "rank/all-end: $2 of rank $1 only: all end" "$statuses" "1 1 1 1 1"
	is "and-say-so: and say so" "$(cat "$work"/err.* | grep -c -e "$3: give all processes of a run the same options")" 5 || sed 's/^/# /' "$work"/err.*
}
differ 3 --hold "--hold is false at rank 0, true at rank 3"
differ 0 "--block 16" "--block is 16 at rank 0, 8 at rank 1, 8 at rank 2, 8 at rank 3, 8 at rank 4"
differ 1 "--sources 2 --credit 8 --fragment 4K" "--credit is 4 at rank 0, 8 at rank 1; --sources is 4 at rank 0, 2 at rank 1; --fragment is 2048 at rank 0, 4096 at rank 1"
differ 4 "--jitter 50" "--jitter is 0 at rank 0, 50 at rank 4"
json '.built == 0 and (.ended | test("jitter"))' cat "$work/out.0"
ok $? "rank-0-json-nothing: rank 0 has it in JSON, and nothing is built"
differ 3 "--credit 8" "--credit is 4 at rank 0, 8 at rank 3"
differ 4 "--readouts 3" "--readouts is 2 at rank 0, 3 at rank 4"
differ 2 "--timeout 21" "--timeout is 20 at rank 0, 21 at rank 2"

# --- time limits: who has nothing to do is not to blame

by_hand 5 build --readouts 2 --block 1 --rate 0.4 --events 2 --timeout 2 --json
reap
is "event-2-5-limit: an event each 2.5 s, and a limit of 2 s: nobody owes anything" "$statuses $(jq .built "$work/out.0")" "0 0 0 0 0 2" ||
	sed 's/^/# /' "$work"/err.*
# stopped_apart RANK ARGUMENT...: with a name and files of its own
stopped_apart() {
	local job=$((1000 + $1)) work=$work/stopped$1
	mkdir -p "$work"
	stopped "$@"
}
# each_stopped RATE RANK...: a run for each, at the same time, as they mostly wait; adds to good
each_stopped() {
	local rank run rate=$1
	local -a runs=()
	shift
	for rank in "$@"; do
		stopped_apart "$rank" --rate "$rate" &
		runs+=($!)
	done
	for run in "${runs[@]}"; do
		wait "$run" && good=$((good + 1))
	done
}
good=0
each_stopped 500 0 1 2
each_stopped 500 3 4 5
is "sigstop-rank/others-end-time: SIGSTOP of each rank: the others end in time, and name that one" "$good" 6
good=0
each_stopped 3 0 1 4
is "same-little: the same where there is little to do" "$good" 3

# --- names that somebody has left where files are made

fresh
: >"$work/victim"
for rank in 2 3; do
	for ((first = 0; first < 64; first += 8)); do
		ln -s "$work/victim" "$(printf '%s/.events-%012d-8.%d' "$work/events" "$first" "$rank")"
	done
done
json ".built == 64" parallel 4 build --readouts 2 --events 64 --files "$work/events" --json &&
	built 2 4 '.ranges == [[0, 63]] and .wrong == []'
ok $? "files-not-links: files do not go where links of others lead"
is "nothing-else-written: and nothing else is written" "$(stat -c %s "$work/victim")" 0
by_hand 2 nxn --cpu 5000 --seconds 1 --timeout 20
reap
is "processor-cannot-refused: a processor that cannot be is refused" "$(grep -c "there is no processor 5000" "$work/err.0")" 1

# --- kill -9 while events are assembled: 2 readouts, 3 builders

for hold in "" --hold; do
	good=0
	for ((round = 0; round < kills; round++)); do
		# shellcheck disable=SC2086 # no option, or one
		builder_died $((3 + round % 3)) --events 6000 --rate 20000 $hold && good=$((good + 1))
	done
	is "kill-9-builder: kill -9 of a builder ${hold:-without --hold}: no event wrong, twice, or lost without a word" "$good" "$kills"
done
good=0
for ((round = 0; round < kills; round++)); do
	other_died $((round % 3)) --rate 20000 && good=$((good + 1))
done
is "kill-9-manager: kill -9 of manager or readout: the run ends with a sentence, and files are whole" "$good" "$kills"

# mpirun lets the others go on, where it is told to
fresh
timeout 60 mpirun --bind-to none --runtime-options continuous -n 6 rashpa-builder build --readouts 2 --block 4 --hold \
	--events 6000 --rate 20000 --files "$work/events" --json >"$work/out.0" 2>"$work/err" &
pids=($!)
wait_for 30 some_files 20
kill -9 "$(pgrep -f -n "rashpa-builder build --readouts 2 --block 4 --hold.*$work/events")"
reap
jq -e '.lost == 0' "$work/out.0" >/dev/null && consistent
ok $? "mpirun-runtime-options-continuous/events-builder-died: mpirun --runtime-options continuous: events of a builder that died are built by others" || sed "s/^/# /" "$work/err" "$work/out.0"

# and so does an MPI that was built for it: 2 readouts, 3 builders

ulfm_ranks() { pgrep -f "rashpa-builder build --transport mpi.*$work/events" | grep -vx "${pids[0]}"; }
none_left() {
	local pid
	for pid in $(ulfm_ranks); do
		[[ ! $(rank_of "$pid") ]] || return
	done
}
# ulfm_killed RANK ARGUMENT...: sets statuses; "stands" where all ranks have ended, and mpirun never does: so
# PRRTE 3.0 does once in some dozens
ulfm_killed() {
	local pid victim=$1 stands=
	shift
	fresh
	timeout 240 mpirun --with-ft ulfm --bind-to none -n 6 rashpa-builder build --transport mpi --readouts 2 --block 4 \
		--timeout 30 "$@" --files "$work/events" --json="$work/out.0" >"$work/out" 2>"$work/err" &
	pids=($!)
	wait_for 120 some_files $((10 + RANDOM % 20))
	for pid in $(ulfm_ranks); do
		[[ $(rank_of "$pid") != "$victim" ]] || kill -9 "$pid"
	done
	if wait_for 180 none_left && ! wait_for 30 gone "${pids[0]}"; then
		echo "# mpirun stands still, and all its processes have ended"
		stands=1
		pkill -9 -P "${pids[0]}"
	fi
	reap
	[[ ! $stands ]] || statuses=stands
}
# ulfm_builder RANK ARGUMENT...: and the run goes on; it lasts four seconds, so that the death comes in it
ulfm_builder() {
	ulfm_killed "$@" --events 3000 --rate 750
	consistent && grep -q "builder of rank $1 has gone" "$work/err" && [[ $statuses != 124 ]] &&
		[[ " $* " != *" --hold "* || $(jq .lost "$work/out.0") == 0 ]] && return
	echo "# rank $1 died: $statuses"
	sed 's/^/# /' "$work/err" "$work/out.0"
	return 1
}
# ulfm_other RANK: and the run ends, with nobody else to blame; mpirun may lose what some of them say
ulfm_other() {
	ulfm_killed "$@" --rate 2000
	[[ $statuses == 1 || $statuses == stands ]] && built 2 4 '.twice == [] and .wrong == []' && grep "^rashpa-builder" "$work/err" >"$work/said" &&
		named "$1" "$work/said" && return
	echo "# rank $1 died: $statuses"
	sed 's/^/# /' "$work/err"
	return 1
}
if ompi_info | grep -q "FT MPI support: yes"; then
	for hold in "" --hold; do
		good=0
		for ((round = 0; round < kills; round++)); do
			# shellcheck disable=SC2086 # no option, or one
			ulfm_builder $((3 + round % 3)) $hold && good=$((good + 1))
		done
		is "mpirun-with-ft-ulfm: mpirun --with-ft ulfm ${hold:-without --hold}: the run goes on without a builder, no event is wrong, twice, or lost without a word" \
			"$good" "$kills"
	done
	for who in "manager 0" "readout 1"; do
		good=0
		for ((round = 0; round < kills; round++)); do
			ulfm_other "${who#* }" && good=$((good + 1))
		done
		is "mpirun-with-ft-ulfm-kill: mpirun --with-ft ulfm, kill -9 of the ${who% *}: the run ends in time, all say which rank it was, and files are whole" \
			"$good" "$kills"
	done
else
	skip "mpirun/mpirun-with-ft-ulfm: mpirun --with-ft ulfm" "this Open MPI was built without it"
fi

# MPI ends what has lost a rank
fresh
timeout 240 mpirun --bind-to none -n 4 rashpa-builder build --transport mpi --readouts 1 --block 4 --rate 20000 \
	--files "$work/events" >"$work/out" 2>"$work/err" &
pids=($!)
wait_for 120 some_files 20
kill -9 "$(pgrep -f -n "rashpa-builder build --transport mpi.*$work/events")"
reap
holds "mpi/kill-9-rank-ends: mpi: kill -9 of a rank ends the job: $statuses" "$statuses != 0 && $statuses != 124"
built 1 4 '.twice == [] and .wrong == []'
ok $? "files-whole: and files are whole"

# SIGINT ends a run in order
fresh
by_hand 4 build --readouts 1 --rate 20000 --files "$work/events" --json
wait_for 30 some_files 20
kill -TERM "${pids[0]}"
reap
is "run-stopped: a run that is stopped" "$statuses" "0 0 0 0"
built 1 4 ".twice == [] and .wrong == [] and .ranges == [[0, $(jq '.events - 1' "$work/out.0")]]"
ok $? "built-began: has built what it began"
finish
