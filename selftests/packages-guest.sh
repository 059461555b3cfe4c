#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs in a plain guest (packages.sh), as a unit of systemd, once a boot: what is there after a reboot, and after
# the packages are gone. Its output is TAP, in parts; the last boot has the plan.
set -uo pipefail

here=$(dirname "$0")
exec >/dev/virtio-ports/out 2>&1
stage=$(cat "$here/stage")
n=$(cat "$here/count" 2>/dev/null || echo 0)
work=$(mktemp -d)

ok() { # STATUS NAME
	n=$((n + 1))
	(($1)) && printf 'not '
	echo "ok $n - $stage: $2"
	return "$1"
}

is() { # NAME ACTUAL EXPECTED
	[[ $2 == "$3" ]]
	ok $? "$1" || echo "# got \"$2\", expected \"$3\""
}

good() { # NAME COMMAND...
	local name=$1
	shift
	"$@" >"$work/said" 2>&1
	ok $? "$name" || tail -n 30 "$work/said" | sed 's/^/# /'
}

as_user() { runuser -u daq -- "$@"; }
board() { rashpactl --json list | jq -r "[.. | objects | select(.vendor? == \"0x1234\" or .vendor? == \"1234\")][0].$1"; }
next() { # STAGE: after a reboot
	echo "$1" >"$here/stage"
	echo "$n" >"$here/count"
	sync
	systemctl reboot
	exit 0
}

# what stands in /etc/rashpa is there, and a member of the group can use it
there() {
	is "the module is loaded" "$(cat /sys/module/rashpa/version)" "$(dpkg-query -W -f '${Version}' rashpa-dkms)"
	is "rashpa-apply ran" "$(systemctl show -P Result -P ActiveState rashpa-apply | xargs)" "success active"
	[[ $(systemctl show -P ExecMainExitTimestampMonotonic rashpa-apply) -lt \
		$(systemctl show -P ActiveEnterTimestampMonotonic sysinit.target) ]]
	ok $? "before the system was initialized"
	is "the buffer is there" "$(stat -c '%U:%G %a' /dev/rashpa/buffer/ring0)" "root:rashpa 660"
	is "the board is there, with its profile" "$(board node) $(board profile)" "fpga0 true"
	udevadm settle
	is "nodes are the group's" "$(stat -c '%G %a' /dev/rashpa/memory /dev/rashpa/fpga0 | xargs)" "rashpa 660 rashpa 660"
	good "doctor has no problem" rashpactl doctor
	is "no unit failed" "$(systemctl --failed --plain --no-legend | grep -v packages-test)" ""
}

# a member of the group leads daemons that are units, over PCIe
streams() {
	good "daemons start" systemctl start remu@one romulu@one
	for _ in {1..100}; do
		[[ -S /run/remu-one/socket && -S /run/romulu-one/socket ]] && break
		sleep 0.3
	done
	cat >"$work/experiment.xml" <<-END
		<experiment xmlns="urn:rashpa:1" version="1.0" name="packages">
			<detector name="board" at="unix:/run/remu-one/socket">
				<fpga>0</fpga> <dataset>generate:4</dataset> <bunch>4</bunch> <images>40</images>
			</detector>
			<receiver name="judge" at="unix:/run/romulu-one/socket"> <buffer>ring0</buffer> </receiver>
			<flow from="board" to="judge" transport="pcie"/>
		</experiment>
	END
	chmod 755 "$work"
	is "who is in no group may not" "$(runuser -u nobody -- rashpactl buffer info ring0 >/dev/null 2>&1; echo $?)" 1
	good "a member of the group streams" as_user rashpa-manager run --json=/tmp/report.json "$work/experiment.xml"
	is "all that was sent came" "$(jq -c '.flows[0] | [.sent, .received, .lost, .unaccounted]' /tmp/report.json)" "[40,40,0,0]"
	good "Python finds the library" as_user python3 -c 'import rashpa; rashpa.Buffer'
	systemctl stop remu@one romulu@one
}

case $stage in
first)
	is "the user is in one group more" "$(id -Gn daq)" "daq rashpa"
	there
	streams
	next second
	;;
second)
	there
	# what the administrator changes stays, also where he changes it in a running system
	echo '{ "buffers": [ { "name": "more", "size": "2M" } ] }' >/etc/rashpa/buffers.d/more.conf
	good "the same version again: an upgrade" apt-get install -y --reinstall "$here"/debs/rashpa-tools_*.deb
	is "buffer and board are still there" "$(ls /dev/rashpa/buffer/ring0) $(board node)" "/dev/rashpa/buffer/ring0 fpga0"
	good "configuration is kept" test -s /etc/rashpa/buffers.d/more.conf -a -s /etc/rashpa/boards.d/one.conf
	good "apply makes what is new" rashpactl apply
	# everything goes
	rashpactl unbind fpga0
	rashpactl buffer remove ring0
	rashpactl buffer remove more
	good "the module can be unloaded" modprobe -r rashpa
	mapfile -t names < <(dpkg-query -W -f '${Package}\n' 'rashpa*' 'librashpa*' python3-rashpa | sort -u)
	good "packages are purged: ${names[*]}" apt-get purge -y "${names[@]}"
	is "nothing of ours is left but what the administrator wrote" "$(find / -xdev \( -path /proc -o -path /sys -o \
		-path "$here" -o -path /tmp -o -path /run -o -path /var/log -o -path /var/lib/dpkg -o -path /var/cache \) -prune -o \
		-path /etc/rashpa -prune -print -o \( -iname '*rashpa*' -o -name 'remu*' -o -name 'romulu*' \) -print | sort | xargs)" \
		"/etc/rashpa"
	is "that is" "$(find /etc/rashpa -type f | sort | xargs)" \
		"$(echo /etc/rashpa/{boards.d/one,buffers.d/more,buffers.d/one,remu-one,romulu-one}.conf)"
	is "the kernel finds no module" "$(modinfo rashpa 2>&1 | grep -c "not found")" 1
	next third
	;;
third)
	[[ ! -e /dev/rashpa && ! -d /sys/module/rashpa ]]
	ok $? "nothing of ours came back"
	is "no unit failed" "$(systemctl --failed --plain --no-legend)" ""
	echo "1..$n"
	sync
	systemctl poweroff
	;;
esac
