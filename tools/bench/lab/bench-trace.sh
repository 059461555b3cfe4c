#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs in a guest, as root: the times of parts of a map, compared with a bare attachment, and of an event, compared
# with vfio-pci, by function_graph of the kernel. bench-trace.sh FPGA FOLDER: FPGA is an unused bound function; writes
# FOLDER/trace.json. Times only the direct calls of one function at a time, so that the cost of tracing adds to each
# time once, and not for all nested calls.
set -euo pipefail

fpga=$1 out=$2
tracing=/sys/kernel/tracing
[[ -e $tracing/trace ]] || mount -t tracefs tracefs "$tracing"
if ! grep -qw function_graph "$tracing/available_tracers"; then
	echo "bench-trace: this kernel has no function_graph" >&2
	exit 0
fi
work=$(mktemp -d)
trap 'echo nop >"$tracing/current_tracer"; echo >"$tracing/set_graph_function"; rm -rf "$work"' EXIT
echo 8192 >"$tracing/buffer_size_kb"
echo 1 >"$tracing/options/funcgraph-tail"
echo 0 >"$tracing/options/funcgraph-irqs"
echo 2 >"$tracing/max_graph_depth"

# traced NAME FUNCTIONS COMMAND...: trace FUNCTIONS while COMMAND runs
traced() {
	local name=$1 function
	: >"$tracing/set_graph_function"
	for function in $2; do
		if grep -qw "^$function" "$tracing/available_filter_functions"; then
			echo "$function" >>"$tracing/set_graph_function"
		else
			echo "bench-trace: no $function in this kernel, or its module is not loaded" >&2
		fi
	done
	# with an empty filter, the tracer would trace the whole kernel
	grep -q '^[^#]' "$tracing/set_graph_function" || return 0
	echo function_graph >"$tracing/current_tracer"
	"${@:3}" >/dev/null
	echo 0 >"$tracing/tracing_on"
	cat "$tracing/trace" >>"$work/$name"
	echo nop >"$tracing/current_tracer"
	echo 1 >"$tracing/tracing_on"
}
for size in 64K 2M 16M; do
	for functions in "rashpa_ioc_map bare_ioctl" rashpa_map_fill_locked; do
		traced "$size" "$functions" rashpa-bench memory --fpga "$fpga" --backend contig --sizes "$size" --repeat 20
	done
done
echo 1 >"$tracing/options/funcgraph-irqs"
vfio=()
[[ ${RASHPA_IOMMU-} != on ]] || vfio=(--vfio same)
traced event "rashpa_vector_fire rashpa_channel_waker vfio_msihandler" \
	rashpa-bench latency --fpga "$fpga" "${vfio[@]}" --max-rate 0 --repeat 2
# steps of an event, from the interrupt to the program
steps=(rashpa/rashpa_{interrupt,event,wakeup,read} sched/sched_switch)
echo 'next_comm ~ "rashpa-bench*"' >"$tracing/events/sched/sched_switch/filter"
for step in "${steps[@]}"; do echo 1 >"$tracing/events/$step/enable"; done
rashpa-bench latency --fpga "$fpga" --max-rate 0 --repeat 2 >/dev/null
for step in "${steps[@]}"; do echo 0 >"$tracing/events/$step/enable"; done
cat "$tracing/trace" >"$work/steps"
python3 -B "$(dirname "$0")/bench_trace.py" "$out/trace.json" "$work"/*
