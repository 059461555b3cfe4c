#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=on seconds=150
# A program drives the board by a ring: a thread of this machine, alone and with launches, and a
# persistent shader of a GPU emulated here (lavapipe), because that accepts memory of the host and the
# doorbell's page by address. Each event is checked; errors of software and of the board are found.
. "$(dirname "$0")/../lib/shell.sh"

have_fpga || { skip "program-drives-board: a program drives the board" "no software FPGA in this guest"; finish; }
export VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.json
events=${RASHPA_LOOP_EVENTS:-100000}

# told WORD...: send a command to the software FPGA's control socket; it must obey
told() { selftests/lab/host fpga 0 "$@" >/dev/null; }

# loop STATUS NAME OPTION...: ends with this status; $work/loop.json has the result. Runs under $trace
trace=()
loop() {
	local wanted=$1 name=$2 status=0
	shift 2
	"${trace[@]}" rashpa-bench loop --fpga "fpga$fpga" --json="$work/loop.json" "$@" >"$work/out" 2>"$work/err" || status=$?
	is "$name" "$status" "$wanted" || sed 's/^/# /' "$work/out" "$work/err"
}

says() { jq -c "$1" "$work/loop.json"; }

rashpactl buffer create loop 16M >/dev/null
ok $? "buffer-ring-queue: a buffer for ring, queue and payload"

# --- all of it, side by side; launches have a tenth of the events
# whole EVENTS IN-GPU: all of them came, by each drive, and the board counts the same
whole() {
	is "all-events-none: all events, none missing, doubled, wrong or out of turn" \
		"$(says '.rows | map([.events, .datagrams, .missing, .doubled, .differ, .out_of_turn, .stale])')" \
		"[[$1,$(($1 / 2)),0,0,0,0,0],[$(($1 / 10)),$(($1 / 20)),0,0,0,0,0],[$1,$(($1 / 2)),0,0,0,0,0]]"
	is "board-counts-same: the board counts the same" "$(says '.rows | map(.board | [.sent, .received, .events, .lost, .errors])')" \
		"[[$(($1 / 2)),$(($1 / 2)),$1,0,0],[$(($1 / 20)),$(($1 / 20)),$(($1 / 10)),0,0],[$(($1 / 2)),$(($1 / 2)),$1,0,0]]"
	is "interrupts: only launches have interrupts, at most one for each event" \
		"$(says '.rows | map([.way, .interrupts > 0, .interrupts <= .events, .in_gpu])')" \
		"[[\"host\",false,true,$2],[\"launches\",true,true,$2],[\"gpu\",false,true,$2]]"
	is "ring-rest: the ring is at rest" "$(status .busy)" false
}
loop 0 "events-machine-shader: $((events / 10)) events by this machine, by launches, and by a shader" --events $((events / 10)) --buffer loop \
	--gpu vulkan --deadline 1000000
sed 's/^/# /' "$work/out"
whole $((events / 10)) false

# --- the GPU has all of it: events, ring and payload are in its memory, and the host does nothing
if [[ -w /dev/udmabuf ]]; then
	trace=(strace -f --seccomp-bpf -e trace=ioctl -o "$work/ioctls")
	loop 0 "memory-gpu: $events events, ring and payload in memory of the GPU" --events "$events" --gpu vulkan --memory gpu \
		--deadline 1000000
	sed 's/^/# /' "$work/out"
	whole "$events" true
	ioctls=$(wc -l <"$work/ioctls")
	holds "ioctls: few ioctls, of beginning and end ($ioctls)" "ioctls > 0 && ioctls < 500"
	trace=()
	loop 0 "rings: rings of Cherenkov light, fitted as in NA62, with a dummy computation" --events 2000 --gpu vulkan --memory gpu --rings \
		--compute 200
	sed 's/^/# /' "$work/out"
	is "rings-right: all are those of the reference" "$(says '.rows | map([.rings, .wrong_rings])')" "[[996,0],[96,0],[996,0]]"
	is "late-counted: late answers are counted, by drive and board" "$(says '.rows | map(.late == .board.late)')" "[true,true,true]"
else
	skip "memory-gpu: a ring in memory of the GPU" "this kernel has no udmabuf, from which lavapipe's memory is exported"
fi

# --- a full queue: the board holds, and nothing is lost
loop 0 "way-queue-room: more under way than the queue has room for" --events 4000 --window 32 --ring 32 --queue 32 --gpu vulkan
is "board-held-all: the board has held, and all came" "$(says '.rows | map(.board.held > 0 and .missing == 0 and .out_of_turn == 0)')" "[true,true,true]"

# --- what software does wrong
loop 0 "descriptor-not-written: a descriptor that was not written" --events 2000 --stale 777 --gpu vulkan
is "board-sent-again: the board reports it, and it is sent again" \
	"$(says '.rows | map([.stale, .board.errors, .missing, .doubled])')" "[[1,1,0,0],[1,1,0,0]]"
loop 0 "one-lap-before: one of the lap before" --events 2000 --stale 3 --ring 4
is "found-well: is found as well" "$(says '.rows | map([.stale, .missing])')" "[[1,0]]"
loop 1 "doorbell: a doorbell for more than there is" --events 2000 --overrun 500 --gpu vulkan
is "ends-ring-fault: ends the ring with a fault, which is reported" "$(says '.rows | map(.wrong | test("fault.*config")) | all')" true
is "next-loop-begins: and the next loop begins anew" "$(status .busy)" false
loop 0 "next-loop: the next loop" --events 200 --gpu vulkan

# --- deadlines
loop 0 "answers-cannot-time: answers that cannot be in time" --events 400 --deadline 1
late=$(says '.rows[0].late')
holds "late-sent-all: are late, and sent all the same" "$late > 0 && $(says '.rows[0].datagrams') == 200"
is "board-counted: the board has counted them" "$(says '.rows[0].board.late')" "$late"

# --- success and failure of stacks, each reported by one store: one image in eight is bad
loop 0 "verdicts-4000-stacks: verdicts of 4000 stacks" --verdicts --events 4000 --gpu vulkan
is "counted: each verdict is counted" "$(says '.rows | map([.stacks, .bad, .successes, .failures, .missed])')" \
	"[[4000,500,3500,500,0],[4000,500,3500,500,0]]"
is "and-when-of/last-one-eight: and when, of both: the last one of eight is good" \
	"$(says '.rows | map(.start_ticks < .last_failure_ticks and .last_failure_ticks < .last_success_ticks) | all')" true
loop 0 "several-stacks-way: several stacks under way" --verdicts --events 4000 --window 8
is "board-not-see: verdicts that the board missed are counted as well" \
	"$(says '.rows | map(.successes + .failures + .missed)')" "[4000]"

# --- observers
rashpa-bench loop --fpga "fpga$fpga" --events 4000000 --json="$work/loop.json" >"$work/looper" 2>&1 &
looper=$!
runs() { [[ $(status '.rings[0].events // 0') -gt 1000 ]] || gone "$looper"; }
wait_for 60 runs
json '.busy and (.rings[0] | .kind == "wire" and .running and .errors == 0 and .sent > 400)' \
	rashpactl --json fpga status "fpga$fpga"
ok $? "rashpactl-fpga-status: rashpactl fpga status has the counters of a ring"
json ".rings == [.rings[0]] and (.rings[0] | .fpga == $fpga and .ring == 0 and .running and .events_per_second > 0 and
	.lost == 0 and .errors == 0 and has(\"held\") and has(\"late\"))" rashpactl --json top --count 1 --interval 0.5
ok $? "rashpactl-top: and so has rashpactl top"
rashpactl top --count 1 --interval 0.1 | grep -q "^fpga$fpga ring 0 .*events/s.*held.*late"
ok $? "people: and for people"
rashpa-bench loop --fpga "fpga$fpga" --events 100 >"$work/out" 2>&1
is "second-one-refused: a second one is refused" "$? $(grep -c "has claimed it" "$work/out")" "1 1" || sed 's/^/# /' "$work/out"
kill -INT "$looper"
wait "$looper"
is "interrupted-one-ends: an interrupted one ends with 1" $? 1
is "leaves-nothing-running: and leaves nothing running" "$(status .busy)" false
rashpa-bench loop --fpga "fpga$fpga" --events 4000000 >"$work/out" 2>&1 &
looper=$!
wait_for 60 runs
faults=$(status .faults)
kill -KILL "$looper"
wait "$looper" 2>/dev/null
is "one-killed: nor does one that is killed" "$(status '[.busy, .faults] | tostring')" "[false,$faults]"

# --- what the board does wrong
if told ring lose 500; then
	loop 1 "board-loses-events: a board that loses events" --events 2000
	says '.rows[0].wrong' | grep -q "event 499 is missing"
	ok $? "one-missing: which one is missing" || says '.rows[0].wrong'
	told ring full
	loop 1 "board-writes-full: a board that writes into a full queue" --events 4000 --window 32 --ring 32 --queue 32
	says '.rows[0].wrong' | grep -q "was overwritten"
	ok $? "one-overwritten: which one was overwritten" || says '.rows[0].wrong'
	told ring stale
	loop 1 "board-sends-stale: a board that sends what is stale" --events 2000 --stale 777
	told ring honest
	ok $? "board-honest-again: the board is honest again"
else
	skip "board-wrong: a board that is wrong" "its control socket does not answer"
fi

# --- a board is removed while top shows it: top reports it, and goes on
rashpactl --json top --interval 0.05 >"$work/top" 2>"$work/err" &
top=$!
# the last line but one is complete
shows() { tail -n 2 "$work/top" | head -n 1 | jq -e "$1" >/dev/null 2>&1; }
shows_or_gone() { shows "$1" || gone "$top"; }
sees() { # NAME FILTER
	wait_for 20 shows_or_gone "$2"
	! gone "$top" && shows "$2"
	ok $? "board/rashpactl-top: rashpactl top $1" || sed 's/^/# /' "$work/err"
}
# held [PROCESS]: it has stopped between two registers
held() {
	python3 - "$1" <<-'END'
		import os, signal, sys, time
		top, end = int(sys.argv[1]), time.monotonic() + 60
		def look(file):
		    with open(f"/proc/{top}/{file}") as f:
		        return f.read()
		while "dmabuf" not in look("maps"):
		    if time.monotonic() > end:
		        sys.exit("it maps no registers")
		os.kill(top, signal.SIGSTOP)
		while look("stat").rsplit(")")[1].split()[0] != "T":
		    pass
		if "dmabuf" in look("maps"):
		    sys.exit(0)
		os.kill(top, signal.SIGCONT)
		sys.exit(2)
	END
}
sees "shows a ring" '.rings[0].gone == false'
wait_for 60 held "$top"
ok $? "rashpactl-top-held: rashpactl top is held between two registers"
rashpactl unbind "$bdf"
kill -CONT "$top"
sees "says that its board is gone" '.rings[0] | .gone and (.running | not)'
# a function that has windows, as top takes them, gets no profile
kill -STOP "$top"
have_fpga
kill -CONT "$top"
remu --buffer loop --fpga "$fpga" --policy overwrite --bunch 1 --images 0 --rate 20 >"$work/remu" 2>&1 &
remu=$!
sees "goes on, with the next stream" '.streams[0] | .state == "running" and .stacks > 0' ||
	sed 's/^/# /' "$work/remu"
rashpactl unbind "$bdf"
sees "says that the stream's board is gone" '.streams[0] | .state == "gone" and (.why | test("removed, or unbound"))'
wait "$remu"
is "producer-fails: its producer fails" $? 1 || sed 's/^/# /' "$work/remu"
sees "still does when the producer has ended" '.streams[0].state == "gone"'
rashpactl top --count 1 --interval 0.01 | grep -q "^loop  *fpga$fpga  *gone"
ok $? "producer/people: and for people"
kill -INT "$top"
wait "$top"
is "ends-well-nothing: it ends well, and had nothing else to say" "$? $(<"$work/err")" "0 "
have_fpga

# --- others
rashpa-bench loop --fpga "fpga$fpga" --gpu vulkan:7 --events 100 >"$work/out" 2>&1
is "gpu-not: a GPU that is not there" $? 1
grep -q "vulkan:7" "$work/out"
ok $? "named: is named" || sed 's/^/# /' "$work/out"
rashpactl buffer create short 64K >/dev/null
rashpa-bench loop --fpga "fpga$fpga" --buffer short >"$work/out" 2>&1
is "buffer-short: a buffer that is too short" $? 1
grep -q "buffer short has 65536 bytes" "$work/out"
ok $? "sizes: the message has the sizes" || sed 's/^/# /' "$work/out"
rashpactl buffer remove short && rashpactl buffer remove loop
ok $? "nothing-holds-buffers: nothing holds the buffers"
finish
