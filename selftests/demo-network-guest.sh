#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The part of the demonstration over a network that runs in the guests.
# demo-network-guest.sh detector|receiver FOLDER [FRAMES]: of each receiver. The folder is shared:
# a file tells the detector that the receivers listen, results are written there.
set -euo pipefail

cd "$(dirname "$0")/.."
export PATH=$PWD/build/tools:$PATH
side=$1 out=$2 frames=${3:-500}
geometry=1024x2048,u16
images=4
data=$out/modules.raw

modprobe -q crc32_generic || true # rdma_rxe of 6.1 needs it, and does not say so
modprobe -a virtio_net rdma_rxe
device=$(basename "$(ls -d /sys/bus/virtio/drivers/virtio_net/virtio*/net/*)")
address=10.2.0.1 other=10.2.0.2 mac=52:54:00:00:00:02
[[ $side == detector ]] || address=10.2.0.2 other=10.2.0.1 mac=52:54:00:00:00:01
ip link set "$device" mtu 9000 up
# CoDel drops what has waited for long, and of soft-RoCE's packets some do
tc qdisc replace dev "$device" root pfifo limit 4000
ip address add "$address/24" dev "$device"
# who is there is known: on a busy machine the answer comes too late, and packets are dropped
ip neighbour add "$other" lladdr "$mac" dev "$device" nud permanent
rdma link add rxe0 type rxe netdev "$device"
until grep -qsi "ffff:0a02" /sys/class/infiniband/rxe0/ports/1/gids/*; do sleep 0.1; done

if [[ $side == detector ]]; then
	for run in 1 2; do
		until [[ -e $out/listening-$run ]]; do sleep 0.2; done
		remu --transport roce --device rxe0 --to 10.2.0.2:5001 --to 10.2.0.2:5002 --share images \
			--dataset "$data" --geometry "$geometry" --split 4 --bunch 4 \
			--images $((2 * frames)) --timeout 300 --json="$out/remu-$run.json"
	done
	exit
fi

insmod "build/modules/$RASHPA_KERNEL/rashpa.ko"
echo "   $(uname -sr), rashpa $(</sys/module/rashpa/version)"
head -c $((images * 4 * 1024 * 1024)) /dev/urandom >"$data"
for i in 0 1; do
	rashpactl buffer create --backend contig "net$i" 128M | sed 's/^/   rashpactl buffer create: /'
done
# of one packet in 128 the last seven bits of its number are these
lose() {
	tc qdisc add dev "$device" clsact
	tc filter add dev "$device" ingress protocol ip u32 match ip protocol 17 0xff \
		match ip dport 4791 0xffff match u8 0x07 0x7f at 39 action drop
}
dropped() { tc -s -j filter show dev "$device" ingress | jq '[.. | .stats? // empty | .drops? // empty] | add // 0'; }
listening() { grep -qsi ":$(printf %04X "$1") 0*:0000 0A" /proc/net/tcp; }

for run in 1 2; do
	((run == 1)) || lose
	pids=() progress=(--progress)
	for i in 0 1; do
		romulu --buffer "net$i" --listen "10.2.0.2:$((5001 + i))" --device rxe0 \
			--dataset "$data" --geometry "$geometry" --timeout 300 --settle 10000 \
			--json="$out/romulu-$run-$i.json" "${progress[@]}" &
		pids+=($!) progress=()
	done
	for i in 0 1; do
		until listening $((5001 + i)); do
			kill -0 "${pids[i]}"
			sleep 0.1
		done
	done
	touch "$out/listening-$run"
	for pid in "${pids[@]}"; do
		code=0
		wait "$pid" || code=$?
		# 4: messages are missing, in the second run
		((code == 0 || (run == 2 && code == 4))) || {
			echo "   romulu ends with $code: see romulu-$run-*.json in the folder of results"
			exit 1
		}
	done
	injected=0
	((run == 1)) || injected=$(dropped)
	jq -s --arg kernel "$(uname -r)" --argjson injected "$injected" '{
		kernel: $kernel, frames: (map(.frames) | add), incomplete: (map(.incomplete) | add),
		lost: (map(.lost) | add), corrupt: (map(.corrupt) | add),
		messages: (map(.network.received_messages) | add),
		missing: (map(.network.missing_messages) | add), injected: $injected,
		missing_lines: (map(.missing_lines) | add),
		bytes: (map(.bytes) | add), seconds: (map(.seconds) | max)
	}' "$out"/romulu-$run-[01].json >"$out/run-$run.json"
	jq -r '"   \(.frames) frames, \(.lost) lost, \(.corrupt) corrupt; " +
		"\(.messages) messages came, \(.injected) were dropped, \(.missing) are missing " +
		"(\(.missing_lines) lines of \(.incomplete) frames); " +
		"\(.bytes / .seconds / 1e6 | round) MB/s compared"' "$out/run-$run.json"
done
for i in 0 1; do
	rashpactl buffer remove "net$i" >/dev/null
done
