#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=off seconds=30
# A board that knows nothing of streams, QEMU's edu, and what the tools say about it.
. "$(dirname "$0")/../lib/shell.sh"

export PYTHONPATH=$PWD/build/tools/python PYTHONDONTWRITEBYTECODE=1 RASHPA_LIBRARY=$PWD/build/tools/librashpa.so.0

# --- a device that keeps its driver fills slots: a disk
modprobe -q nvme
disk=/dev/nvme0n1
wait_for 10 test -b "$disk" >/dev/null
if [[ -b $disk ]]; then
	python3 -c 'import sys
for i in range(20): sys.stdout.buffer.write(bytes([i, 0]) * 4096)' >"$work/frames"
	dd if="$work/frames" of="$disk" bs=8K oflag=direct status=none
	rashpactl buffer create vendor 1M --backend contig >/dev/null
	timeout $((60 * ${RASHPA_SLOW:-1})) build/tools/examples/consumer vendor >"$work/means" 2>"$work/err" &
	consumer=$!
	good "vendor/streams: a program reads from its device into the slots" \
		python3 tools/examples/vendor.py vendor "$disk" 20
	wait "$consumer"
	seq 0 19 | sed 's/.*/& &.000/' | cmp - "$work/means" 2>&1 | sed 's/^/# /'
	is "vendor/frames: each frame came once, with its pixels" "${PIPESTATUS[1]}" 0
	rashpactl buffer remove vendor
else
	skip "vendor/streams: a device that keeps its driver" "no disk in this guest (lab run --disk 64M)"
fi

bdf=$(lspci -D -d 1234:11e8 | tail -n 1 | cut -d' ' -f1)
if [[ ! $bdf ]]; then
	skip "edu: a board without the reference interface" "no edu in this guest (lab run --device edu)"
	finish
fi

# profile BITS VALUE: its last step waits until the command register has this value
profile() {
	cat >"$work/edu.json" <<-END
	{ "name": "edu", "match": [{ "vendor": "0x1234", "device": "0x11e8" }], "dma_bits": $1,
	  "windows": [
	    { "name": "registers", "bar": 0, "offset": 0, "length": "4K" },
	    { "name": "doorbells", "bar": 0, "offset": "0x1000", "length": "4K", "user": true } ],
	  "quiesce": [
	    { "write": { "bar": 0, "offset": "0x4", "value": 7 } },
	    { "wait": { "bar": 0, "offset": "0x98", "mask": 1, "value": $2, "timeout_ms": 200 } } ] }
	END
}

said() { # WORD...: all are in the sentence
	local word
	for word; do
		grep -q -- "$word" "$work/err" || { sed 's/^/# /' "$work/err"; echo "# without \"$word\""; return 1; }
	done
}

# --- a quiesce sequence that does not stop the board
profile 28 1
rashpactl bind --profile "$work/edu.json" "$bdf" >"$work/out" 2>"$work/err"
is "unfit/fails: bind fails" $? 1
said "step 1" "0x98" "waits for 0x1 " "reads 0x0"
ok $? "unfit/sentence: it names the step, the register, the values wanted and read"
number=$(rashpactl --json list | jq -r ".devices[] | select(.bdf == \"$bdf\").node")
is "unfit/bound: the board stays bound" "${number%%[0-9]*}" fpga
is "unfit/register: its registers can be read" "$(rashpactl fpga read "$number" 0:0)" 0x010000ed
rashpactl buffer create edu 64K --for "$number" >/dev/null
rashpactl map make edu "$number" >"$work/out" 2>"$work/err"
is "unfit/no-map: it gets no map" $? 1
rashpactl bind --exist-ok --profile "$work/edu.json" "$bdf" >"$work/out" 2>"$work/err"
is "unfit/again: the same profile fails again" $? 1
profile 28 0
good "unfit/corrected: a corrected profile is applied" rashpactl bind --profile "$work/edu.json" "$bdf"
rashpactl bind --profile "$work/edu.json" "$bdf" >"$work/out" 2>"$work/err"
is "unfit/once: a profile in force is not replaced" $? 1
good "unfit/map: then it gets a map" rashpactl map make edu "$number"

# --- it is validated: its DMA is not timed, since it does not start with its addresses
rashpa-bench validate --name "edu of QEMU" --out "$work/card" "$number" >"$work/line" 2>"$work/err"
is "validate/passes: the board test passes" $? 0 || sed 's/^/# /' "$work/line" "$work/err"
is "validate/missing: it names what was not measured, and why" \
	"$(jq -c '[.missing[] | test("reference interface")]' "$work/card/validation.json")" "[true,true]"
grep -qxF "$(head -n 1 "$work/line")" README.md
ok $? "validate/status: README.md has its line" || sed 's/^/# /' "$work/line"

# --- a stream of a program, for a consumer that wants to compare
build/tools/examples/edu edu "$number" 2 >/dev/null 2>"$work/producer" &
producer=$!
romulu --buffer edu --check --timeout 20 >"$work/out" 2>"$work/err"
is "foreign/check: romulu --check fails" $? 1
said "dataset" "leave out --check"
ok $? "foreign/sentence: it names the option to leave out"
kill "$producer" 2>/dev/null
wait "$producer"
rashpactl buffer remove edu
rashpactl unbind "$bdf"

# --- memory above the board's reach
profile 24 0
good "reach/binds: a board of 24 bits" rashpactl bind --profile "$work/edu.json" "$bdf"
rashpactl buffer create edu 32M >/dev/null
rashpactl map make edu "$number" >"$work/out" 2>"$work/err"
is "reach/refused: 32 MiB are not mapped for it" $? 1
said "24 bits" "--for" "dma_bits"
ok $? "reach/remedy: the sentence has its bits, and both remedies"
rashpactl buffer remove edu
finish
