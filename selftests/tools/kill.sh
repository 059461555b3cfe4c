#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check iommu=on seconds=80
# kill -9 of the producer and of the receiver in mid-stream, repeatedly: the DMA stops before memory
# can be freed, buffer and data stay, and a restart streams again.
. "$(dirname "$0")/../lib/shell.sh"

have_fpga || { skip "kill: kill" "no software FPGA in this guest"; finish; }
rounds=1
[[ ${RASHPA_TIER-} != nightly ]] || rounds=2
rashpactl buffer create ring1 64M >/dev/null
ok $? "buffer: buffer"

# small ones, where all is emulated: it is not about pixels
images=(--dataset generate:10 --geometry 256x128)
stream_on() { # more arguments of remu
	remu --buffer ring1 --fpga "$fpga" "${images[@]}" --split 2 --bunch 4 --slots 2 "$@" \
		--timeout 60 --json="$work/remu.json" >"$work/remu.out" 2>&1 &
	remu=$!
}
receive() { # more arguments of romulu
	romulu --buffer ring1 --check "${images[@]}" --timeout 60 --json="$work/romulu.json" "$@" >"$work/romulu.out" 2>&1 &
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
kill_remu() { # until its maps have gone
	kill -9 "$remu"
	wait "$remu" 2>/dev/null
	wait_for 30 maps_gone
}

faults=$(status .faults)
for ((i = 0; i < rounds; i++)); do
	# --- the producer dies, free-running: no credit limits the FPGA
	stream_on --policy overwrite
	wait_for 30 bytes_pass $(($(status .bytes) + 1500000))
	ok $? "round/data-flows/$i: round $i: data flows"
	kill_remu
	ok $? "round/map-killed-producer/$i: round $i: the map of a killed producer goes"
	is "round/fpga-idle/$i: round $i: the FPGA is idle" "$(status .busy)" false
	before=$(status .bytes)
	rashpactl buffer info ring1 >"$work/info"
	ok $? "round/buffer/$i: round $i: the buffer is there"
	is "round/no-byte-written/$i: round $i: no byte was written after the map went" "$(status .bytes)" "$before"
	is "round/no-write-hit/$i: round $i: no write hit memory that had been taken away" "$(status .faults)" "$faults"

	# --- the receiver dies, paced: a new one goes on where it stopped
	stream_and_receive
	wait_for 30 bytes_pass $((before + 3000000))
	kill -9 "$romulu"
	ok $? "round/receiver-killed-mid-stream/$i: round $i: the receiver is killed in mid-stream"
	wait "$romulu" 2>/dev/null
	receive --images 200
	wait "$romulu"
	ok $? "round/second-receiver-takes/$i: round $i: a second receiver takes over and finds every frame right"
	is "round/wanted/$i: round $i: as many as it wanted" "$(jq .frames "$work/romulu.json")" 200
	kill -INT "$remu"
	wait "$remu"
	ok $? "round/producer-ends-well/$i: round $i: the producer ends well"
	holds "round/sent/$i: round $i: it sent them" "$(jq .images "$work/remu.json") >= 200"
	is "round/fpga-counted-no/$i: round $i: the FPGA counted no fault" "$(jq .faults "$work/remu.json")" 0
	faults=$(status .faults)
done

# The memory itself: its content at the death of the producer stays.
stream_on --policy overwrite
wait_for 30 bytes_pass $(($(status .bytes) + 1500000))
kill_remu
python3 - >"$work/sum1" <<'P'
import hashlib, mmap, os
fd = os.open("/dev/rashpa/buffer/ring1", os.O_RDONLY)
m = mmap.mmap(fd, 64 << 20, prot=mmap.PROT_READ)
print(hashlib.sha256(m).hexdigest(), any(m[1 << 17:1 << 18]))
P
is "data-buffer: there is data in the buffer" "$(cut -d' ' -f2 "$work/sum1")" True
rashpactl buffer create other 64M >/dev/null && rashpactl buffer remove other
python3 - >"$work/sum2" <<'P'
import hashlib, mmap, os
fd = os.open("/dev/rashpa/buffer/ring1", os.O_RDONLY)
m = mmap.mmap(fd, 64 << 20, prot=mmap.PROT_READ)
print(hashlib.sha256(m).hexdigest(), any(m[1 << 17:1 << 18]))
P
is "not-change: it does not change any more" "$(cat "$work/sum2")" "$(cat "$work/sum1")"

# A receiver dies, and its producer when all slots are full.
all_wait() { [[ $(status '[.dtps[0, 1].waiting] | all') == true ]]; }
stream_and_receive
wait_for 30 bytes_pass $(($(status .bytes) + 3000000))
kill -9 "$romulu"
wait "$romulu" 2>/dev/null
wait_for 30 all_wait
kill_remu
is "killed/fpga-idle: both killed: the FPGA is idle" "$(status .busy)" false
is "killed/top-knows: both killed: top knows" "$(rashpactl top --count 1 --interval 0.01 ring1 | grep -c "^ring1 .* dead")" 1

# Nor does it come to life when the FPGA gets a map of something else.
rashpactl buffer create other 2M >/dev/null
rashpactl map make --hold other "fpga$fpga" >"$work/held" &
holder=$!
until gone "$holder" || grep -q "for fpga" "$work/held"; do :; done
[[ -s $work/held ]]
ok $? "killed/fpga-map-another: both killed: the FPGA has a map of another buffer"
romulu --buffer ring1 --check "${images[@]}" --timeout 10 --json="$work/romulu.json" >"$work/out" 2>&1
is "killed/receiver-producer: both killed: a receiver says that the producer is gone" "$? $(grep -c "the producer is gone" "$work/out")" "1 1"
# Two stacks, or one if the receiver died after its note of a stack and before its doorbell.
is "killed/takes-first-complete: both killed: and takes first what was complete" \
	"$(jq -r '"\(.frames == 4 or .frames == 8) \(.corrupt)"' "$work/romulu.json")" "true 0"
romulu --buffer ring1 --check --timeout 1 >"$work/out" 2>&1
is "killed/next-one-finds: both killed: the next one finds no stream" $? 3
is "killed/top-knows-2: both killed: top knows it still" "$(rashpactl top --count 1 --interval 0.01 ring1 | grep -c "^ring1 .* dead")" 1
kill "$holder"; wait "$holder"
rashpactl buffer remove other
ok $? "killed/map-ends: both killed: that map ends"

# A producer is killed before its first stack is complete: the receiver takes the next stream.
stream_on --rate 0.01
wait_for 30 busy
receive
waits() { [[ $(rashpactl --json buffer info ring1 | jq -c .) == *"$romulu"* ]]; }
wait_for 30 waits
ok $? "again/receiver: the receiver is there"
kill_remu
stream_on --images 300
wait "$remu"
wait "$romulu"
is "again/frames: it takes the stream of the next producer" "$? $(jq -c '[.frames, .corrupt]' "$work/romulu.json")" \
	"0 [300,0]" || sed 's/^/# /' "$work/romulu.out"

# A receiver that was asleep when its producer died and another stream began.
for number in 1000000 0; do
	stream_and_receive --images "$number"
	wait_for 30 bytes_pass $(($(status .bytes) + 3000000))
	kill -STOP "$romulu"
	kill_remu
	stream_on --policy overwrite --bunch 3 --images 300
	wait "$remu"
	ok $? "asleep/another-stream/$number: asleep, of $number: another stream was here"
	kill -CONT "$romulu"
	wait "$romulu"
	is "asleep/receiver-fails/$number: asleep, of $number: the receiver fails" $? 1
	grep -q "another stream" "$work/romulu.out"
	ok $? "asleep/and-says-so/$number: asleep, of $number: and says so"
	holds "asleep/seen-lost/$number: asleep, of $number: images that it had seen are lost" "$(jq .lost "$work/romulu.json") <= 8"
	is "asleep/nothing-other-stream/$number: asleep, of $number: nothing of the other stream is taken for its own" \
		"$(jq .corrupt "$work/romulu.json")" 0
done

# Two producers that begin together: one streams, the other one is refused and takes nothing
# with it.
one_ended() { gone "${both[0]}" || gone "${both[1]}"; }
stacks_pass() { # BUFFER
	rashpactl --json top --count 1 --interval 0.01 "$1" |
		jq -e '.streams[0] | .state == "running" and .stacks > 0' >/dev/null
}
begin_both() { # NAME BUFFER FPGA BUFFER FPGA
	local i buffers=("$2" "$4") fpgas=("$3" "$5")
	both=()
	for i in 0 1; do
		remu --buffer "${buffers[i]}" --fpga "${fpgas[i]}" "${images[@]}" --policy overwrite --bunch 4 --slots 2 \
			--json="$work/both$i.json" >/dev/null 2>"$work/both$i" &
		both+=($!)
	done
	wait_for 60 one_ended
	ok $? "one-ends: $1: one ends" || kill -INT "${both[@]}"
	gone "${both[0]}" && i=1 || i=0
	wait "${both[1 - i]}"
	is "failed: $1: it failed" $? 1
	grep -Eq "producer first|has a producer: process" "$work/both$((1 - i))" || ! sed 's/^/# /' "$work/both$((1 - i))"
	ok $? "another-one: $1: and says that there is another one"
	wait_for 30 stacks_pass "${buffers[i]}"
	ok $? "other-one-streams: $1: the other one streams, and no message reports its end"
	kill -INT "${both[i]}"
	wait "${both[i]}"
	is "until-end: $1: until we end it" $? 0
	holds "data: $1: with data" "$(jq .bytes "$work/both$i.json") > 0"
}
# A board that another program has claimed: it is named.
coproc holder { exec python3 -c "import fcntl, signal
node = open('/dev/rashpa/fpga$fpga', 'rb+', 0)
fcntl.flock(node, fcntl.LOCK_EX)
print('has it', flush=True)
signal.pause()"; }
claims=$!
read -r -u "${holder[0]}"
remu --buffer ring1 --fpga "$fpga" "${images[@]}" --images 1 >"$work/out" 2>&1
is "board-program-claimed: a board that a program has claimed" "$? $(grep -c \
	"fpga$fpga: process $claims (python3) has claimed it" "$work/out")" "1 1"
kill "$claims"
wait "$claims" 2>/dev/null

rashpactl buffer create ring2 64M >/dev/null
begin_both "one board, two buffers" ring1 "$fpga" ring2 "$fpga"
second=$(lspci -D -d 1234:5250 | sed -n '2s/ .*//p')
if [[ $second ]]; then
	rashpactl unbind "$second" >/dev/null 2>&1
	begin_both "one buffer, two boards" ring1 "$fpga" ring1 \
		"$(rashpactl --json bind "$second" | jq -r .number)"
	rashpactl unbind "$second"
else
	skip "one-buffer-two: one buffer, two boards" "fewer than two software FPGAs in this guest"
fi
rashpactl buffer remove ring2

# A board that goes blank: its counts are unknown, and not 2^64 - 1.
if selftests/lab/host fpga 0 honest >/dev/null 2>&1; then
	stream_on --policy overwrite
	wait_for 30 bytes_pass $(($(status .bytes) + 1500000))
	selftests/lab/host fpga 0 dead on >/dev/null
	wait "$remu"
	is "board-blank-remu: a board that goes blank: remu fails" $? 1
	grep -q "does not answer any more" "$work/remu.out"
	ok $? "board-blank-why: a board that goes blank: and says why"
	is "board-blank-no: a board that goes blank: there are no figures" "$(jq -c '[.images, .stacks, .bytes,
		.descriptors, .events, .overruns, .faults, .start_ticks, .stop_ticks, .seconds,
		.bytes_per_second] | unique' "$work/remu.json")" "[null]"
	selftests/lab/host fpga 0 dead off >/dev/null
	rashpactl fpga reset "fpga$fpga"
	ok $? "board-blank-back: a board that goes blank: it is back"
else
	skip "board-blank: a board that goes blank" "no way to reach the FPGA's control socket"
fi

# A board that does not obey: its bus mastering ends instead, and a reset repairs it.
state() { rashpactl --json list | jq -r ".devices[] | select(.node == \"fpga$fpga\").state"; }
if selftests/lab/host fpga 0 stuck on >/dev/null; then
	stream_on --policy overwrite
	wait_for 30 bytes_pass $(($(status .bytes) + 1500000))
	faults=$(status .faults)
	refused() { (($(status .faults) > faults)); }
	kill_remu
	ok $? "board-not-stop: a board that does not stop: the map goes all the same"
	is "board-not-stop-fpga: a board that does not stop: fpga$fpga is stuck" "$(state)" stuck
	is "board-not-stop-bus: a board that does not stop: its bus mastering is off" \
		$((16#$(setpci -s "$bdf" COMMAND) & 4)) 0
	# its later writes are refused and do not arrive
	wait_for 30 refused
	ok $? "board-not-stop-writes: a board that does not stop: its writes are refused"
	before=$(status .bytes)
	rashpactl buffer info ring1 >/dev/null
	is "board-not-stop-writes-no: a board that does not stop: it writes no more" "$(status .bytes)" "$before"
	rashpactl map make ring1 "fpga$fpga" >"$work/out" 2>&1
	holds "stuck-board-no: a stuck board gets no map" "$? == 1"
	grep -q "fpga$fpga.*reset" "$work/out"
	ok $? "message/reset: and the message says: reset it"
	selftests/lab/host fpga 0 stuck off >/dev/null
	rashpactl fpga reset "fpga$fpga"
	ok $? "reset: reset"
	is "after-reset-ready: after a reset it is ready" "$(state)" ready
	stream_and_receive --images 40
	wait "$romulu"
	ok $? "streams-again: and streams again"
	wait "$remu"
else
	skip "streams/board-not-stop: a board that does not stop" "no way to reach the FPGA's control socket"
fi
rashpactl buffer remove ring1
ok $? "buffer-removed-nobody: the buffer can be removed: no process holds it"
finish
