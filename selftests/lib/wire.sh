# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# In one of two virtual machines with a wire between them (two-guests.sh): soft-RoCE on it. Sourced.

# wire_up NUMBER: 1 or 2; device rxe0, address 10.2.0.NUMBER. Sets device, the network's.
wire_up() {
	local address=10.2.0.$1 other=$((3 - $1))

	modprobe -q crc32_generic || true # rdma_rxe of 6.1 needs it, and does not say so
	modprobe -a virtio_net rdma_rxe
	device=$(basename "$(ls -d /sys/bus/virtio/drivers/virtio_net/virtio*/net/*)")
	ip link set "$device" mtu 9000 up
	# CoDel drops what has waited for long, and of soft-RoCE's packets some do
	tc qdisc replace dev "$device" root pfifo limit 4000
	ip address add "$address/24" dev "$device"
	# who is there is known: on a busy machine the answer comes too late, and packets are dropped.
	# soft-RoCE takes one with its own address for itself
	ip neighbour add "10.2.0.$other" lladdr "52:54:00:00:00:0$other" dev "$device" nud permanent
	rdma link add rxe0 type rxe netdev "$device"
	until grep -qsi "ffff:0a02" /sys/class/infiniband/rxe0/ports/1/gids/*; do sleep 0.1; done
}
