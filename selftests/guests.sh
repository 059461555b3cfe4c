# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The guests that the suite runs in: what they have, and what each of them leaves out.
# Sourced by check.sh and coverage.sh.

# What is not ours: a disk, a device with DMA, one that reaches 28 bits, memory in a BAR,
# a network card that can report errors; its port must not be one that waits for a link, which
# the emulated one does not tell of.
foreign=(--disk 64M --device "edu,dma_mask=0xffffffffffffffff" --device edu
	--object "memory-backend-memfd,id=shm0,size=4M,share=on"
	--device "ivshmem-plain,memdev=shm0"
	--device pcie-root-port,id=port9,chassis=9,x-speed=2_5 --device e1000e,bus=port9)

scripts="bench.sh boot.sh compat.sh conformance.sh data.sh foreign.sh fuzz.sh hostile.sh keepup.sh kill.sh
	receive.sh examples.sh load.sh loop.sh manager.sh process.sh python.sh stream.sh tools.sh units.sh"
# soft-RoCE knows network namespaces on the newest kernel only
networks="builder.sh builder_roce.sh frames.sh network.sh network_more.sh network_hostile.sh network_bench.sh
	network_xdp.sh"
# What a guest leaves out, because another one runs it: on stock kernels, most of what asks
# nothing of the IOMMU runs once a kernel, what asks nothing of the kernel only once. 6.1 does
# not let a fault wait while pages are pinned, so race_test cannot hold all calls there.
declare -A leaves_out=(
	["6.1 off"]="conformance.sh race_test argument_test memory_test privilege_test disclosure_test
		order_test import_test hostile_test look_test lifetime_test device_test ring_test liar_test data.sh
		bench.sh keepup.sh tools.sh kill.sh stream.sh receive.sh hostile.sh compat.sh fuzz.sh
		examples.sh load.sh loop.sh manager.sh units.sh python.sh process.sh boot.sh"
	["6.1 on"]="data.sh conformance.sh engine_test abi_test storm_test pass_test race_test churn_test group_test
		foreign.sh bench.sh tools.sh hostile.sh compat.sh fuzz.sh stream.sh receive.sh
		keepup.sh kill.sh examples.sh load.sh loop.sh manager.sh units.sh python.sh process.sh boot.sh"
	["6.12 off"]="data.sh conformance.sh engine_test abi_test storm_test pass_test race_test churn_test
		import_test hostile_test lifetime_test device_test liar_test ring_test
		foreign.sh bench.sh keepup.sh tools.sh kill.sh stream.sh receive.sh hostile.sh fuzz.sh
		load.sh manager.sh units.sh python.sh process.sh boot.sh"
	["6.12 on"]="data.sh argument_test memory_test privilege_test disclosure_test order_test
		group_test foreign.sh keepup.sh tools.sh stream.sh receive.sh compat.sh kill.sh
		hostile.sh examples.sh load.sh loop.sh manager.sh units.sh python.sh conformance.sh
		process.sh boot.sh"
	["newest off"]="conformance.sh engine_test abi_test argument_test privilege_test disclosure_test order_test
		storm_test data.sh
		pass_test race_test churn_test event_test group_test lock_test name_test role_test pin_test
		device_test ring_test look_test hostile_test bench.sh keepup.sh tools.sh kill.sh stream.sh
		receive.sh hostile.sh compat.sh examples.sh fuzz.sh loop.sh manager.sh units.sh process.sh boot.sh"
	# the guest with sanitizers runs stream.sh here
	# and manager.sh, units.sh and boot.sh have one of their own
	["newest on"]="memory_test foreign.sh bench.sh compat.sh fuzz.sh stream.sh load.sh manager.sh units.sh
		python.sh boot.sh"
	# What asks nothing of the IOMMU, or more where there is one, and faults of a kind, once each.
	# Scripts are mostly about the tools, and slow here: coverage.sh runs them.
	["debug off"]="$scripts engine_test mmap_test privilege_test limit_test disclosure_test argument_test
		doorbell_test fault_test race_test storm_test unplug_test lifetime_test hostile_test
		device_test order_test"
	["debug on"]="$scripts memory_test ring_test look_test consumer_test name_test stream_test
		event_test lock_test group_test abi_test role_test fault_bind_test"
	# All of it, but once what asks nothing of the IOMMU.
	["coverage off"]="conformance.sh churn_test race_test unplug_test lifetime_test fault_bind_test
		bench.sh tools.sh hostile.sh kill.sh stream.sh receive.sh examples.sh load.sh loop.sh
		python.sh"
	["coverage on"]="engine_test abi_test argument_test memory_test name_test role_test pin_test privilege_test
		disclosure_test event_test ring_test lock_test group_test doorbell_test storm_test
		compat.sh data.sh foreign.sh fuzz.sh keepup.sh manager.sh units.sh python.sh process.sh boot.sh"
)

# missed SERIES: which programs no guest of this kernel runs.
missed() {
	local name runs

	for name in selftests/driver/*_test.c; do
		name=$(basename "$name" .c)
		[[ " large_test bounce_test lockdown_test flr_test gpu_test fetch_test " == *" $name "* || "$1 $name" == "6.1 race_test" ]] &&
			continue
		runs=2
		[[ " ${leaves_out["$1 off"]//[[:space:]]/ } " != *" $name "* ]] || runs=$((runs - 1))
		[[ " ${leaves_out["$1 on"]//[[:space:]]/ } " != *" $name "* ]] || runs=$((runs - 1))
		((runs)) || echo "$name"
	done
}

# suite_of SERIES IOMMU: options of the lab in "options", of suite.sh in "without". Series
# coverage is the debug kernel for coverage.sh.
suite_of() {
	local name

	options=(--kernel "${1/coverage/debug}" --iommu "$2" --fpga 2 --memory 2G "${foreign[@]}")
	# those that run in guests of their own, and what the one with sanitizers runs
	without=(--without large_test --without bounce_test --without contig_test
		--without lockdown_test --without flr_test --without gpu_test --without gpu.sh --without gpu_paths.sh
		--without fetch_test --without fetch.sh)
	for name in ${leaves_out["$1 $2"]-}; do
		without+=(--without "$name")
	done
	# nor ask these anything of the kernel
	[[ "$1 $2" == "newest off" ]] || for name in $networks tutorials.sh monitoring.sh; do
		without+=(--without "$name")
	done
	case $1-$2 in
	6.*) ;;
	# CMA only once, so that both backends are seen on a kernel that has both
	*-off) options+=(--append cma=256M) ;;
	# Debian zeroes pages for us; without that, our own zeroing shows
	newest-on) options+=(--append init_on_alloc=0) ;;
	esac
}
