#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs in the guest of stranger.sh, as a unit of systemd: the commands of README that need the
# machine, one after the other. Supplies the values that README leaves to the reader: the address of
# the board, and an experiment. TAP.
exec >/dev/virtio-ports/out 2>&1
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin BOARD
BOARD=$(lspci -D -d 1234:5250 | head -n 1 | cut -d' ' -f1)
cd "$(mktemp -d)" || exit 1
n=0
ok() { # STATUS NAME
	n=$((n + 1))
	(($1)) && printf 'not '
	echo "ok $n - $2"
	return "$1"
}
cat >experiment.xml <<-END
	<experiment xmlns="urn:rashpa:1" version="1.0" name="stranger">
		<detector name="board" at="unix:/run/remu.socket">
			<fpga>0</fpga> <dataset>generate:4</dataset> <bunch>4</bunch> <images>40</images>
		</detector>
		<receiver name="judge" at="unix:/run/romulu.socket"> <buffer>ring0</buffer> <check/> </receiver>
		<flow from="board" to="judge" transport="pcie"/>
	</experiment>
END
# run each line unchanged; if it starts a process in the background, wait until that listens
while read -r command; do
	eval "$command" >said 2>&1
	ok $? "command: ${command%%#*}" || sed 's/^/# /' said
	if [[ $command =~ unix:([^ ]*) ]]; then
		for _ in {1..200}; do
			[[ ! -S ${BASH_REMATCH[1]} ]] || break
			sleep 0.3
		done
	elif [[ $command == "remu "* ]]; then
		wait
		[[ $(stat -c %s out.raw) == $((100 * 1024 * 512 * 2)) ]]
		ok $? "images: the file contains the images"
	fi
done </root/test/guest.commands
kill %1 %2 2>/dev/null
wait
echo "1..$n"
sync
systemctl poweroff
