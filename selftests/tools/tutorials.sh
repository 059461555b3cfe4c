#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=off seconds=90
# Runs the commands of tutorials and guides that say so, as written there, except the address and the number of
# the board.
. "$(dirname "$0")/../lib/shell.sh"
. "$(dirname "$0")/../lib/mpi.sh"
export PYTHONPATH=$PWD/build/tools/python PYTHONDONTWRITEBYTECODE=1 RASHPA_LIBRARY=$PWD/build/tools/librashpa.so.0

have_fpga && rashpactl unbind "$bdf" >/dev/null || bdf=
edu=$(lspci -D -d 1234:11e8 | tail -n 1 | cut -d' ' -f1)
left() { ls /dev/rashpa /dev/rashpa/buffer 2>/dev/null; }
before=$(left)
mkdir "$work/home" "$work/home/examples"
cp -r build/tools/examples/* tools/examples/*.py "$work/home/examples"
# Before each block; a receiver that listens has to do so before its sender comes. Commands of the
# background have not failed either.
cat >"$work/begin" <<'END'
set -eE
trap 'echo "line $LINENO: $BASH_COMMAND"' ERR
listens() { grep -qs ':1389 00000000:0000 0A' /proc/net/tcp; }
daemons_listen() {
	local address
	for address in $(jobs -r | sed -n 's/.*--daemon \([^ ]*\).*/\1/p'); do
		[[ -S ${address#unix:} ]] || grep -qs ":$(printf %04X "${address#tls:}") .* 0A " /proc/net/tcp /proc/net/tcp6 || return
	done
}
listen_if_it_does() {
	daemons_listen || return
	[[ $(jobs -r) != *--listen* ]] || listens || return
	[[ $(jobs -r) != *--socket* || -S /tmp/simulation.sock ]]
}
between() { wait_for 60 listen_if_it_does; }
wait() { local job; for job in $(jobs -p); do builtin wait "$job" || { echo "status $? of $job"; exit 1; }; done; }
END
{ declare -f wait_for; declare -p silence; } >>"$work/begin"
mkdir -p "$work/blocks" /etc/rashpa/{buffers,boards}.d
mapfile -t pages < <(grep -l '^\.\. run: ' Documentation/*.rst Documentation/tutorials/*.rst)
python3 -B Documentation/tests/tutorials.py scripts "$work/blocks" "${pages[@]}"
is "pages: there are six tutorials, and eight guides" "$(compgen -G "$work/blocks/*.sh" | wc -l)" 14
cp /etc/hosts "$work/hosts"
echo 127.0.0.1 det daq >>/etc/hosts
for blocks in "$work"/blocks/*.sh; do
	name=$(basename "$blocks" .sh)
	if [[ ! $bdf ]] && grep -q "^between fpga" "$blocks"; then
		skip "$name" "no software FPGA in this guest"
		continue
	fi
	if [[ ! $edu ]] && grep -q "^between edu" "$blocks"; then
		skip "$name" "no edu in this guest (lab run --device edu)"
		continue
	fi
	{ cat "$work/begin"; sed "s/0000:03:00\.0/$bdf/; s/0000:00:04\.0/$edu/; s/fpga0/fpga$fpga/; s/--fpga 0/--fpga $fpga/; s/<fpga>0</<fpga>$fpga</" "$blocks"; echo wait; } >"$work/script"
	(cd "$work/home" && exec bash "$work/script") >"$work/said" 2>&1
	ok $? "commands: $name: its commands do what it says" || {
		tail -n 40 "$work/said" | sed 's/^/# /'
		rashpactl unbind "$bdf"
		rashpactl unbind "$edu"
		for buffer in ring0 frames net0 part0 part1 whole0; do rashpactl buffer remove "$buffer"; done
	} 2>/dev/null
done
cat "$work/hosts" >/etc/hosts
rm -f /etc/rashpa/{profiles.d/board.json,buffers.d/frames.conf,boards.d/detector.conf} /etc/modprobe.d/rashpa.conf /etc/modules-load.d/rashpa.conf
is "nothing-left: nothing is left" "$(left)" "$before"
finish
