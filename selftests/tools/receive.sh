#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check iommu=any seconds=30
# A receiver under faults: headers and lock records that remu would not write, full files, and streams
# that end too early or are replaced.
. "$(dirname "$0")/../lib/shell.sh"

have_fpga || { skip "receive: receive" "no software FPGA in this guest"; finish; }
image=$((1024 * 512 * 2)) # bytes
rashpactl buffer create ring3 64M >/dev/null
ok $? "buffer: buffer"
mkfifo "$work/fifo"
mkdir "$work/small"

# start DATASET OPTION...: stacks of one image, by one process
start() {
	local dataset=$1
	shift
	remu --buffer ring3 --fpga "$fpga" --dataset "$dataset" --split 1 --bunch 1 --timeout 60 \
		"$@" >"$work/remu.out" 2>&1 &
	remu=$!
}
produce() { # DATASET OPTION...: to the end
	start "$@"
	wait "$remu"
}
stop() { kill "$remu" && wait "$remu"; }
attach() { # more arguments of romulu
	romulu --buffer ring3 --timeout 60 --json="$work/romulu.json" "$@" >"$work/romulu.out" 2>&1 &
	romulu=$!
}
# Its exit status; one that does not end is killed.
ended() {
	wait_for 30 gone "$romulu" || kill -9 "$romulu"
	wait "$romulu"
}
receive() { # more arguments of romulu
	attach "$@"
	ended
}
get() { jq ".$1" "$work/romulu.json"; }
says() { grep -q "$1" "$work/romulu.out" || { sed 's/^/# /' "$work/romulu.out"; false; }; }
# poke OFFSET VALUE: a word of 64 bits of the buffer
poke() {
	python3 - "$@" <<-'P'
		import mmap, os, sys
		fd = os.open("/dev/rashpa/buffer/ring3", os.O_RDWR)
		offset, value = int(sys.argv[1]), int(sys.argv[2])
		mmap.mmap(fd, 20480)[offset:offset + 8] = value.to_bytes(8, "little")
	P
}
image_stride=88 lock_stacks=$((16384 + 56)) # offsets in the buffer
now() { python3 -c 'import time; print(time.monotonic_ns())'; }
waits() { [[ $(status '.dtps[0].waiting') == true ]]; }
sent() { (($(status '.dtps[0].images') >= $1)); }
into_pipe() { # more arguments of romulu; the pipe is open when this returns
	attach --write "$work/fifo" "$@"
	exec {pipe}<"$work/fifo"
}

# --- a stride out of range, images that are not packed: only the slot is accessed
produce generate:4 --slots 4 --images 4
poke $image_stride $((1 << 40))
receive --check --dataset generate:4
ok $? "stride-no-second: a stride to no second image leads out of the buffer: nothing is there to touch"
is "all-images-right: and all images are right" "$(get frames)" 4
produce generate:4 --slots 4 --images 4
poke $image_stride $((image + 4096))
receive --check --dataset generate:4
ok $? "pattern-one-slot: a pattern in one slot does not reach the next one"
is "pattern/all-images-right: where all images are right" "$(get frames) $(get corrupt)" "4 0"

# --- images of another dataset: said at once, and not as frames that are corrupt
produce generate:4:1 --slots 4 --images 4
receive --check --dataset generate:4:2
is "another-dataset/failure: another dataset: a failure" $? 1
says "shows other images than those of the dataset generate:4:2"
ok $? "explained: the message gives the reason"
receive --check --dataset generate:5:1
ok $? "same-images-dataset: more of the same images are the dataset"

# --- another run begins while the last stack of one is on its way to a file
produce generate:1:1 --slots 2 --images 2
into_pipe
head -c $((image + 1)) <&"$pipe" >"$work/got" # and no more: the pipe is full
produce generate:1:2 --slots 2 --images 2
ok $? "another-run-last: another run, while the last stack is written"
cat <&"$pipe" >>"$work/got"
exec {pipe}<&-
ended
ok $? "copied-before-good: data copied before are a good stack"
is "whole: it is whole" "$(stat -c %s "$work/got")" $((2 * image))
cmp <(head -c $image "$work/got") <(tail -c $image "$work/got") | sed 's/^/# /'
is "first-run: and of the first run" "${PIPESTATUS[0]}" 0

# --- a file that takes nothing: the stack is not given back, until it has been taken whole
produce generate:2 --slots 2 --images 2
into_pipe
head -c 1 <&"$pipe" >/dev/null
kill -TERM "$romulu"
ended
is "receiver-interrupted-nobody: a receiver can be interrupted while its output is not read" \
	"$? $(get interrupted) $(get frames)" "0 true 0"
exec {pipe}<&-
into_pipe --timeout 0.1
head -c 1 <&"$pipe" >/dev/null
ended
is "gives-time: and gives up when the time is over" $? 3
exec {pipe}<&-
mount -t tmpfs -o size=$((image * 3 / 2)) none "$work/small"
receive --write "$work/small/out"
is "full-file-system/failure: a full file system: a failure" $? 1
says "No space left"
ok $? "full/explained: the message gives the reason"
is "stack-file-whole: a stack in its file is a whole one" "$(stat -c %s "$work/small/out")" $image
mount -o remount,size=$((image * 4)) "$work/small"
receive --write "$work/small/out"
ok $? "next-receiver-behind: the next receiver appends to it"
receive --tune from-start --write "$work/all"
ok $? "all-paced-stream: all of a paced stream that has ended is still there"
cmp "$work/all" "$work/small/out" | sed 's/^/# /'
is "same: and the same" "${PIPESTATUS[0]}" 0
umount "$work/small"

# --- the time of a report lasts until the last stack was taken, and not until the last wait
start generate:1 --rate 20
into_pipe --images 12
head -c $((11 * image + 1)) <&"$pipe" >/dev/null # of these, some were waited for
begin=$(now)
wait_for 30 sent $(($(status '.dtps[0].images') + 20))
end=$(now)
cat <&"$pipe" >/dev/null
exec {pipe}<&-
ended
stop
if (($(get lost))); then
	skip "slow-file-time: a slow file is in the time" "this machine is slower than 20 images a second"
else
	holds "slow/slow-file-time: a slow file is in the time" "$(get 'seconds * 1e9 | floor') >= $end - $begin"
fi

# --- a file does not keep a receiver from giving up when no stack comes
start generate:1 --rate 0.02
receive --write "$work/seldom" --timeout 1
is "nothing-file-written: nothing comes while a file is written to: the time is over" $? 3
says "no stack arrived for 1 s after 1 frames"
ok $? "nothing/explained: the message gives the reason"
stop

# --- a lock record that cannot be
start generate:1 --slots 2
wait_for 30 waits
poke $lock_stacks $((1 << 62))
receive
is "bad-lock-record/failure: a bad lock record: a failure" $? 1
says "4611686018427387904 complete stacks, which is impossible"
ok $? "bad/explained: the message gives the reason"
stop

# --- a producer that ends before all images came
start generate:1 --slots 2
wait_for 30 waits
attach --images 100000
wait_for 30 sent 10
stop
ended
is "fewer-images-asked: fewer images than requested: a failure" $? 1
says "after .* of 100000 images"
ok $? "fewer/explained: the message gives the reason"

# --- the function is stopped while complete stacks have not been taken yet
start generate:4 --slots 4 --images 400
wait_for 30 waits
into_pipe
head -c 1 <&"$pipe" >/dev/null # it has the first one, and its event channel
rashpactl fpga quiesce "fpga$fpga" >/dev/null
ok $? "function-stopped: the function is stopped"
wait "$remu"
is "remu-fails: remu fails" $? 1
cat <&"$pipe" >"$work/rest"
exec {pipe}<&-
ended
is "stream-stopped-failure: a stream that was stopped: a failure" $? 1
says "after 4 of 400 images"
ok $? "stream/explained: the message gives the reason"
is "complete-taken-first: but complete stacks are taken first" "$(get frames) $(stat -c %s "$work/rest")" \
	"4 $((4 * image - 1))"

# --- one consumer of a stream
start generate:1 --slots 2
attach --check --dataset generate:1
wait_for 30 sent 10
is "buffer-info-names: buffer info names both" "$(rashpactl --json buffer info ring3 | jq -c '[.producer.pid, .consumer.pid]')" \
	"[$remu,$romulu]"
is "words: in words, too" "$(rashpactl buffer info ring3 |
	grep -cE "^(producer +process $remu|consumer +process $romulu) of root$")" 2
romulu --buffer ring3 --timeout 1 >"$work/second" 2>&1
is "second-consumer/failure: a second consumer: a failure" $? 1
grep -q "ring3 has a consumer: process $romulu " "$work/second"
ok $? "names-first-one: the message names the first one" || sed 's/^/# /' "$work/second"
stop
ended
ok $? "lost-nothing: which has lost nothing"

# --- a profile without a window of doorbells: a BAR is not guessed at
rashpactl unbind "$bdf"
jq 'del(.engines) | .windows |= map(select(.name | startswith("doorbell") | not))' \
	tools/data/profiles/rashpa-fpga.json >"$work/silent.json"
fpga=$(rashpactl --json bind --profile "$work/silent.json" "$bdf" | jq -r .number)
[[ $fpga == [0-9]* ]]
ok $? "bound-without-doorbells: bound by a profile without doorbells"
start generate:2 --slots 2 --images 20
wait_for 30 waits
receive --check --dataset generate:2
is "no-doorbells/fails: a consumer that has to give credit fails" $? 1
says "fpga$fpga: no doorbells: "
ok $? "no/explained: the message gives the reason"
stop
have_fpga

rashpactl buffer remove ring3
ok $? "buffer-removed-nobody: the buffer can be removed: no process holds it"
finish
