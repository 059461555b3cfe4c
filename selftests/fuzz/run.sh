#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# "make fuzz": each fuzzer for MINUTES, the guest's and the host's side by side.
# run.sh MINUTES [SEED]. What is found stays in build/fuzz; the last line counts, and
# build/fuzz.json has it for programs.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
lab=selftests/lab/lab
out=build/fuzz
bin=build/selftests/fuzz
minutes=${1:?minutes} seed=${2:-$(date +%s)}
# the debug kernel sees more; else the newest
series=$("$lab" kernels | cut -f1 | grep -x debug || "$lab" kernels | cut -f1 | tail -n 1)

host=(vfu control stream text)
weight=(6 1 1 2) # tenths of the time

mkdir -p "$out"
rm -f "$out"/*.log "$out"/*-{crash,timeout,oom,leak,slow-unit}-*
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM

# The corpus begins with what the self-test says to a board, a profile, and words.
seeds() {
	local name=$out/corpus word
	[[ -d $name/vfu ]] && return
	mkdir -p "$name"/{vfu,control,stream,text}
	for word in "early on" "late lock hold" "twice interrupt 100" "lose on 3 dtp 1" release; do
		printf "\x01\x04\x01\x$(printf %02x ${#word})\x00%s" "$word" >"$name/vfu/${word// /-}"
	done
	RASHPA_RECORD=/rashpa/$name/vfu "$lab" exec -- build/tools/rashpa-fpga-selftest >/dev/null
	printf '\x08%s\n' status "stuck on" "early lock 100" "late on hold dtp 1" "twice on" \
		"lose on 3 dtp 0" "reorder on" release honest disconnect >"$name/control/commands"
	{ printf '\0'; cat tools/profiles/rashpa-fpga.json; } >"$name/text/profile"
	printf '\x0332,0,64x32@1,2' >"$name/text/region"
	printf '\x0312.5K' >"$name/text/size"
}

on_host() {
	local i name seconds status=0
	for i in "${!host[@]}"; do
		name=${host[i]} seconds=$((minutes * 6 * weight[i]))
		"$lab" exec -- "$bin/${name}_fuzz" -seed="$((seed & 0x7fffffff))" \
			-max_len=8192 -dict=selftests/fuzz/words.dict -timeout=20 -rss_limit_mb=3000 \
			-max_total_time="$seconds" -print_final_stats=1 \
			-artifact_prefix="$out/$name-" "$out/corpus/$name" \
			>"$out/$name.log" 2>&1 || status=1
	done
	return "$status"
}

in_guest() {
	RASHPA_FPGA=$PWD/$bin/rashpa-fpga "$lab" run --kernel "$series" --iommu on --fpga 2 \
		--timeout $((minutes * 60 + 600)) --log "$out/kernel.log" -- \
		selftests/fuzz/guest.sh $((minutes * 60)) "$seed" >"$out/guest.log" 2>&1
}

# statistic NAME FUZZER: of libFuzzer's last lines
statistic() { sed -n "s/^stat::$1: *//p" "$out/$2.log"; }

report() { # status of host, of guest
	local name
	for name in "${host[@]}"; do
		jq -n --arg name "$name" --arg runs "$(statistic number_of_executed_units "$name")" \
			--arg rate "$(statistic average_exec_per_sec "$name")" \
			--arg edges "$(grep -o 'cov: [0-9]*' "$out/$name.log" | tail -n 1 | cut -c6-)" \
			--argjson corpus "$(find "$out/corpus/$name" -type f | wc -l)" \
			--argjson found "$(compgen -G "$out/$name-*-*" | wc -l)" \
			'{name: $name, runs: ($runs | tonumber? // 0), per_second: ($rate | tonumber? // 0),
			  edges: ($edges | tonumber? // 0), corpus: $corpus, findings: $found}'
	done | jq -s --argjson host "$1" --argjson guest "$2" --arg kernel "$series" \
		--argjson seed "$seed" --slurpfile lines <(sed -n 's/^# {/{/p' "$out/guest.log") \
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
}

seeds
echo "fuzzing for $minutes minutes, seed $seed, guest Linux $series"
guest=0 other=0
in_guest &
pid=$!
on_host || other=$?
wait "$pid" || guest=$?
report "$other" "$guest"
((guest)) && grep '^# kernel\|^not ok\|^lab:\|left$' "$out/guest.log" | head -n 20
((other)) && grep -h 'ERROR:\|runtime error\|not true' "$out"/*.log | head -n 20
if ((guest || other)); then
	echo "something was found (host $other, guest $guest): see $out"
	exit 1
fi
echo "nothing was found"
