#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check where=guest kernel=any iommu=off seconds=55
# Streams over RoCE v2: remu in one network namespace, romulu in another, soft-RoCE between them;
# packets are dropped by their number, so that it is known which messages are missing.
# RASHPA_TIER=check: three streams. network-selftest checks the contract, and tails of all lengths.
. "$(dirname "$0")/../lib/shell.sh"
. "$(dirname "$0")/../lib/rxe-pair.sh"
. "$(dirname "$0")/../lib/rxe-stream.sh"

need_rxe_pair
ok 0 "pair: soft-RoCE in two namespaces"
rashpactl buffer create --backend contig net0 64M >/dev/null
ok $? "buffer: a buffer is made"
leave() {
	rashpactl buffer remove net0
	ok $? "buffer-free: no process holds the buffer"
	finish
}

part=rdma
receive
send --split 4 --images 16
sent $? "by RDMA"
received 0
is "rdma: all of it comes" "$(romulu_says '[.frames, .corrupt, .lost, .incomplete, .network.received_messages,
	.network.missing_messages, ([.network.flows[].received_again] | add)]')" "[16,0,0,0,4096,0,0]"
is "rdma-same: both have the same counts" "$(remu_says '.receivers[0] | [.images, .messages, .missing_messages]')" \
	"[16,4096,0]"

# --- RDMA: the last byte of the packet's number
part=rdma-loss
dropping 39 match ip dport 4791 0xffff
receive
send --split 4 --images 16
sent $? "on a line that loses packets"
received 4
lost=$(dropped)
heal
holds "rdma-loss-some: packets were dropped ($lost)" "$lost > 16"
is "rdma-loss: the number of missing messages is exact, and no wrong image counts as right" \
	"$(romulu_says '[.network.received_messages, .network.missing_messages, .corrupt, .frames]')" \
	"[$((4096 - lost)),$lost,0,16]"
holds "rdma-loss-lines: frames are incomplete ($(romulu_says .incomplete)), lines are missing ($(romulu_says .missing_lines))" \
	"$(romulu_says .incomplete) > 0 && $(romulu_says .missing_lines) == 2 * $lost"

# --- UDP, by a detector that does not wait: the last stack of two regions is lost, selected by the second
# byte of its messages' numbers
part=udp-tail
drop match u32 0x52535553 0xffffffff at 28 match u8 9 0xff at 41
receive --transport udp --tune settle=1000
send --transport udp --images 20 --bunch 2 --rate 50 --tune first-immediate=0 --dtp 0,0,1024x64 --dtp 0,64,1024x64
sent $? "by UDP, and the end is lost"
received 4
heal
adds_up 20
holds "udp-tail: its images are incomplete ($(romulu_says .incomplete)), lines are missing ($(romulu_says .missing_lines))" \
	"$(romulu_says .incomplete) >= 2 && $(romulu_says .missing_lines) >= 256"
[[ ${RASHPA_TIER-} != check ]] || leave

# --- UDP; the kernel cuts before the line that loses packets: by the number's first byte, after 28 bytes of
# headers
part=udp-loss
at a ip link set va gso_max_segs 1
dropping 40 match u32 0x52535553 0xffffffff at 28
receive --transport udp
send --transport udp --split 4 --images 16
sent $? "by UDP"
received 4
lost=$(dropped)
heal
adds_up 16
holds "udp-loss: no less is missing ($(romulu_says .network.missing_messages)) than was dropped ($lost), and frames are incomplete" \
	"$lost > 40 && $(romulu_says .network.missing_messages) >= $lost && $(romulu_says .incomplete) > 0"

# --- packets that come twice, and after later ones
part=udp-order
at a tc qdisc add dev va root netem delay 5ms reorder 75% duplicate 5%
receive --transport udp --tune close-after=8
send --transport udp --split 2 --images 16
sent $? "by UDP, in no order"
received 0/4
at a tc qdisc del dev va root
adds_up 16
holds "udp-order: there were such packets" "$(romulu_says '[.network.flows[].duplicate] | add') > 0 &&
	$(romulu_says '[.network.flows[].reordered] | add') > 0"

# --- JUNGFRAU: two modules, which ask for nothing
part=jungfrau
jungfrau_receiver() {
	rm -f "$work/romulu0.json"
	ip netns exec b romulu --buffer net0 --check --transport jungfrau --listen 10.1.0.2:5001 --tune modules=1x2 --images 16 \
		--timeout 30 --json="$work/romulu0.json" "$@" >"$work/out0" 2>&1 &
	receiver[0]=$!
	wait_for 20 grep -qsi ":138A " "/proc/${receiver[0]}/net/udp"
}
jungfrau() {
	at a remu --transport jungfrau --to 10.1.0.2:5001 --dataset "$work/modules.raw" --geometry 1024x1024,u16 \
		--split 2 --images 16 --rate 20 --bunch 8 --json="$work/remu.json" >"$work/err" 2>&1
}
head -c 8M /dev/urandom >"$work/modules.raw"
jungfrau_receiver --tune settle=10000 --dataset "$work/modules.raw" --geometry 1024x1024,u16
jungfrau
sent $? "as a JUNGFRAU"
received 0/4
adds_up 16
is "jungfrau: it begins with the first frame" "$(romulu_says .network.first_frame)" 1
jungfrau_receiver --tune receive-only --tune idle=20
RASHPA_LIBRARY=$PWD/build/tools/librashpa.so.0 python3 -B - "$work/opened" <<'P' >"$work/python" 2>&1 &
import sys
sys.path.insert(0, "build/tools/python")
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
jungfrau
wait "${receiver[0]}" "$python"
is "jungfrau-images: images have the detector's own numbers, and times" "$(xargs <"$work/python")" \
	"0 1 2 3 4 5 6 7 8 True 0 0 0 0 0 0 0 0 8 9 10 11 12 13 14 15 16 True 0 0 0 0 0 0 0 0" ||
	sed "s/^/# /" "$work/out0" "$work/err"

# --- memory that soft-RoCE cannot have
part=memory
rashpactl buffer create --backend contig net1 64M >/dev/null
receive --payload net1
send --split 1 --images 4
is "memory-sender: remu fails as the receiver does" $? 1
received 1
grep -q "dma-buf.*use a contig buffer" "$work/out0"
ok $? "memory: memory by dma-buf is refused with the remedy" || sed 's/^/# /' "$work/out0"
rashpactl buffer remove net1
ok $? "memory-free: no process holds it"
leave
