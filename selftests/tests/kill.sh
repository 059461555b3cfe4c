#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# kill -9 of the producer and of the receiver in mid-stream, again and again: the DMA
# has stopped before memory could be given back, buffer and data are there, and a
# restart streams again.
. "$(dirname "$0")/../lib/shell.sh"

have_fpga || { skip "kill" "no software FPGA in this guest"; finish; }
rounds=2
rashpactl buffer create ring1 64M >/dev/null
ok $? "buffer"

stream_on() { # more arguments of remu
	remu --buffer ring1 --fpga "$fpga" --split 2 --bunch 4 --slots 2 "$@" \
		--timeout 60 --json "$work/remu.json" >"$work/remu.out" 2>&1 &
	remu=$!
}
receive() { # more arguments of romulu
	romulu --buffer ring1 --timeout 60 --json "$work/romulu.json" "$@" >"$work/romulu.out" 2>&1 &
	romulu=$!
}
busy() { [[ $(status .busy) == true ]]; }
# Both: the receiver comes when this stream has begun.
stream_and_receive() { # more arguments of remu
	stream_on "$@"
	wait_for 30 busy
	receive
}
bytes_pass() { (($(status .bytes) > $1)); }
maps_gone() { [[ $(rashpactl --json list | jq -r ".devices[] | select(.node == \"fpga$fpga\").maps") == 0 ]]; }

faults=$(status .faults)
for ((i = 0; i < rounds; i++)); do
	# --- the producer dies, free-running: nobody holds the FPGA back
	stream_on --free-run
	wait_for 30 bytes_pass $(($(status .bytes) + 20000000))
	ok $? "round $i: data flows"
	kill -9 "$remu"
	wait "$remu" 2>/dev/null
	wait_for 30 maps_gone
	ok $? "round $i: the map of a killed producer goes"
	is "round $i: the FPGA is idle" "$(status .busy)" false
	before=$(status .bytes)
	rashpactl buffer info ring1 >"$work/info"
	ok $? "round $i: the buffer is there"
	is "round $i: no byte was written after the map went" "$(status .bytes)" "$before"
	is "round $i: no write hit memory that had been taken away" "$(status .faults)" "$faults"

	# --- the receiver dies, paced: a new one goes on where it stopped
	stream_and_receive --images 500
	wait_for 30 bytes_pass $((before + 40000000))
	kill -9 "$romulu"
	ok $? "round $i: the receiver is killed in mid-stream"
	wait "$romulu" 2>/dev/null
	receive
	wait "$romulu"
	ok $? "round $i: a second receiver takes over and finds every frame right"
	holds "round $i: and that were some" "$(jq .frames "$work/romulu.json") > 0"
	wait "$remu"
	ok $? "round $i: the producer ends well"
	is "round $i: all images were sent" "$(jq .images "$work/remu.json")" 500
	is "round $i: the FPGA counted no fault" "$(jq .faults "$work/remu.json")" 0
	faults=$(status .faults)
done

# The memory itself: what was in it when the producer died stays.
stream_on --free-run
wait_for 30 bytes_pass $(($(status .bytes) + 20000000))
kill -9 "$remu"
wait "$remu" 2>/dev/null
wait_for 30 maps_gone
python3 - >"$work/sum1" <<'P'
import hashlib, mmap, os
fd = os.open("/dev/rashpa/buffer/ring1", os.O_RDONLY)
m = mmap.mmap(fd, 64 << 20, prot=mmap.PROT_READ)
print(hashlib.sha256(m).hexdigest(), any(m[1 << 20:2 << 20]))
P
is "there is data in the buffer" "$(cut -d' ' -f2 "$work/sum1")" True
rashpactl buffer create other 64M >/dev/null && rashpactl buffer remove other
python3 - >"$work/sum2" <<'P'
import hashlib, mmap, os
fd = os.open("/dev/rashpa/buffer/ring1", os.O_RDONLY)
m = mmap.mmap(fd, 64 << 20, prot=mmap.PROT_READ)
print(hashlib.sha256(m).hexdigest(), any(m[1 << 20:2 << 20]))
P
is "it does not change any more" "$(cat "$work/sum2")" "$(cat "$work/sum1")"

# A receiver and a producer that die together.
stream_and_receive
wait_for 30 bytes_pass $(($(status .bytes) + 40000000))
kill -9 "$romulu" "$remu"
wait "$romulu" "$remu" 2>/dev/null
wait_for 30 maps_gone
is "both killed: the FPGA is idle" "$(status .busy)" false
is "both killed: top knows" "$(rashpactl top --once --interval 0.01 ring1 | grep -c "^ring1 .* dead")" 1

# Nor does it come to life when the FPGA gets a map of something else.
rashpactl buffer create other 2M >/dev/null && rashpactl map --keep other "fpga$fpga" >/dev/null
ok $? "both killed: the FPGA has a map of another buffer"
romulu --buffer ring1 --timeout 1 >"$work/out" 2>&1
is "both killed: a receiver finds no stream" $? 3
is "both killed: top knows it still" "$(rashpactl top --once --interval 0.01 ring1 | grep -c "^ring1 .* dead")" 1
rashpactl quiesce "fpga$fpga" && rashpactl buffer remove other
ok $? "both killed: that map ends"

# A receiver that was asleep when its producer died and another stream began.
stream_and_receive --images 500
wait_for 30 bytes_pass $(($(status .bytes) + 40000000))
kill -STOP "$romulu"
kill -9 "$remu"
wait "$remu" 2>/dev/null
wait_for 30 maps_gone
stream_on --free-run --bunch 3 --images 300
wait "$remu"
ok $? "asleep: another stream was here"
kill -CONT "$romulu"
wait "$romulu"
grep -q "another stream" "$work/romulu.out"
ok $? "asleep: the receiver says so"
holds "asleep: at most the stack in its hands is lost" "$(jq .lost "$work/romulu.json") <= 4"
is "asleep: nothing of the other stream is taken for its own" "$(jq .corrupt "$work/romulu.json")" 0

# A board that does not obey: its bus mastering ends instead, and a reset repairs it.
state() { rashpactl --json list | jq -r ".devices[] | select(.node == \"fpga$fpga\").state"; }
if selftests/lab/host fpga 0 stuck on >/dev/null; then
	stream_on --free-run
	wait_for 30 bytes_pass $(($(status .bytes) + 20000000))
	kill -9 "$remu"
	wait "$remu" 2>/dev/null
	wait_for 30 maps_gone
	ok $? "a board that does not stop: the map goes all the same"
	is "a board that does not stop: fpga$fpga is stuck" "$(state)" stuck
	before=$(status .bytes)
	is "a board that does not stop: it writes no more" "$(status .bytes)" "$before"
	rashpactl map ring1 "fpga$fpga" >"$work/out" 2>&1
	holds "a stuck board gets no map" "$? == 1"
	grep -q "fpga$fpga.*reset" "$work/out"
	ok $? "and the message says: reset it"
	selftests/lab/host fpga 0 stuck off >/dev/null
	rashpactl reset "fpga$fpga"
	ok $? "reset"
	is "after a reset it is ready" "$(state)" ready
	stream_and_receive --images 40
	wait "$romulu"
	ok $? "and streams again"
	wait "$remu"
else
	skip "a board that does not stop" "no way to reach the FPGA's control socket"
fi
rashpactl buffer remove ring1
ok $? "the buffer can be removed: nobody holds it"
finish
