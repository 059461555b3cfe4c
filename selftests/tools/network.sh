#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check iommu=off seconds=40
# Streams over RoCE v2: remu in one network namespace, romulu in another, soft-RoCE between them;
# packets are dropped by their number, so that it is known which messages are missing.
. "$(dirname "$0")/../lib/shell.sh"
. "$(dirname "$0")/../lib/rxe-pair.sh"
. "$(dirname "$0")/../lib/rxe-stream.sh"

if ! rxe_pair >"$work/err" 2>&1; then
	skip "network" "$(tr '\n' ' ' <"$work/err")"
	finish
fi
ok 0 "soft-RoCE in two namespaces"
rashpactl buffer create --backend contig net0 64M >/dev/null
ok $? "buffer"

receive
send --split 4 --images 40
ok $? "remu sends" || sed 's/^/# /' "$work/err"
received 0
is "all of it" "$(romulu_says '[.frames, .corrupt, .lost, .incomplete, .network.received_messages,
	.network.missing_messages, ([.network.flows[].received_again] | add)]')" "[40,0,0,0,10240,0,0]"
is "both say the same" "$(remu_says '.receivers[0] | [.images, .messages, .missing_messages]')" \
	"[40,10240,0]"

# --- RDMA: the last byte of the packet's number
dropping 39 match ip dport 4791 0xffff
receive
send --split 4 --images 40
ok $? "remu sends" || sed 's/^/# /' "$work/err"
received 4
lost=$(dropped)
heal
holds "packets were dropped ($lost)" "$lost > 40"
is "as many messages are missing, and nothing wrong is called right" \
	"$(romulu_says '[.network.received_messages, .network.missing_messages, .corrupt, .frames]')" \
	"[$((10240 - lost)),$lost,0,40]"
holds "frames are incomplete ($(romulu_says .incomplete)), lines are missing ($(romulu_says .missing_lines))" \
	"$(romulu_says .incomplete) > 0 && $(romulu_says .missing_lines) == 2 * $lost"

# --- UDP; the kernel cuts before the line that loses packets
at a ip link set va gso_max_segs 1
receive --transport udp
send --transport udp --split 4 --images 16
ok $? "remu sends by UDP" || sed 's/^/# /' "$work/err"
received 0
messages=$(romulu_says .network.received_messages)
is "all of it" "$(romulu_says '[.frames, .corrupt, .lost, .incomplete, .network.missing_messages,
	.network.strange_packets]')" "[16,0,0,0,0,0]"
is "both say the same" "$(remu_says '.receivers[0] | [.images, .messages, .missing_messages]')" \
	"[16,$messages,0]"
# the number's first byte, behind 28 bytes of headers
dropping 40 match u32 0x52535553 0xffffffff at 28
receive --transport udp
send --transport udp --split 4 --images 16
ok $? "remu sends by UDP" || sed 's/^/# /' "$work/err"
received 4
lost=$(dropped)
heal
is "as many messages are missing as packets were dropped, and nothing wrong is called right" \
	"$(romulu_says '[.network.received_messages, .network.missing_messages, .corrupt, .frames]')" \
	"[$((messages - lost)),$lost,0,16]"
holds "frames are incomplete ($(romulu_says .incomplete))" "$lost > 40 && $(romulu_says .incomplete) > 0"

# --- packets that come twice, and behind later ones
at a tc qdisc add dev va root netem delay 5ms reorder 75% duplicate 5%
receive --transport udp --close-after 8
send --transport udp --split 2 --images 16
ok $? "remu sends by UDP" || sed 's/^/# /' "$work/err"
received 0
at a tc qdisc del dev va root
is "each message counts once, and nothing is missing" \
	"$(romulu_says '[.frames, .corrupt, .incomplete, .network.missing_messages,
	.network.received_messages - ([.network.flows[].duplicate] | add)]')" \
	"[16,0,0,0,$(remu_says .receivers[0].messages)]"
holds "there were such packets" "$(romulu_says '[.network.flows[].duplicate] | add') > 0 &&
	$(romulu_says '[.network.flows[].reordered] | add') > 0"

# --- JUNGFRAU: two modules, which ask for nothing
rm -f "$work/romulu0.json"
head -c 8M /dev/urandom >"$work/modules.raw"
ip netns exec b romulu --buffer net0 --transport jungfrau --listen 10.1.0.2:5001 --modules 1x2 --images 16 --settle 10000 \
	--dataset "$work/modules.raw" --geometry 1024x1024,u16 --timeout 30 --json="$work/romulu0.json" \
	>"$work/out0" 2>&1 &
receiver[0]=$!
wait_for 20 grep -qsi ":138A " "/proc/${receiver[0]}/net/udp"
at a remu --transport jungfrau --to 10.1.0.2:5001 --dataset "$work/modules.raw" --geometry 1024x1024,u16 \
	--split 2 --images 16 --rate 20 --bunch 8 --json="$work/remu.json" >"$work/err" 2>&1
ok $? "remu sends as a JUNGFRAU" || sed 's/^/# /' "$work/err"
received 0
is "all of it" "$(romulu_says '[.frames, .corrupt, .lost, .incomplete, .network.received_messages,
	.network.missing_messages, .network.first_frame]')" "[16,0,0,0,4096,0,1]" ||
	romulu_says .network | sed 's/^/# /'
rm -f "$work/romulu0.json"
ip netns exec b romulu --buffer net0 --transport jungfrau --listen 10.1.0.2:5001 --modules 1x2 --images 16 \
	--receive-only --idle 20 --timeout 30 --json="$work/romulu0.json" >"$work/out0" 2>&1 &
receiver[0]=$!
RASHPA_LIBRARY=$PWD/build/tools/librashpa.so.0 python3 -B - "$work/opened" <<'P' >"$work/python" 2>&1 &
import sys
sys.path.insert(0, "tools/python")
import rashpa
with rashpa.Stream("net0", timeout=30) as stream:
    open(sys.argv[1], "w").close()
    for stack in stream:
        with stack:
            t = stack.table
            print(t["frame"][0], *t["trigger"], bool((t["time"] > 0).all()), *t["wrong"])
P
python=$!
wait_for 30 test -e "$work/opened"
wait_for 20 grep -qsi ":138A " "/proc/${receiver[0]}/net/udp"
at a remu --transport jungfrau --to 10.1.0.2:5001 --dataset "$work/modules.raw" --geometry 1024x1024,u16 \
	--split 2 --images 16 --rate 20 --bunch 8 >"$work/err" 2>&1
wait "${receiver[0]}" "$python"
is "images have the detector's own numbers, and times" "$(xargs <"$work/python")" \
	"0 1 2 3 4 5 6 7 8 True 0 0 0 0 0 0 0 0 8 9 10 11 12 13 14 15 16 True 0 0 0 0 0 0 0 0" ||
	sed "s/^/# /" "$work/out0" "$work/err"
# --- memory that soft-RoCE cannot have
rashpactl buffer create --backend contig net1 64M >/dev/null
receive --payload net1
send --split 1 --images 4
is "remu hears that the receiver ends" $? 1
received 1
grep -q "net1: rxb takes no dma-buf.*use a contig buffer" "$work/out0"
ok $? "memory by dma-buf is refused with the reason" || sed 's/^/# /' "$work/out0"
rashpactl buffer remove net1
ok $? "nobody holds it"
rashpactl buffer remove net0
ok $? "nobody holds the buffer"
finish
