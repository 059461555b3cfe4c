# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Two virtual machines with a wire between them. Sourced by demonstrations, with lab, series, out and
# wire (a folder) set; the part inside is wire.sh.

# side NUMBER NAME SCRIPT [OPTION-OF-LAB...]: machine 1 or 2 runs SCRIPT NAME FOLDER; instead of the
# shell, so that a signal reaches the lab. Its end of the wire is a socket of datagrams.
side() {
	local number=$1 name=$2 script=$3
	shift 3
	# shellcheck disable=SC2154 # of the caller
	exec "$lab" run --kernel "$series" --memory 1536M --smp 1 --timeout 1500 --log "$out/$name.log" \
		--netdev "dgram,id=wire,local.type=unix,local.path=$wire/$number,remote.type=unix,remote.path=$wire/$((3 - number))" \
		--device "virtio-net-pci,netdev=wire,host_mtu=9000,mac=52:54:00:00:00:0$number" \
		"$@" -- "$script" "$name" "$out" ${more:+$more}
}
