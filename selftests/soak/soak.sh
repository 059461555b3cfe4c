#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The soak test: random streams, kills, unplugged boards, and fragmented memory, for MINUTES.
# soak.sh SERIES MINUTES [SEED]. Writes build/soak.json, and prints the same as a table.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
series=$1 minutes=$2 seed=${3:-$((RANDOM * 32768 + RANDOM))}
out=build/soak
release=$(selftests/lab/lab release "$series") || exit
export RASHPA_SOAK_SPARE=8

mkdir -p "$out"
rm -f "$out"/* build/soak.json
echo "soak: Linux $release, $minutes minutes, seed $seed (again: SOAK_SEED=$seed)"
status=0
# CMA, so that kernels with both backends use both
selftests/lab/lab run --kernel "$series" --iommu on --fpga 2 --spare "$RASHPA_SOAK_SPARE" \
	--smp 2 --memory 2G --append cma=256M --timeout $((minutes * 60 + 900)) \
	--log "$out/soak.log" -- selftests/soak/soak-guest.sh "$out" "$minutes" "$seed" || status=$?

entries() { sed -n 's/^[^#].*/&/p' "selftests/lab/$1"; }
found=$(tr -d '\r' <"$out/soak.log" | grep -avEf <(entries allow) | grep -acEf <(entries patterns))
leaks=$(grep -ac "unreferenced object" "$out/soak.log")
[[ -s $out/rounds && $(wc -l <"$out/memory") == 2 ]] || {
	echo "soak: the guest did not complete (status $status)"
	exit $((status ? status : 1))
}

jq -n --slurpfile rounds "$out/rounds" --slurpfile memory "$out/memory" --arg kernel "$release" \
	--argjson seed "$seed" --argjson status "$status" --argjson found "$found" \
	--argjson leaks "$leaks" '
	def total(f): [$rounds[] | f // 0] | add;
	{
		kernel: $kernel, seed: $seed, status: $status,
		minutes: (total(.seconds) / 60 * 10 | round / 10),
		rounds: ($rounds | length),
		kinds: ($rounds | group_by(.kind) | map({ (.[0].kind): length }) | add),
		images: total(.images), bytes: total(.bytes), events: total(.events),
		lost: total(.lost), uncounted: total(.uncounted),
		kills: total(.kills), unplugs: total(.unplugs),
		random_work: {
			runs: ([$rounds[] | select(.churn)] | length),
			maps: total(.churn.maps), foreign_maps: total(.churn.foreign_maps),
			channels: total(.churn.channels), events: total(.churn.events),
			lost: total(.churn.lost)
		},
		allocations: { ok: total(.churn.buffers), refused: total(.churn.refused),
			largest: ([$rounds[] | .churn.largest // 0] | max) },
		memory_kib: { start: $memory[0], end: $memory[1] },
		wrong: total(.wrong), log_findings: $found, kmemleak: $leaks
	}' >build/soak.json
jq -r '
	def row(n; v): "  \(n + " " * (24 - (n | length)))\(v)";
	row("minutes"; .minutes), row("rounds"; .rounds),
	(.kinds | to_entries[] | row("  " + .key; .value)),
	row("images checked"; .images), row("bytes checked"; .bytes), row("events"; .events),
	row("lost, counted"; .lost), row("lost, uncounted"; .uncounted),
	row("kills"; .kills), row("unplugs"; .unplugs),
	row("maps, of others"; "\(.random_work.maps), \(.random_work.foreign_maps)"),
	row("channels, events"; "\(.random_work.channels), \(.random_work.events) (\(.random_work.lost) lost, counted)"),
	row("allocations"; "\(.allocations.ok) (\(.allocations.refused) refused)"),
	row("largest"; "\(.allocations.largest / 1048576) MiB"),
	row("MemAvailable"; "\(.memory_kib.start.MemAvailable) KiB, at the end \(.memory_kib.end.MemAvailable)"),
	row("kept by processors"; "\(.memory_kib.start.Processors) KiB, at the end \(.memory_kib.end.Processors)"),
	row("Slab"; "\(.memory_kib.start.Slab) KiB, at the end \(.memory_kib.end.Slab)"),
	row("findings in the log"; .log_findings), row("kmemleak"; .kmemleak),
	row("wrong"; .wrong)' build/soak.json
# lost memory: more than the changes of an idle kernel
jq -e '.status == 0 and .wrong == 0 and .uncounted == 0 and .log_findings == 0 and .kmemleak == 0
	and (.memory_kib | (.start.MemAvailable + .start.Processors)
		- (.end.MemAvailable + .end.Processors) < .start.MemTotal / 20)' \
	build/soak.json >/dev/null || {
	echo "soak: something was wrong (status $status); log: $out/soak.log, seed $seed"
	exit 1
}
echo "soak: nothing was wrong; the same figures in build/soak.json"
