# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced where two virtual machines have a cable between them, by who starts them and in them.
# Ends are 1 and 2, which have the addresses 10.2.0.1 and 10.2.0.2.

# cable_end END FOLDER LAB-OPTION...: lab run, at an end of the cable, sockets of datagrams in the
# folder; instead of the shell, so that a signal reaches the lab
cable_end() {
	local other=$((3 - $1))
	# soft-RoCE takes one with its own hardware address for itself
	exec selftests/lab/lab run --smp 1 \
		--netdev "dgram,id=wire,local.type=unix,local.path=$2/$1,remote.type=unix,remote.path=$2/$other" \
		--device "virtio-net-pci,netdev=wire,host_mtu=9000,mac=52:54:00:00:00:0$1" "${@:3}"
}

# cable_up END: in the guest; rxe0 is ready then, and $device is the network card
cable_up() {
	local other=$((3 - $1))
	modprobe -q crc32_generic || true # rdma_rxe of 6.1 needs it, and does not say so
	modprobe -a virtio_net rdma_rxe
	device=$(basename "$(ls -d /sys/bus/virtio/drivers/virtio_net/virtio*/net/*)")
	ip link set lo up
	ip link set "$device" mtu 9000 up
	# CoDel drops what has waited for long, and of soft-RoCE's packets some do
	tc qdisc replace dev "$device" root pfifo limit 4000
	ip address add "10.2.0.$1/24" dev "$device"
	# who is there is known: on a busy machine the answer comes too late, and packets are dropped
	ip neighbour add "10.2.0.$other" lladdr "52:54:00:00:00:0$other" dev "$device" nud permanent
	rdma link add rxe0 type rxe netdev "$device"
	until grep -qsi "ffff:0a02" /sys/class/infiniband/rxe0/ports/1/gids/*; do sleep 0.1; done
}
