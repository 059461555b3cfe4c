#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=70
# Runs inside the lab's root: rashpa-builder with all processes on this machine, over shared memory
# and MPI. TAP. RASHPA_KILLS: number of processes of each role to kill (default 1, nightly 3).
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/by-hand.sh
. "$(dirname "$0")/../../../selftests/lib/by-hand.sh"
PATH=$PWD/${RASHPA_TOOLS:-build/tools}:$PATH
kills=${RASHPA_KILLS:-$([[ ${RASHPA_TIER-} == nightly ]] && echo 3 || echo 1)}
# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/mpi.sh
. "$(dirname "$0")/../../../selftests/lib/mpi.sh"

# parallel N ARGUMENT...: rank 0 writes to standard output; returns the worst status of all ranks
parallel() {
	local count=$1 status
	shift
	status=0
	timeout 120 mpirun --bind-to none -n "$count" rashpa-builder "$@" 2>"$work/err" || status=$?
	((status == 0)) || grep -E '^rashpa-builder' "$work/err" | sed 's/^/# /' >&2
	return "$status"
}

# --- messages, for several sizes of a run

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
			ok $? "depth-message-right/$transport/$count/$count/$depth: $transport: $count to $count, depth $depth: all messages are right, and memory is bounded"
		done
	done
	json ".received == 4000 and .lost + .duplicate + .late + .wrong == 0
		and [.ranks[].received] == [0, 0, 2000, 2000]
		and ([.ranks[] | .receive_queue_low == -1, .send_queue_low == -1] == [true, false, true, false, false, true, false, true])" \
		parallel 4 nton --transport "$transport" --messages 1000 --size 1 --verify --json
	ok $? "2-2-one-way/$transport: $transport: 2 to 2, one way: ranks have no queues for unused directions"
	# a message and the end message for each peer take at most two buffers of a pool. A queue may be
	# empty once, if a message comes before the second buffer is posted.
	json ".received == 4 and all(.ranks[]; .send_pool_low < 16 and .send_pool_low >= 14 and .send_pool_empty == 0
		and (.receive_queue_low | . >= 0 and . < 8))" \
		parallel 2 nxn --transport "$transport" --messages 1 --json
	ok $? "pools-not-needed/$transport: $transport: pools stay mostly free with few messages"
	json ".received == 4000 and .lost + .duplicate + .late == 0 and .buffers == 1" \
		parallel 2 nxn --transport "$transport" --messages 1000 --size 100K --one-buffer --json
	ok $? "all-one-buffer/$transport: $transport: all messages in one buffer"
done
for poll in test testsome testall; do
	json ".received == 8000 and .lost + .duplicate + .late + .wrong == 0
		and all(.ranks[]; .polls_per_message > 0)" \
		parallel 4 nxn --transport mpi --poll "$poll" --messages 500 --size 20K --verify --json
	ok $? "mpi/poll: mpi: --poll $poll"
done
json ".ranks_measured == 2 and .least_bytes_per_second > 0 and .mean_bytes_per_second <= .most_bytes_per_second
	and all(.ranks[2:][]; .samples > 1)" \
	parallel 4 nton --seconds 2 --interval 0.05 --json
ok $? "samples-without-first: rates come from samples without the first and last"

# --- a slow receiver: no message of 20 MB is buffered. With MPI_Isend, buffering depends on
# scheduling, so bench-builder.sh measures it instead.

json "all(.ranks[]; .resident_bytes < 40 * 1048576)" \
	parallel 2 nxn --transport mpi --messages 5000 --size 3500 --slow 100 --json
ok $? "mpi/memory-bounded: mpi: memory is bounded"
jq -e 'all(.ranks[]; .send_pool_low == 0 and .send_pool_empty > 0 and .receive_queue_low == 0)' "$work/json" >/dev/null
ok $? "pools-queues-empty: counters show that pools and queues were empty" || sed 's/^/#   /' "$work/json"
jq -e 'all(.ranks[]; .cpu_s > 0 and .transport_cpu_s > 0 and .transport_cpu_s < .cpu_s
	and .device_node == -1 and .memory_node >= 0 and .thread_node >= 0)' "$work/json" >/dev/null
ok $? "took-processors-numa: processor times and NUMA nodes are reported" || sed 's/^/#   /' "$work/json"

# --- launchers

by_hand 3 nxn --messages 100 --verify --json
reap
is "hand-without-launcher: a run that is started by hand succeeds" "$statuses" "0 0 0"
json ".received == 900" cat "$work/out.0"
ok $? "rank-0-all: rank 0 prints the results of all ranks"
RASHPA_MEET=nowhere:$$ by_hand 2 nxn --messages 10 --json
reap
is "meet-name-well: RASHPA_MEET can name the run" "$statuses" "0 0"
rashpa-builder nxn >"$work/out" 2>"$work/err"
is "without: without launcher and variables, the error lists both" "$? $(grep -o "mpirun or srun" "$work/err")" "1 mpirun or srun"
RASHPA_RANK=0 RASHPA_SIZE=3 RASHPA_JOB=odd rashpa-builder nton >"$work/out" 2>"$work/err"
is "nton-three: nton refuses three processes" "$? $(grep -o "even number of processes, not 3" "$work/err")" "1 even number of processes, not 3"
RASHPA_RANK=0 RASHPA_SIZE=2 RASHPA_JOB=alone-$$ rashpa-builder nxn --timeout 0.2 >"$work/out" 2>"$work/err"
is "one-alone: a single process names the missing rank" "$? $(grep -o "rank 1 of 2 did not come within 200 ms" "$work/err")" \
	"3 rank 1 of 2 did not come within 200 ms"

# --- the death of a rank

sending() { # all ranks have started their threads
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
	# a rank that sees another survivor leave names the victim, too
	said=$(cat "$work"/err.* | grep -c "it has gone")
	if [[ $statuses == "${expected[*]}" ]] && ((said == 2)) &&
		(($(cat "$work"/err.* | grep -c "rank $victim: it has gone") == 2)); then
		good=$((good + 1))
	else
		echo "# rank $victim died: $statuses, $said said it: $(cat "$work"/err.*)"
	fi
done
is "kill-9-rank-all: after kill -9 of a rank, all others name it and end" "$good" "$kills"

# --- comparison with MPI alone

json '(.rows | length) == 19 and all(.rows[]; .size_bytes == 8192 and .ours > 0 and .theirs > 0 and .ratio > 0 and
	.ratio_first_quartile <= .ratio and .ratio <= .ratio_third_quartile)' \
	parallel 2 burst --rounds 3 --size 8K --json
ok $? "burst: all variants are compared with MPI alone"
json '[.rows[] | .name] == ["layer alone"]' parallel 2 burst --rounds 3 --size 64K --way "layer alone" --json
ok $? "one: --way selects one variant"
parallel 3 burst --rounds 1 >"$work/out" 2>&1
is "three-processes: burst refuses three processes" "$? $(grep -c "needs two processes, not 3" "$work/err")" "1 3"

# --- the model of a network: results that can be calculated

# modelled FILTER COMMAND OPTION...
modelled() {
	local filter=$1 command=$2
	shift 2
	json "$filter" rashpa-builder model "$command" --json --seconds 0.02 "$@"
}
near='def near(a; b): ((a - b) | fabs) < b / 500;'
modelled "$near near(.part_of_link; 4096 / (4096 + 82))" nton --readouts 1
ok $? "model/link-full-carries: model: a full link carries packets and their headers"
# sending one packet takes 1.6616 ms; its delay is 5 ms, as is that of the acknowledgement
modelled "$near near(.mean_bytes_per_second; 4096 / 0.0116616)" nton --readouts 1 --size 4096 --depth 1 --seconds 20 \
	--network gbps=0.02,latency=5000,head=58,cost=0
ok $? "model/one-message-time: model: one message at a time waits for its acknowledgement"
# a message of the protocol takes 48.8 us, and its delay
modelled "$near near(.mean_bytes_per_second; 4096 / 0.0217592)" nton --readouts 1 --size 4096 --depth 1 --seconds 20 \
	--network gbps=0.02,latency=5000,head=58,cost=0,rendezvous=4096
ok $? "model/rendezvous: model: a long message waits for the answer of the receiver"
modelled "$near near(.mean_bytes_per_second; 4096 / 0.0117104)" nton --readouts 1 --size 4096 --depth 1 --seconds 20 \
	--network gbps=0.02,latency=5000,head=58,cost=0,rendezvous=4097,credits
ok $? "model/credits: model: a message waits for the credit of the one before"
modelled "$near near(.part_of_link; 4096 / (4096 + 82))" nxn --readouts 2 --network credits
ok $? "model/credits-carried: model: messages of both directions carry credits"
modelled "$near near(.part_of_link; 4096 / (4096 + 82) / 4) and near(.least_bytes_per_second; .most_bytes_per_second) and
	.fullest_queue_bytes > 61440 and .fullest_queue_bytes <= 65536" \
	nton --readouts 4 --network leaves=2,spines=1,cables=1
ok $? "model/four-share-one: model: four senders share one link between switches, and no queue exceeds its size"
modelled "$near near(.part_of_link; 4096 / (4096 + 82))" nxn --readouts 5 --size 64K
ok $? "model/all-all-one-switch: model: all to all at one switch fills links in both directions"
# limited by the processor of a readout, not by the network
modelled "$near near(.mean_bytes_per_second; 65536 / 100e-6)" nton --readouts 1 --network cost=100 --seconds 1
ok $? "model/process-one-message: model: a process handles one message at a time"
# two readouts send their parts to one builder, over its only link
modelled "$near near(.part_of_link; 4096 / (4096 + 82)) and near(.events_per_second * 2 * (.block_bytes / 8); .mean_bytes_per_second)" \
	build --readouts 2 --builders 1 --fragment 64K --credit 16 --pool 64 --seconds 0.2
ok $? "model/builder-link-carries: model: a builder builds as many events as its link carries"
rashpa-builder model build --readouts 20 --jitter 50 --seconds 0.002 --json --network leaves=8,spines=2,cables=2,mixed >"$work/once"
rashpa-builder model build --readouts 20 --jitter 50 --seconds 0.002 --json --network leaves=8,spines=2,cables=2,mixed |
	cmp - "$work/once"
ok $? "model/same-again: model: a second run gives the same result"

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
	ok $? "folded-held-little/$transport: $transport: folded, held, with the smallest possible pools"
done
# fault KIND FILTER [SENTENCE]: a run with one bad fragment of readout 1
fault() {
	fresh
	# JSON into a file: mpirun may lose the last output of a process that fails
	parallel 4 build --readouts 2 --events 200 --fault "$1:1:77" --files "$work/events" --json="$work/json" >/dev/null 2>&1
	is "fragment/exit-status: a fragment that is $1 sets the exit status" "$?" 4
	is "builder-names: its builder reports it" "$(grep -o "event .*" "$work/err")" "${3:+event 77: the fragment of source 0 of readout 1 $3}"
	jq -e ".events == 200 and .built == 200 and .lost == 0 and $2" "$work/json" >/dev/null
	ok $? "counted: the fragment is counted" || sed 's/^/#   /' "$work/json"
}
fault missing ".incomplete == 1 and .missing == 1 and .late + .duplicate + .corrupt == 0" "is missing"
fault late ".incomplete == 1 and .missing == 1 and .late == 1 and .duplicate + .corrupt == 0" "is missing"
fault duplicate ".incomplete == 0 and .duplicate == 1 and .missing + .late + .corrupt == 0"
fault corrupt ".incomplete == 1 and .corrupt == 1 and .missing + .late + .duplicate == 0" \
	"has another checksum than its readout sent"
built 2 4 '.events == 200 and (.wrong | length) == 1 and (.wrong[0] | test("event 77, readout 1: checksum of source 0, flags 0x2"))'
ok $? "another-program-finds: an independent program finds the bad fragment"

by_hand 4 build --readouts 2 --events 10 --fault corrupt:7:5 --timeout 20
reap
is "fault-readout-not: --fault refuses an invalid readout" "$statuses $(cat "$work"/err.* | grep -c "there is no readout 7: they are 0 to 1")" "1 1 1 1 4"

# --- options that must be the same

# differ RANK OPTION SENTENCE
differ() {
	extra=([$1]=$2)
	by_hand 5 build --readouts 2 --events 100 --timeout 20 --json
	reap
	extra=()
	is "rank/all-end: $2 at rank $1 only: all ranks end" "$statuses" "1 1 1 1 1"
	is "and-say-so: all ranks list the differences" "$(cat "$work"/err.* | grep -c -e "$3: give all processes of a run the same options")" 5 || sed 's/^/# /' "$work"/err.*
}
differ 3 --hold "--hold is false at rank 0, true at rank 3"
differ 0 "--block 16" "--block is 16 at rank 0, 8 at rank 1, 8 at rank 2, 8 at rank 3, 8 at rank 4"
differ 1 "--sources 2 --credit 8 --fragment 4K" "--credit is 4 at rank 0, 8 at rank 1; --sources is 4 at rank 0, 2 at rank 1; --fragment is 2048 at rank 0, 4096 at rank 1"
differ 4 "--jitter 50" "--jitter is 0 at rank 0, 50 at rank 4"
json '.built == 0 and (.ended | test("jitter"))' cat "$work/out.0"
ok $? "rank-0-json-nothing: the JSON of rank 0 lists the difference, and no event is built"
differ 3 "--credit 8" "--credit is 4 at rank 0, 8 at rank 3"
differ 4 "--readouts 3" "--readouts is 2 at rank 0, 3 at rank 4"
differ 2 "--timeout 21" "--timeout is 20 at rank 0, 21 at rank 2"

# --- time limits: ranks without work are not to blame

by_hand 5 build --readouts 2 --block 1 --rate 0.4 --events 2 --timeout 2 --json
reap
is "event-2-5-limit: an event each 2.5 s, and a limit of 2 s: no rank times out" "$statuses $(jq .built "$work/out.0")" "0 0 0 0 0 2" ||
	sed 's/^/# /' "$work"/err.*
# stopped_apart RANK ARGUMENT...: the same as stopped, with a separate job name and folder
stopped_apart() {
	local job=$((1000 + $1)) work=$work/stopped$1
	mkdir -p "$work"
	stopped "$@"
}
# each_stopped RATE RANK...: a run for each rank, in parallel, as runs mostly wait; adds to good
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
is "sigstop-rank/others-end-time: after SIGSTOP of each rank, the others end in time, and name it" "$good" 6
good=0
each_stopped 3 0 1 4
is "same-little: the same at a low rate" "$good" 3

# --- links at the names of temporary files

fresh
: >"$work/victim"
for rank in 2 3; do
	for ((first = 0; first < 64; first += 8)); do
		ln -s "$work/victim" "$(printf '%s/.events-%012d-8.%d' "$work/events" "$first" "$rank")"
	done
done
json ".built == 64" parallel 4 build --readouts 2 --events 64 --files "$work/events" --json &&
	built 2 4 '.ranges == [[0, 63]] and .wrong == []'
ok $? "files-not-links: files are not written through links of other users"
is "nothing-else-written: the target of the links stays empty" "$(stat -c %s "$work/victim")" 0
by_hand 2 nxn --cpu 5000 --seconds 1 --timeout 20
reap
is "processor-cannot-refused: --cpu refuses an invalid processor" "$(grep -c "there is no processor 5000" "$work/err.0")" 1

# --- kill -9 while events are assembled: 2 readouts, 3 builders

for hold in "" --hold; do
	good=0
	for ((round = 0; round < kills; round++)); do
		# shellcheck disable=SC2086 # one option or none
		builder_died $((3 + round % 3)) --events 6000 --rate 20000 $hold && good=$((good + 1))
	done
	is "kill-9-builder: kill -9 of a builder ${hold:-without --hold}: no event is wrong, built twice, or lost without a report" "$good" "$kills"
done
good=0
for ((round = 0; round < kills; round++)); do
	other_died $((round % 3)) --rate 20000 && good=$((good + 1))
done
is "kill-9-manager: kill -9 of manager or readout: the run ends with an error, and files are complete" "$good" "$kills"

# with this option, mpirun lets the other processes continue
fresh
timeout 60 mpirun --bind-to none --runtime-options continuous -n 6 rashpa-builder build --readouts 2 --block 4 --hold \
	--events 6000 --rate 20000 --files "$work/events" --json >"$work/out.0" 2>"$work/err" &
pids=($!)
wait_for 30 some_files 20
kill -9 "$(pgrep -f -n "rashpa-builder build --readouts 2 --block 4 --hold.*$work/events")"
reap
jq -e '.lost == 0' "$work/out.0" >/dev/null && consistent
ok $? "mpirun-runtime-options-continuous/events-builder-died: mpirun --runtime-options continuous: other builders take over the events of a dead one" || sed "s/^/# /" "$work/err" "$work/out.0"

# MPI with ULFM: the other processes continue, too: 2 readouts, 3 builders

ulfm_ranks() { pgrep -f "rashpa-builder build --transport mpi.*$work/events" | grep -vx "${pids[0]}"; }
none_left() {
	local pid
	for pid in $(ulfm_ranks); do
		[[ ! $(rank_of "$pid") ]] || return
	done
}
# ulfm_killed RANK ARGUMENT...: sets statuses; "stands" if all ranks end but mpirun hangs, as
# PRRTE 3.0 does once in some dozens of runs
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
		echo "# mpirun hangs after the end of all its processes"
		stands=1
		pkill -9 -P "${pids[0]}"
	fi
	reap
	[[ ! $stands ]] || statuses=stands
}
# ulfm_builder RANK ARGUMENT...: kill a builder; the run continues. It lasts four seconds, so that
# the death falls into it
ulfm_builder() {
	ulfm_killed "$@" --events 3000 --rate 750
	consistent && grep -q "builder of rank $1 has gone" "$work/err" && [[ $statuses != 124 ]] &&
		[[ " $* " != *" --hold "* || $(jq .lost "$work/out.0") == 0 ]] && return
	echo "# rank $1 died: $statuses"
	sed 's/^/# /' "$work/err" "$work/out.0"
	return 1
}
# ulfm_other RANK: kill another rank; the run ends, and names only that one; mpirun may lose some
# of the messages
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
			# shellcheck disable=SC2086 # one option or none
			ulfm_builder $((3 + round % 3)) $hold && good=$((good + 1))
		done
		is "mpirun-with-ft-ulfm: mpirun --with-ft ulfm ${hold:-without --hold}: the run continues without a builder, and no event is wrong, built twice, or lost without a report" \
			"$good" "$kills"
	done
	for who in "manager 0" "readout 1"; do
		good=0
		for ((round = 0; round < kills; round++)); do
			ulfm_other "${who#* }" && good=$((good + 1))
		done
		is "mpirun-with-ft-ulfm-kill: mpirun --with-ft ulfm, kill -9 of the ${who% *}: the run ends in time, all ranks name it, and files are complete" \
			"$good" "$kills"
	done
else
	skip "mpirun/mpirun-with-ft-ulfm: mpirun --with-ft ulfm" "this Open MPI was built without it"
fi

# without ULFM, MPI ends a job that has lost a rank
fresh
timeout 240 mpirun --bind-to none -n 4 rashpa-builder build --transport mpi --readouts 1 --block 4 --rate 20000 \
	--files "$work/events" >"$work/out" 2>"$work/err" &
pids=($!)
wait_for 120 some_files 20
kill -9 "$(pgrep -f -n "rashpa-builder build --transport mpi.*$work/events")"
reap
holds "mpi/kill-9-rank-ends: mpi: kill -9 of a rank ends the job: $statuses" "$statuses != 0 && $statuses != 124"
built 1 4 '.twice == [] and .wrong == []'
ok $? "files-whole: files are complete"

# a signal ends a run in order
fresh
by_hand 4 build --readouts 1 --rate 20000 --files "$work/events" --json
wait_for 30 some_files 20
kill -TERM "${pids[0]}"
reap
is "run-stopped: a run that gets SIGTERM succeeds" "$statuses" "0 0 0 0"
built 1 4 ".twice == [] and .wrong == [] and .ranges == [[0, $(jq '.events - 1' "$work/out.0")]]"
ok $? "built-began: the run has finished all blocks under way"
finish
