# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Two network namespaces, a (10.1.0.1, va, rxa) and b (10.1.0.2, vb, rxb), with soft-RoCE at both ends
# of a cable between them. Sourced; needs the newest kernel.

at() { ip netns exec "$@"; }

has_gid() { grep -q ffff:0a01 "/sys/class/infiniband/$1/ports/1/gids/"*; }

# rxe_pair: fails where this kernel has no soft-RoCE for namespaces, and says why. Does nothing where
# they are already.
rxe_pair() {
	local side i=1 end

	[[ ! -e /run/netns/b ]] || return 0
	if ! modprobe -q veth || ! modprobe -q rdma_rxe; then
		echo "no soft-RoCE in this kernel"
		return 1
	fi
	for side in a b; do
		ip netns add $side || return
	done
	ip link add va netns a mtu 9000 type veth peer name vb netns b mtu 9000 || return
	# what is lost is lost because of us
	sysctl -q net.core.netdev_max_backlog=20000
	for side in a b; do
		at $side ip link set lo up
		at $side ip addr add 10.1.0.$i/24 dev v$side
		at $side ip link set v$side up
		i=2
	done
	at a rdma link add rxa type rxe netdev va && at b rdma link add rxb type rxe netdev vb || return
	# addresses become entries of the tables of global identifiers, a little later
	end=$((SECONDS + 20))
	until has_gid rxa && has_gid rxb; do
		((SECONDS < end)) || { echo "soft-RoCE has no address"; return 1; }
	done
}
