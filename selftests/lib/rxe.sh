#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Two soft-RoCE devices in this machine, rxe0 (10.77.0.1) and rxe1 (10.77.0.2), at the
# two ends of a virtual cable. Does nothing if they exist.
set -euo pipefail

[[ ! -e /sys/class/infiniband/rxe1 ]] || exit 0
modprobe -q crc32_generic || true # an undeclared dependency of rdma_rxe in 6.1
modprobe -a veth rdma_rxe
ip link add rxe-cable0 type veth peer name rxe-cable1
for i in 0 1; do
	# Both ends are local: accept packets from a local address, on any interface.
	echo 1 >/proc/sys/net/ipv4/conf/rxe-cable$i/accept_local
	echo 0 >/proc/sys/net/ipv4/conf/rxe-cable$i/rp_filter
	ip link set rxe-cable$i mtu 4200 up
	ip address add 10.77.0.$((i + 1))/24 dev rxe-cable$i
done
echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
for i in 0 1; do
	rdma link add rxe$i type rxe netdev rxe-cable$i
done

# Wait until the addresses are entries 1 of the tables of global identifiers.
end=$((SECONDS + 20))
for i in 0 1; do
	until grep -qsi "ffff:0a4d:000$((i + 1))" /sys/class/infiniband/rxe$i/ports/1/gids/1; do
		((SECONDS < end)) || { echo "rxe$i has no address" >&2; exit 1; }
	done
done
