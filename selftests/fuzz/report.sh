#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Summarize the logs of a run in build/fuzz.json and as lines.
# report.sh STATUS-OF-HOST STATUS-OF-GUEST KERNEL SEED
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
out=build/fuzz

# statistic NAME FUZZER: of libFuzzer's last lines
statistic() { sed -n "s/^stat::$1: *//p" "$out/$2.log"; }

for name in vfu control stream share text frame link telegram; do
	jq -n --arg name "$name" --arg runs "$(statistic number_of_executed_units "$name")" \
		--arg rate "$(statistic average_exec_per_sec "$name")" \
		--arg edges "$(grep -o 'cov: [0-9]*' "$out/$name.log" | tail -n 1 | cut -c6-)" \
		--argjson corpus "$(find "$out/corpus/$name" -type f | wc -l)" \
		--argjson found "$(compgen -G "$out/$name-*-*" | wc -l)" \
		'{name: $name, runs: ($runs | tonumber? // 0), per_second: ($rate | tonumber? // 0),
		  edges: ($edges | tonumber? // 0), corpus: $corpus, findings: $found}'
done | jq -s --argjson host "$1" --argjson guest "$2" --arg kernel "$3" \
	--argjson seed "$4" --slurpfile lines <(sed -n 's/^# {/{/p' "$out/guest.log") \
	'{seed: $seed, kernel: $kernel, host_status: $host, guest_status: $guest, host: .,
	  calls: ($lines | map(select(.ioctls)) |
		{turns: length, steps: (map(.steps) | add), ioctls: (map(.ioctls) | add),
		 succeeded: (map(.succeeded) | add), seconds: ((map(.ms) | add // 0) / 1000),
		 findings: (map(.findings) | add)}),
	  registers: ($lines | map(select(has("streams"))) |
		{turns: length, steps: (map(.steps) | add), streams: (map(.streams) | add)})}' \
	>build/fuzz.json
jq -r '(.host[] | "\(.name): \(.runs) runs, \(.per_second)/s, \(.edges) edges, corpus \(.corpus), findings \(.findings)"),
	"system calls, Linux \(.kernel): \(.calls.steps) steps, \(.calls.ioctls) ioctls, \(.calls.succeeded) succeeded, \(.calls.seconds) s, findings \(.calls.findings)",
	"registers: \(.registers.steps) steps, \(.registers.streams) streams"' build/fuzz.json
