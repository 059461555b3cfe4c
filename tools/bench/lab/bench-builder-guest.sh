#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the guest: measures messages over verbs, compared with MPI over the same soft-RoCE device (libfabric)
# and over TCP, in turn; then verbs with a late receiver, compared with shared memory. bench-builder-guest.sh OUT [ROUNDS]: writes lines to OUT/builder-verbs.jsonl. Only ratios
# are meaningful.
set -uo pipefail

out=$1 rounds=${2:-3}
ulimit -l unlimited
modprobe rdma_ucm # libfabric connects by rdma_cm
selftests/lib/rxe.sh || exit
sent() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; }
PATH=$PWD/build/tools:$PATH
# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/mpi.sh
. "$(dirname "$0")/../../../selftests/lib/mpi.sh"
err=$(mktemp)
trap 'rm -f "$err"' EXIT

# one WAY SIZE MESSAGES: received bytes a second
one() {
	local network=() transport=mpi
	case $1 in
	shm)	transport=shm ;;
	verbs)	transport=verbs; network=(--device rxe0) ;;
	# settings for libfabric: its default completion queue is too large for soft-RoCE
	ofi)	export OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_mtl_ofi_provider_include=verbs OMPI_MCA_btl=self
		export FI_VERBS_IFACE=rxe-cable0 FI_UNIVERSE_SIZE=2 FI_OFI_RXM_MSG_TX_SIZE=64 FI_OFI_RXM_MSG_RX_SIZE=64
		export FI_OFI_RXM_TX_SIZE=128 FI_OFI_RXM_RX_SIZE=128 ;;
	tcp)	export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo ;;
	esac
	timeout 100 mpirun --bind-to none -n 2 rashpa-builder nton --transport "$transport" "${network[@]}" --depth 8 \
		--size "$2" --messages "$3" "${@:4}" --timeout 60 --json 2>"$err" |
		jq -e '.ranks[1] | .received_bytes / .seconds'
}
# if libfabric does not support this device, report that, and continue without it
ways=(verbs ofi tcp)
for way in "${ways[@]}"; do
	before=$(sent)
	(one "$way" 4096 8 >/dev/null) && { [[ $way == tcp ]] || (($(sent) > before)); } && continue
	echo "bench-builder: no $way here: $(grep -a -m 3 . "$err")" >&2
	ways=("${ways[@]/$way/}")
done
: >"$out/builder-verbs.jsonl"
for size in 1024 4096 16384 65536 262144; do
	messages=$((size < 65536 ? 400 : 26214400 / size))
	for ((round = 0; round < rounds; round++)); do
		for way in "${ways[@]}"; do
			[[ ! $way ]] || rate=$(one "$way" "$size" "$messages") || continue
			[[ ! $way ]] || echo "{\"way\": \"$way\", \"size_bytes\": $size, \"round\": $round, \"bytes_per_second\": $rate}" >>"$out/builder-verbs.jsonl"
		done
	done
done
# the receiver pauses after each message, so that its receives run out
for ((round = 0; round < rounds; round++)); do
	for way in verbs shm; do
		rate=$(one "$way" 4096 300 --slow 300) || continue
		echo "{\"way\": \"late $way\", \"size_bytes\": 4096, \"round\": $round, \"bytes_per_second\": $rate}" >>"$out/builder-verbs.jsonl"
	done
done
