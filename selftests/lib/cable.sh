# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A cable between two virtual machines. Sourced by the script that starts them, and in both guests.
# Ends are 1 and 2, with the addresses 10.2.0.1 and 10.2.0.2.

# cable_end END FOLDER LAB-OPTION...: lab run at an end of the cable, with sockets of datagrams in
# FOLDER; replaces the shell, so that a signal reaches the lab
cable_end() {
	local other=$((3 - $1))
	# soft-RoCE takes a card with its own hardware address for itself
	exec selftests/lab/lab run --smp 1 \
		--netdev "dgram,id=wire,local.type=unix,local.path=$2/$1,remote.type=unix,remote.path=$2/$other" \
		--device "virtio-net-pci,netdev=wire,host_mtu=9000,mac=52:54:00:00:00:0$1" "${@:3}"
}

# cable_up END: in the guest; makes rxe0 ready, and sets device to the network card
cable_up() {
	local other=$((3 - $1))
	modprobe -q crc32_generic || true # an undeclared dependency of rdma_rxe in 6.1
	modprobe -a virtio_net rdma_rxe
	device=$(basename "$(ls -d /sys/bus/virtio/drivers/virtio_net/virtio*/net/*)")
	ip link set lo up
	ip link set "$device" mtu 9000 up
	# CoDel drops packets that have waited for long, as some of soft-RoCE's do
	tc qdisc replace dev "$device" root pfifo limit 4000
	ip address add "10.2.0.$1/24" dev "$device"
	# no address resolution: on a busy machine the answer is late, and packets are dropped
	ip neighbour add "10.2.0.$other" lladdr "52:54:00:00:00:0$other" dev "$device" nud permanent
	rdma link add rxe0 type rxe netdev "$device"
	until grep -qsi "ffff:0a02" /sys/class/infiniband/rxe0/ports/1/gids/*; do sleep 0.1; done
}
