#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check seconds=60
# Streams in files of shared memory, without the driver: remu --transport memory, romulu, the examples.
# Every frame is compared. Processes are killed. "make try" builds and runs in a plain copy of the
# sources, except in the tier "check", where it runs the tools that are built. RASHPA_TOOLS: folder of the
# tools. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../selftests/lib/shell.sh
. "$(dirname "$0")/../../selftests/lib/shell.sh"
tools=$PWD/${RASHPA_TOOLS:-build/tools}
memory=$(mktemp -d /dev/shm/rashpa-memory-XXXXXX)
trap 'rm -rf "$work" "$memory"' EXIT
export PATH=$tools:$PATH RASHPA_DEV=$memory/none PYTHONDONTWRITEBYTECODE=1 MPLCONFIGDIR=$work
export PYTHONPATH=$tools/python RASHPA_LIBRARY=$tools/librashpa.so.0 OPENBLAS_NUM_THREADS=1
ring=$memory/ring0
data=(--dataset generate:6 --geometry 256x128,u16)
patience=$((20 * ${RASHPA_SLOW:-1}))

# send OPTION...: in the background; its process is $sender
send() {
	remu --transport memory --buffer "$ring" "${data[@]}" --timeout "$patience" --json="$work/sent" "$@" >"$work/remu" 2>&1 &
	sender=$!
}
# receive OPTION...
receive() {
	romulu --buffer "$ring" --timeout "$patience" --json="$work/received" "$@" >"$work/romulu" 2>&1
}
said() { sed 's/^/# /' "$work/remu" "$work/romulu"; }
# The running stream is that of this sender, not of one before.
runs() { [[ -e $ring ]] && rashpactl top --count 1 --interval 0.01 --json "$ring" 2>/dev/null | grep -q '"state":"\(running\|waiting\|full\)"'; }

# --- every frame

# compared ID STATUSES FILTER OPTION...: remu sends with these options; what romulu compared, as the filter has it
compared() {
	local id=$1 filter=$3 status
	rm -f "$ring"
	send "${@:4}"
	wait_for 60 test -e "$ring"
	receive --check "${data[@]}" --tune from-start
	status=$?
	[[ $status != ["$2"] ]] || status=good
	is "frames/$id: romulu compares every frame" "$status $(jq -c "$filter" "$work/received")" "good [192,0,0]" || said
	wait "$sender"
	is "sent/$id: and remu sent them" "$? $(jq -c '[.transport, .images]' "$work/sent")" '0 ["memory",192]' || said
}
compared wait 0 '[.frames, .lost, .corrupt]' --images 192
compared one-slot 0 '[.frames, .lost, .corrupt]' --images 192 --slots 1 --bunch 16
compared split 0 '[.frames, .lost, .corrupt]' --images 192 --split 4 --slots 3
compared regions 0 '[.frames, .lost, .corrupt]' --images 192 --dtp 0,0,128x128 --dtp 128,0,64x100@200,20
compared sampling 0 '[.frames, .lost, .corrupt]' --images 192 --tune sampling=5,2
# some may be lost, or left out: 4
compared rate 04 '[.frames + .lost, 0, .corrupt]' --images 192 --rate 4000
compared drop 04 '[.frames, .lost, .corrupt]' --images 192 --rate 4000 --policy drop --slots 2
compared free 04 '[.frames + .lost, 0, .corrupt]' --images 192 --policy overwrite

# full ID FILE: neither room for the slots of FILE, nor SIGBUS
full() {
	remu --transport memory --buffer "$2" "${data[@]}" --images 8 >"$work/out" 2>&1
	is "full/$1: memory that is not there is an error" "$? $(grep -c "no room" "$work/out")" "1 1" || sed 's/^/# /' "$work/out"
}
mkdir "$work/small" "$work/huge"
mount -t tmpfs -o size=1M none "$work/small"
full new "$work/small/ring0"
is "full-left: and leaves no file" "$(ls "$work/small")" ""
truncate -s 64M "$work/small/ring0"
full sparse "$work/small/ring0"
umount "$work/small"
if (($(</proc/sys/vm/nr_hugepages))) || ! mount -t hugetlbfs none "$work/huge"; then
	skip "full/huge: memory that is not there is an error" "there are huge pages, or none are possible"
else
	full huge "$work/huge/ring0"
	umount "$work/huge"
fi
remu --transport memory --buffer "$ring" "${data[@]}" --live --rate 10 >"$work/out" 2>&1
is "live: a live source is refused" "$? $(grep -c -- "--transport pcie" "$work/out")" "2 1"

# --- deaths

send --images 0 --slots 4
wait_for 60 test -e "$ring"
romulu --buffer "$ring" --timeout "$patience" --tune from-start --write "$work/first.raw" >"$work/romulu" 2>&1 &
first=$!
wait_for 60 test -s "$work/first.raw"
kill -9 "$first"
wait "$first" 2>/dev/null
receive --check "${data[@]}" --images 64
is "consumer-killed: remu goes on with the next receiver, which compares every frame" \
	"$? $(jq -c '[.frames, .lost, .corrupt]' "$work/received")" "0 [64,0,0]" || said
kill "$sender"
wait "$sender"
ok $? "stopped: a signal ends remu" || said

rm -f "$ring"
send --images 0 --slots 4
wait_for 60 test -e "$ring"
romulu --buffer "$ring" --timeout "$patience" --tune from-start --json="$work/killed" --check "${data[@]}" >"$work/romulu" 2>&1 &
receiver=$!
wait_for 60 runs
receive --check "${data[@]}"
is "second-consumer: a second consumer is refused, with the process of the first" \
	"$? $(grep -c "process $receiver" "$work/romulu")" "1 1" || said
remu --transport memory --buffer "$ring" "${data[@]}" --images 8 >"$work/out" 2>&1
is "second-producer: and so is a second producer" "$? $(grep -c "process $sender" "$work/out")" "1 1" || sed 's/^/# /' "$work/out"
kill -9 "$sender"
wait "$sender" 2>/dev/null
wait "$receiver"
is "producer-killed: romulu has all complete frames, and says that the producer is gone" \
	"$? $(jq -c '[.lost, .corrupt]' "$work/killed")" "1 [0,0]" || said
send --images 64
wait_for 60 runs
receive --check "${data[@]}" --tune from-start
is "next-producer: the next one takes the file" "$? $(jq .frames "$work/received")" "0 64" || said
wait "$sender"

rm -f "$ring"
send --images 0 --rate 100
wait_for 60 runs
romulu --buffer "$ring" --timeout "$patience" --write "$work/cut.raw" >"$work/romulu" 2>&1 &
receiver=$!
wait_for 60 test -s "$work/cut.raw"
truncate -s 4096 "$ring"
wait "$receiver"
is "cut: a file that is cut ends its consumer with a sentence" "$? $(grep -c "gone\|cut" "$work/romulu")" "1 1" || said
kill "$sender" 2>/dev/null
wait "$sender"
is "cut-producer: and its producer" $? 1 || said

# --- programs that know nothing of files

rm -f "$ring"
"$tools/examples/producer" "$ring" 400 &
wait_for 60 test -e "$ring"
"$tools/examples/consumer" "$ring" >"$work/means"
is "examples: producer and consumer in C" "$? $(tail -n 1 "$work/means") $(wc -l <"$work/means")" "0 399 399.000 400"
wait
rm "$ring"
send --images 640
wait_for 60 test -e "$ring"
timeout "$patience" python3 tools/examples/consumer.py "$ring" "$work/means.png" >"$work/out" 2>&1
is "python: the consumer in Python" "$? $(grep -c "images, 0 lost" "$work/out")" "0 1" || sed 's/^/# /' "$work/out"
wait "$sender"
send --images 0 --rate 200
wait_for 60 runs
ok $? "top: rashpactl top sees it run"
columns=$(rashpactl top --count 1 --interval 0.01 "$ring" | sed -En 's/^(BUFFER +)FPGA .*|^([^ ]+ +)- .*/\1\2/p' | awk '{ print length }')
is "top-columns: a row is below the heading, although the path is long" "${columns//$'\n'/ }" "$((${#ring} + 1)) $((${#ring} + 1))"
kill "$sender"
wait "$sender"

# --- over a network

rm -f "$ring"
port=$((20000 + $$ % 20000))
receive --listen "127.0.0.1:$port" --transport udp --slots 4 --check "${data[@]}" &
receiver=$!
network=(remu --transport udp --to "127.0.0.1:$port" "${data[@]}" --images 64 --timeout "$patience")
# refused until romulu listens
wait_for 60 "${network[@]}" >"$work/remu" 2>&1
wait "$receiver"
is "udp: romulu receives packets into a file" "$? $(jq -c '[.frames, .corrupt]' "$work/received")" "0 [64,0]" || said

# --- make try

is "try-needs: README lists the packages that it names" "$(python3 -c '
import sys
sys.path.insert(0, "selftests/demo")
import importlib
needs = set(importlib.import_module("try").NEEDS.values()) - {"gcc", "binutils"}  # of build-essential
print(*needs - set(open("README.md").read().split()))')" ""
run=("$PWD/selftests/demo/try.py" "$tools")
if [[ ${RASHPA_TIER-} != check ]]; then
	mkdir "$work/plain"
	cp -r Documentation LICENSES Makefile dkms.conf selftests tools uapi "$work/plain"
	run=(make -C "$work/plain" try)
fi
timeout 900 "${run[@]}" >"$work/out" 2>&1
is "try: make try shows frames that were written, processed and drawn" \
	"$? $(grep -c "200 frames, 0 lost\|48 frames, 0 lost\|frame.png" "$work/out")" "0 3" || sed 's/^/# /' "$work/out"
finish
