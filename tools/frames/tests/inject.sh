#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=20
# Runs inside the lab's root: rashpa-inject and rashpa-capture-check, each against scapy, which
# knows neither of them, and then against each other: each fault of the one is named by the other,
# and nothing else. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/sanitized.sh
. selftests/lib/sanitized.sh
tools=${RASHPA_TOOLS:-build/tools}

inject() { # OPTION...: a file
	"$tools/rashpa-inject" --write "$work/file" --source 10.0.0.1 --destination 10.0.0.2 \
		--queue-pair 0x11 "$@"
}

# check OPTION...: the status; out has lines of text, json the rest
check() {
	"$tools/rashpa-capture-check" --json="$work/json" --faults 0 "$@" >"$work/out" 2>"$work/err"
}

# "FRAME:KIND FRAME:KIND ..." of the last check
named() { jq -r '[.faults[] | "\(.frame):\(.kind)"] | join(" ")' "$work/json"; }

oracle() { python3 -B tools/frames/tests/oracle.py "$@" 2>"$work/oracle.err" || { cat "$work/oracle.err"; false; }; }

# --- the frames of rashpa-inject are those that scapy makes
for transport in uc rc; do
	for size in 0 1 1000 4000 4096; do
		region=$((size * 3))
		inject --transport "$transport" --size "$size" --messages 7 --first-psn 0xfffff8 \
			--rkey 0x99 --address 0x1000 --immediate 0xfffffffe \
			--region "$region" --json="$work/report" >"$work/out" 2>"$work/err"
		good "scapy-same-frames/$transport/$size: scapy makes the same frames: $transport, messages of $size bytes" \
			oracle compare "$work/file" "$work/report"
	done
done
inject --payload tools/frames/tests/oracle.py --size 5000 --messages 2 >"$work/out"
good "payload-file-begins: the payload is that of the file, which begins again where it ends" python3 -B - "$work/file" <<'END'
import sys
from scapy.contrib.roce import BTH
from scapy.utils import rdpcap
want, got = open("tools/frames/tests/oracle.py", "rb").read(), b""
for f in rdpcap(sys.argv[1]):
    b = f[BTH]
    skip = {6: 16, 9: 4}.get(b.opcode & 31, 0)
    body = bytes(b.payload)[skip:]
    got += body[:len(body) - b.padcount]
assert len(want) < 10000 == len(got) and (want * 2)[:10000] == got
END

# --- frames of scapy: what rashpa-capture-check says of them
while read -r kind status faults; do
	oracle make "$kind" "$work/scapy.pcap"
	check "$work/scapy.pcap"
	is "scapy-frames/$kind: scapy's frames, $kind: $faults" "$? $(named)" "$status ${faults#none}"
done <<'END'
uc 0 none
rc 0 none
send 0 none
read 0 none
two 0 none
vlan 0 none
cooked 0 none
raw 0 none
ipv6 0 none
changed 0 none
wrong-icrc 4 3:icrc
wrong-psn 4 7:psn
goes-back 4 13:psn-back
fragments 4 1:fragment
version 4 1:header
pkey 4 1:header
udp 0 none
udp-ipv6 0 none
udp-wrong 4 4:checksum
unknown 4 1:opcode
nothing 1 none
END
oracle make uc "$work/scapy.pcapng"
check "$work/scapy.pcapng"
is "pcapng-read-well: pcapng is read as well" "$? $(jq -r '.queue_pairs[0] | "\(.packets) \(.messages) \(.bytes) \(.path_mtu)"' "$work/json")" \
	"0 16 10 9229 1024"
oracle make cut "$work/scapy.pcap"
check "$work/scapy.pcap"
is "frames-not-whole: truncated frames in the capture are reported as without ICRC, not as faults" \
	"$? $(jq .icrc_unknown "$work/json") $(grep -c "13 frames are not whole in the capture" "$work/err")" "0 13 1"

# --- each fault of the injector, and what follows from it
# 20 messages of 4 packets; the numbers go through 0 on their way
stream=(--messages 20 --size 4000 --first-psn 0xffffec --immediate 0xfffffffc)
while read -r fault faults; do
	inject "${stream[@]}" --fault "$fault" --json="$work/report" >"$work/out"
	check --queue-pair 0x11:0xffffec --path-mtu 1024 --mtu 1100 "$work/file"
	is "inject/fault: $fault: $faults" "$? $(named)" "$((4 * !!${#faults})) $faults"
done <<'END'
icrc@6 6:icrc
icrc@6:0x80000000 6:icrc
icrc@1 1:icrc
icrc@80:zero 80:icrc
icrc@21:swapped 21:icrc
psn@6 6:psn
psn@6:0xffffec 6:psn
psn@6:0xfffff2 6:psn
psn@1 1:psn
psn@21 21:psn
opcode@5 5:opcode
opcode@6 6:opcode
opcode@8 8:opcode
opcode@6:31 6:opcode
drop@6 6:psn-gap
drop@8 8:psn-gap 11:immediate-gap
drop@1 1:psn
duplicate@6 7:psn-duplicate
duplicate@20 21:psn-duplicate
reorder@6 7:psn-order
reorder@20 21:psn-order
reorder@8:3 8:psn-gap 11:psn-order
df@6 6:df
mtu@6 6:mtu
mtu@8 8:mtu
mtu@8:40 8:mtu 8:mtu
qp@6 6:queue-pair 7:psn-gap
short@6 6:short 7:psn-gap
short@6:200 6:short 7:psn-gap
short@6:37 6:short 7:psn-gap
short@6:20 6:short 7:psn-gap
length@5 8:length
length@5:0 8:length
port@6 6:port
immediate@8 8:immediate
immediate@16:0 16:immediate
checksum@3 3:checksum
udp-checksum@3 3:checksum
udp-checksum@3:0
END

# --- the two faults that a real FPGA had: one line each
ip="10.0.0.1 > 10.0.0.2 queue pair 0x000011"
inject --messages 3 --first-psn 0x22 >"$work/out"
check --queue-pair 0x11:0x11 "$work/file"
is "fpga-begins-another: an FPGA that begins with another PSN: one line" "$(head -n -2 "$work/out")" \
	"frame 1: $ip: wrong first PSN: expected 0x000011, got 0x000022"
inject --messages 3 --fault icrc@4:swapped >"$work/out"
check "$work/file"
is "fpga-wrong-icrc: an FPGA with a wrong ICRC: one line, and why" "$(head -n -2 "$work/out" | sed -E 's/0x[0-9a-f]{8}/N/g')" \
	"frame 4: $ip: wrong ICRC: expected N, got N: its bytes are in the wrong order"
is "counts-queue-pair: it counts by queue pair, and in all" "$(tail -n 2 "$work/out")" \
	"$ip: UC, 12 packets, 3 messages, 12288 bytes, PSN 0x000000 to 0x00000b, path MTU 1024: 1 fault (icrc 1)
12 frames, 12 of RoCE v2: 1 fault"

# --- report of sent frames
inject --messages 3 --fault drop@2 --fault duplicate@3 --fault reorder@5:2 --fault icrc@9 --json="$work/report" >"$work/out"
is "report-frame-fault: the report says which frame has which fault" \
	"$(jq -r '"\(.packets) \(.frames) \(.next_psn)", (.faults[] | "\(.kind) \(.packet) \(.frame)")' "$work/report" | paste -sd,)" \
	"12 12 12,drop 2 null,duplicate 3 3,reorder 5 7,icrc 9 9"
inject --messages 25 --rate 1000 --json="$work/report" >"$work/out"
is "frames-file-pace: frames of a file are at their pace" "$(jq '.seconds * 1e6 | round' "$work/report")" 99000
inject --messages 25 --size 1000 --rate 8Mbit --json="$work/report" >"$work/out"
# 1078 bytes and 24 on the cable
is "bits-second: also in bits a second" "$(jq '.seconds * 1e6 | round' "$work/report")" $((1102 * 24))
inject --messages 3 --no-immediate >"$work/out"
check "$work/file"
is "messages-without-immediate: messages without immediate" "$? $(named)" "0 "
inject --messages 200 --no-immediate --fault psn@6 --fault icrc@7 >"$work/out"
"$tools/rashpa-capture-check" --faults 1 "$work/file" >"$work/out"
is "faults-named: --faults says how many are named" "$(grep -c ^frame "$work/out") $(grep -c "^1 more" "$work/out")" "1 1"
inject --messages 300 --size 0 >"$work/out"
"$tools/rashpa-capture-check" --frames 7 "$work/file" >"$work/out"
is "frames-ends-earlier: --frames ends earlier" "$(tail -n 1 "$work/out")" "7 frames, 7 of RoCE v2: 0 faults"
# each message has 5 as its immediate
for ((i = 0; i < 3; i++)); do
	inject --size 0 --first-psn "$i" --immediate 5 >"$work/out"
	mv "$work/file" "$work/part$i"
done
python3 -c 'import sys
parts = [open(name, "rb").read() for name in sys.argv[2:]]
open(sys.argv[1], "wb").write(parts[0] + b"".join(p[24:] for p in parts[1:]))' "$work/file" "$work"/part?
check "$work/file"
is "one-immediate-all: one immediate for all" "$? $(named)" "4 2:immediate-duplicate 3:immediate-duplicate"
check --no-immediate "$work/file"
is "no-immediate-allows: which --no-immediate allows" "$? $(named)" "0 "

# --- wrong usage, and files of other formats
ends() { # STATUS PATTERN COMMAND...
	local want=$1 pattern=$2 status=0
	shift 2
	"$tools/$1" "${@:2}" >"$work/out" 2>&1 || status=$?
	((status == want)) && grep -q -- "$pattern" "$work/out"
	ok $? "refused: $*" || { echo "# status $status"; sed 's/^/# /' "$work/out"; }
}
to=(--write "$work/file" --source 10.0.0.1 --destination 10.0.0.2 --queue-pair 1)
ends 2 "use --interface NAME, or --write" rashpa-inject --destination 10.0.0.2 --queue-pair 1
ends 2 "use --destination" rashpa-inject --write "$work/file" --queue-pair 1
ends 2 "requires --source" rashpa-inject --write "$work/file" --destination 10.0.0.2 --queue-pair 1
ends 2 "not a number from 0 to 16777215" rashpa-inject "${to[@]}" --queue-pair 0x1000000
ends 2 "1500.*power of two from 256" rashpa-inject "${to[@]}" --path-mtu 1500
ends 2 "there are only 4 frames" rashpa-inject "${to[@]}" --fault icrc@5
ends 2 "fewer than 2 frames follow" rashpa-inject "${to[@]}" --fault reorder@3:2
ends 2 "no RETH: use the first one" rashpa-inject "${to[@]}" --fault length@2
ends 2 "this frame has none: use the last" rashpa-inject "${to[@]}" --fault immediate@2
ends 2 "there is no such fault: use one of icrc" rashpa-inject "${to[@]}" --fault crc@1
ends 2 "frame is missing.*icrc@N" rashpa-inject "${to[@]}" --fault icrc
ends 2 "is not a number from 1 on" rashpa-inject "${to[@]}" --fault icrc@0
ends 2 "drop has no value" rashpa-inject "${to[@]}" --fault drop@1:2
ends 2 "zero or swapped" rashpa-inject "${to[@]}" --fault icrc@1:none
ends 2 "is not frames a second" rashpa-inject "${to[@]}" --rate 1G
ends 2 "neither uc nor rc" rashpa-inject "${to[@]}" --transport ud
ends 2 "have no room for a message" rashpa-inject "${to[@]}" --region 4095
ends 2 "0 needs --interface" rashpa-inject "${to[@]}" --messages 0
ends 1 "No such file" rashpa-inject "${to[@]}" --payload "$work/none"
ends 1 "it is empty" rashpa-inject "${to[@]}" --payload /dev/null
ends 1 "No such file" rashpa-inject "${to[@]}" --write "$work/none/file"
ends 1 "cannot write /dev/full" rashpa-inject "${to[@]}" --write /dev/full
ends 1 "there is no such interface" rashpa-inject "${to[@]:2}" --interface none0
ends 2 "use a file, or --interface" rashpa-capture-check
ends 2 "does not apply to a file" rashpa-capture-check --seconds 1 "$work/file"
ends 2 "PSN: \"x\" is not a number" rashpa-capture-check --queue-pair 1:x "$work/file"
ends 1 "No such file" rashpa-capture-check "$work/none"
ends 1 "give a file of tcpdump" rashpa-capture-check tools/frames/tests/inject.sh
inject >"$work/out"
truncate -s -10 "$work/file"
ends 1 "after frame 3.*truncated" rashpa-capture-check "$work/file"
finish
