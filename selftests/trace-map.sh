#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs in a guest, as root: where the time of a map goes beside that of a bare attachment, by the kernel's
# function_graph. trace-map.sh FPGA FOLDER: a bound function that nobody uses; writes map-trace.json there. Only the
# calls of one function are timed at a time, so that tracing adds to a time once, not for all that is below.
set -euo pipefail

fpga=$1 out=$2
tracing=/sys/kernel/tracing
[[ -e $tracing/trace ]] || mount -t tracefs tracefs "$tracing"
if ! grep -qw function_graph "$tracing/available_tracers"; then
	echo "trace-map: this kernel has no function_graph" >&2
	exit 0
fi
work=$(mktemp -d)
trap 'echo nop >"$tracing/current_tracer"; echo >"$tracing/set_graph_function"; rm -rf "$work"' EXIT
echo 8192 >"$tracing/buffer_size_kb"
echo 1 >"$tracing/options/funcgraph-tail"
echo 0 >"$tracing/options/funcgraph-irqs"
echo 2 >"$tracing/max_graph_depth"
for size in 64K 2M 16M; do
	for functions in "rashpa_ioc_map bare_ioctl" rashpa_map_fill_locked; do
		tr ' ' '\n' <<<"$functions" >"$tracing/set_graph_function"
		echo function_graph >"$tracing/current_tracer"
		rashpa-bench memory --fpga "$fpga" --backend contig --sizes "$size" --repeat 20 >/dev/null
		echo 0 >"$tracing/tracing_on"
		cat "$tracing/trace" >>"$work/$size"
		echo nop >"$tracing/current_tracer"
		echo 1 >"$tracing/tracing_on"
	done
done
python3 -B "$(dirname "$0")/python/trace_map.py" "$out/map-trace.json" "$work"/*
