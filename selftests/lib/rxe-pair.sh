# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Two network namespaces, a (10.1.0.1, va, rxa) and b (10.1.0.2, vb, rxb), and a cable with
# soft-RoCE at both ends. rxe_routed adds a path through a router: a (10.3.1.1, va1, rxa1), b
# (10.3.2.1, vb1, rxb1), with packets of 1500 bytes. Sourced; needs the newest kernel.

at() { ip netns exec "$@"; }

# await_gids ADDRESS DEVICE...: wait until the tables of global identifiers list the address
await_gids() {
	local address=$1 device end=$((SECONDS + 20 * ${RASHPA_SLOW:-1}))
	for device in "${@:2}"; do
		until grep -q "ffff:$address" "/sys/class/infiniband/$device/ports/1/gids/"*; do
			((SECONDS < end)) || { echo "soft-RoCE has no address"; return 1; }
		done
	done
}

# rxe_pair: fails, with the reason, if this kernel has no soft-RoCE for namespaces. Does nothing if
# the namespaces exist.
rxe_pair() {
	local side i=1

	[[ ! -e /run/netns/b ]] || return 0
	if ! modprobe -q veth || ! modprobe -q rdma_rxe; then
		echo "no soft-RoCE in this kernel"
		return 1
	fi
	for side in a b; do
		ip netns add $side || return
	done
	ip link add va netns a mtu 9000 type veth peer name vb netns b mtu 9000 || return
	# large enough that the kernel drops nothing
	sysctl -q net.core.netdev_max_backlog=20000
	for side in a b; do
		at $side ip link set lo up
		at $side ip addr add 10.1.0.$i/24 dev v$side
		at $side ip link set v$side up
		i=2
	done
	at a rdma link add rxa type rxe netdev va && at b rdma link add rxb type rxe netdev vb || return
	await_gids 0a01 rxa rxb
}

rxe_routed() {
	local side i=1

	ip netns add r || return
	at r sysctl -qw net.ipv4.ip_forward=1
	for side in a b; do
		ip link add "v${side}1" netns $side type veth peer name "vr$i" netns r || return
		at $side ip addr add "10.3.$i.1/24" dev "v${side}1"
		at $side ip link set "v${side}1" up
		at r ip addr add "10.3.$i.254/24" dev "vr$i"
		at r ip link set "vr$i" up
		at $side ip route add 10.3.0.0/16 via "10.3.$i.254"
		at $side rdma link add "rx${side}1" type rxe netdev "v${side}1" || return
		i=2
	done
	await_gids 0a03 rxa1 rxb1
}

# need_rxe_pair: without it all of the test is skipped
need_rxe_pair() {
	# shellcheck disable=SC2154 # shell.sh sets work
	rxe_pair >"$work/err" 2>&1 && return
	skip "pair: soft-RoCE in two namespaces" "$(tr '\n' ' ' <"$work/err")"
	finish
}
