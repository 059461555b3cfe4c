#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The part of the demonstration over a network that runs in the guests.
# demo-network-guest.sh detector|receiver FOLDER [FRAMES]: FRAMES for each receiver. The guests
# share FOLDER: its files synchronize them, and it gets the results.
set -euo pipefail

cd "$(dirname "$0")/../.."
export PATH=$PWD/build/tools:$PATH
side=$1 out=$2 frames=${3:-500}
images=4
data=$out/modules.raw

# shellcheck source-path=SCRIPTDIR source=../lib/cable.sh
. selftests/lib/cable.sh
[[ $side == detector ]] && end=1 || end=2
cable_up "$end"

# the manager's connection leaves the machine, so it is encrypted, and both ends have certificates
keys=$out/keys
if [[ $side == detector ]]; then
	until [[ -e $keys/ready ]]; do sleep 0.2; done
	remu --daemon tls:6001 --leader cert:manager \
		--tls "$keys/detector.pem,$keys/detector.key,$keys/ca.pem" --device rxe0 &
	daemon=$!
	until [[ -e $out/over ]]; do sleep 0.2; done
	kill "$daemon"
	wait "$daemon"
	exit
fi

selftests/lib/certificates.sh "$keys" ca manager detector >"$out/certificates.log" 2>&1
touch "$keys/ready"
trap 'touch "$out/over"' EXIT

insmod "build/modules/$RASHPA_KERNEL/rashpa.ko"
echo "   $(uname -sr), rashpa $(</sys/module/rashpa/version)"
head -c $((images * 4 * 1024 * 1024)) /dev/urandom >"$data"
for i in 0 1; do
	rashpactl buffer create --backend contig "net$i" 128M | sed 's/^/   rashpactl buffer create: /'
done
# drop 1 of 128 packets, by the last seven bits of its number
lose() {
	tc qdisc add dev "$device" clsact
	tc filter add dev "$device" ingress protocol ip u32 match ip protocol 17 0xff \
		match ip dport 4791 0xffff match u8 0x07 0x7f at 39 action drop
}
dropped() { tc -s -j filter show dev "$device" ingress | jq '[.. | .stats? // empty | .drops? // empty] | add // 0'; }
for i in 0 1; do
	romulu --daemon "unix:/run/romulu$i" --device rxe0 &
done
sed "s|@FOLDER@|$out|g; s|@IMAGES@|$((2 * frames))|" selftests/demo/demo-network.xml >"$out/experiment.xml"
manager() {
	rashpa-manager "$@" --timeout 120 --tls "$keys/manager.pem,$keys/manager.key,$keys/ca.pem" \
		 "$out/experiment.xml"
}
until manager check | sed 's/^/   rashpa-manager check: /'; do sleep 0.5; done
manager plan | sed 's/^/   /'

for run in 1 2; do
	((run == 1)) || lose
	code=0
	manager run --progress --json="$out/report-$run.json" >"$out/report-$run.txt" || code=$?
	# 4: messages are missing, in the second run
	((code == 0 || (run == 2 && code == 4))) || {
		echo "   rashpa-manager ended with $code: see report-$run.json in the folder of results"
		exit 1
	}
	sed 's/^/   /' "$out/report-$run.txt"
	injected=0
	((run == 1)) || injected=$(dropped)
	jq --arg kernel "$(uname -r)" --argjson injected "$injected" '
		[.parties[] | select(.role == "receiver") | .report] as $r | {
		kernel: $kernel, frames: ($r | map(.frames) | add), incomplete: ($r | map(.incomplete) | add),
		lost: ($r | map(.lost) | add), corrupt: ($r | map(.corrupt) | add),
		messages: ($r | map(.network.received_messages) | add),
		missing: ($r | map(.network.missing_messages) | add), injected: $injected,
		missing_lines: ($r | map(.missing_lines) | add),
		unaccounted: (.flows | map(.unaccounted) | add),
		bytes: ($r | map(.bytes) | add), seconds: ($r | map(.seconds) | max)
	}' "$out/report-$run.json" >"$out/run-$run.json"
	jq -r '"   \(.frames) frames, \(.lost) lost, \(.corrupt) corrupt; " +
		"\(.messages) messages arrived, \(.injected) were dropped, \(.missing) are missing " +
		"(\(.missing_lines) lines of \(.incomplete) frames); " +
		"\(.bytes / .seconds / 1e6 | round) MB/s compared"' "$out/run-$run.json"
done
for i in 0 1; do
	rashpactl buffer remove "net$i" >/dev/null
done
