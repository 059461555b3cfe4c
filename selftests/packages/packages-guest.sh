#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs in a plain guest (packages.sh), as a unit of systemd, once per boot: tests the packages after
# a reboot, and the system after their removal. Its output is TAP, in parts; the last boot prints
# the plan.
set -uo pipefail

here=$(dirname "$0")
exec >/dev/virtio-ports/out 2>&1
# a guest with one boot finds its stage on the kernel's command line
stage=$(sed -nE 's/.*packages\.stage=([a-z]+).*/\1/p' /proc/cmdline)
stage=${stage:-$(cat "$here/stage")}
n=$(cat "$here/count" 2>/dev/null || echo 0)
work=$(mktemp -d)
chmod 755 "$work"

ok() { # STATUS NAME
	n=$((n + 1))
	(($1)) && printf 'not '
	echo "ok $n - $stage/$2"
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

wait_for() { # SECONDS COMMAND...: wait until it succeeds
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		((SECONDS < end)) || { echo "# waited in vain: $*"; return 1; }
		sleep 0.3
	done
}

as_user() { runuser -u daq -- "$@"; }
board() { rashpactl --json list | jq -r "[.. | objects | select(.vendor? == \"0x1234\" or .vendor? == \"1234\")][0].$1"; }
next() { # STAGE: reboot, and go on with STAGE
	echo "$1" >"$here/stage"
	echo "$n" >"$here/count"
	sync
	systemctl reboot
	exit 0
}

last() { # end of the last boot
	echo "1..$n"
	sync
	systemctl poweroff
	exit 0
}

version_of() { dpkg-query -W -f '${Version}' "$1"; }

# the objects of /etc/rashpa exist, and a member of the group can use them
there() {
	is "module-loaded: the module is loaded" "$(cat /sys/module/rashpa/version)" "$(version_of rashpa-dkms)"
	is "rashpa-apply-ran: rashpa-apply ran" "$(systemctl show -P Result -P ActiveState rashpa-apply | xargs)" "success active"
	[[ $(systemctl show -P ExecMainExitTimestampMonotonic rashpa-apply) -lt \
		$(systemctl show -P ActiveEnterTimestampMonotonic sysinit.target) ]]
	ok $? "before-system-initialized: it ran before the system was initialized"
	is "buffer: the buffer exists" "$(stat -c '%U:%G %a' /dev/rashpa/buffer/ring0)" "root:rashpa 660"
	is "board-profile: the board is bound, with its profile" "$(board node) $(board profile)" "fpga0 true"
	udevadm settle
	is "nodes-group: nodes belong to the group" "$(stat -c '%G %a' /dev/rashpa/memory /dev/rashpa/fpga0 | xargs)" "rashpa 660 rashpa 660"
	good "doctor-no-problem: doctor reports no problem" rashpactl doctor
	is "no-unit-failed: no unit failed" "$(systemctl --failed --plain --no-legend | grep -v packages-test)" ""
}

daemons_are_there() { [[ -S /run/remu-one/socket && -S /run/romulu-one/socket ]]; }

daemons() {
	good "daemons-start: daemons start" systemctl start remu@one romulu@one
	wait_for 60 daemons_are_there
	ok $? "listen: daemons listen"
}

# experiment DETECTOR RECEIVER FLOW: write an experiment with these elements and attributes
experiment() {
	cat >"$work/experiment.xml" <<-END
		<experiment xmlns="urn:rashpa:1" version="1.0" name="packages">
			<detector name="board" at="unix:/run/remu-one/socket">
				<dataset>generate:4</dataset> <bunch>4</bunch> $1
			</detector>
			<receiver name="judge" at="unix:/run/romulu-one/socket"> <buffer>ring0</buffer> <check/> $2 </receiver>
			<flow from="board" to="judge" $3/>
		</experiment>
	END
}

run() { # NAME: a member of the group leads the experiment
	good "member-group-streams: a member of the group streams $1" as_user rashpa-manager run --json=/tmp/report.json "$work/experiment.xml"
	is "all-sent: all images arrived $1" "$(jq -c '.flows[0] | [.sent, .received, .lost, .unaccounted]' /tmp/report.json)" "[40,40,0,0]"
	rm -f /tmp/report.json
}

# a member of the group leads daemons that run as units, over PCIe
streams() {
	daemons
	is "no-group-not: a user outside the group may not" "$(runuser -u nobody -- rashpactl buffer info ring0 >/dev/null 2>&1; echo $?)" 1
	experiment "<fpga>0</fpga> <images>40</images>" "" 'transport="pcie"'
	run "over PCIe"
	good "python-finds-library: Python finds the library" as_user python3 -c 'import rashpa; rashpa.Buffer'
	systemctl stop remu@one romulu@one
}

listens() { grep -qs ":1389 00000000:0000 0A" /proc/net/tcp; }

# by_hand TRANSPORT ADDRESS DEVICES: a member of the group runs both ends, without daemons
by_hand() {
	local -a at=() from=()
	local receiver
	[[ $1 != udp ]] || from=(--rate 4)
	[[ ! ${3-} ]] || { at=(--device rxe1); from=(--device rxe0); }
	as_user romulu --buffer ring0 --check --transport "$1" --listen "$2:5001" "${at[@]}" --dataset generate:4 --timeout 120 \
		--json=/tmp/romulu.json >"$work/romulu" 2>&1 &
	receiver=$!
	wait_for 60 listens
	as_user remu --transport "$1" --to "$2:5001" "${from[@]}" --dataset generate:4 --bunch 4 --images 40 --timeout 120 \
		>"$work/remu" 2>&1
	ok $? "member-group-sends: $1: a member of the group sends" || sed 's/^/# /' "$work/remu"
	wait "$receiver"
	ok $? "receives: $1: a member of the group receives" || sed 's/^/# /' "$work/romulu"
	is "receives/all-sent: $1: all images arrived" "$(jq -c '[.frames, .corrupt, .lost, .incomplete]' /tmp/romulu.json)" "[40,0,0,0]" ||
		{ jq -c . /tmp/romulu.json; grep ^Udp: /proc/net/snmp; ip -s link show lo; } | sed 's/^/# /'
	rm -f /tmp/romulu.json
}

# The same over networks, by hand and by units. Users other than root get as much room for bursts of
# datagrams as the administrator grants: the value of network.rst. The rate is one that an emulated
# machine can follow.
network() {
	echo 67108864 >/proc/sys/net/core/rmem_max
	good "soft-roce-ends-cable: a cable has soft-RoCE at both ends" bash "$here/rxe.sh"
	by_hand udp 127.0.0.1
	by_hand roce 10.77.0.2 devices
	daemons
	experiment "<images>40</images> <rate>4</rate>" "" 'transport="udp" address="127.0.0.1:5001"'
	run "over UDP"
	experiment "<device>rxe0</device> <images>40</images>" "<device>rxe1</device>" \
		'transport="roce" address="10.77.0.2:5001"'
	run "over RoCE"
	systemctl stop remu@one romulu@one
}

counted() { rashpactl --json top --count 1 --interval 0.5 ring0 | jq '[.streams[].stacks] | max // 0'; }
went_on() { (($(counted) > $1)); } # STACKS

# install new packages while a stream runs
upgrade() {
	local old manager before
	old=$(version_of rashpa-tools)
	daemons
	experiment "<fpga>0</fpga> <rate>5</rate>" "" 'transport="pcie"'
	as_user rashpa-manager run --json=/tmp/report.json "$work/experiment.xml" >"$work/manager" 2>&1 &
	manager=$!
	wait_for 120 went_on 0
	ok $? "stream-runs-no: an endless stream runs" || sed 's/^/# /' "$work/manager"
	# the administrator changes a file of the package
	echo '# mine' >>/etc/security/limits.d/rashpa.conf
	good "new-packages-installed: new packages are installed" sh -c "apt-get install -y $here/new/*.deb </dev/null"
	grep '^rashpa' "$work/said" | sort -u | sed 's/^/# /'
	is "they-are: versions are the new ones" "$old $(version_of rashpa-tools) $(version_of rashpa-dkms)" "$(cat "$here/versions")"
	before=$(counted)
	wait_for 60 went_on "$before"
	ok $? "stream-behind-stack: the stream goes on after stack $before" || sed 's/^/# /' "$work/manager"
	is "module-buffer-board: module, buffer and board stay" "$(cat /sys/module/rashpa/version) $(ls /dev/rashpa/buffer) $(board node) $(board profile)" \
		"$old ring0 fpga0 true"
	is "daemons: daemons go on" "$(systemctl is-active remu@one romulu@one rashpa-apply | xargs)" "active active active"
	kill -INT "$(grep -lx rashpa-manager /proc/[0-9]*/comm | cut -d/ -f3)"
	wait "$manager"
	is "ends: the manager ends after SIGINT" $? 0 || sed 's/^/# /' "$work/manager"
	is "all-accounted: all images are accounted for" "$(jq -c '.flows[0] | [.sent == .received, .received > 0, .lost, .unaccounted]' /tmp/report.json)" \
		"[true,true,0,0]"
	rm -f /tmp/report.json
	# doctor prints the commands that finish the upgrade
	rashpactl doctor >"$work/doctor"
	grep -A 1 "^note *module .*loaded, version $old, but the tools are $(version_of rashpa-tools), and the module that is installed is $(version_of rashpa-dkms)" \
		"$work/doctor" | grep -q "modprobe -r rashpa; modprobe rashpa; rashpactl apply; or reboot"
	ok $? "doctor-plan: doctor prints a plan" || sed 's/^/# /' "$work/doctor"
	is "dkms-new-module: DKMS lists only the new module" "$(dkms status rashpa | cut -d, -f1 | sort -u)" "rashpa/$(version_of rashpa-dkms)"
	is "administrator-changed-kept: the administrator's change is kept" "$(tail -n 1 /etc/security/limits.d/rashpa.conf)" "# mine"
	systemctl stop remu@one romulu@one
	# follow that plan, without a reboot
	good "plan/buffers: the plan removes buffers" rashpactl buffer remove ring0
	good "module: the plan reloads the module" sh -c "modprobe -r rashpa; modprobe rashpa; rashpactl apply"
	is "new-one-buffer: the new module runs, with buffer and board" \
		"$(cat /sys/module/rashpa/version) $(ls /dev/rashpa/buffer) $(board node) $(board profile)" \
		"$(version_of rashpa-dkms) ring0 fpga0 true"
	good "new/doctor-no-problem: doctor reports no problem" rashpactl doctor
	rashpactl doctor | grep -q "^ok *module "
	ok $? "plan: doctor prints no plan any more"
}

# make both daemons log a line, about a client that sends nonsense
nonsense() {
	cat >"$work/nonsense.py" <<-END
		import contextlib, socket
		for tool in "remu", "romulu":
		    with socket.socket(socket.AF_UNIX) as s, contextlib.suppress(ConnectionError):
		        s.connect(f"/run/{tool}-one/socket")
		        s.sendall(b"nonsense")
		        s.recv(1)
	END
	daemons
	good "nonsense-answered-end: daemons close the connection after nonsense" as_user python3 "$work/nonsense.py"
	systemctl stop remu@one romulu@one
	journalctl --sync
}

# metrics of Prometheus in the folder of a collector
metrics() {
	local file=/var/lib/prometheus/node-exporter/rashpa.prom
	mkdir -p "${file%/*}"
	good "metrics-start: the unit of metrics starts" systemctl start rashpa-metrics
	# a stream that has ended has the state "ended" only
	wait_for 100 grep -qs '^rashpa_stream_state{buffer="ring0",state="ended"} 1$' "$file"
	ok $? "version-stream: metrics contain version and stream" || sed 's/^/# /' "$file"
	is "metrics-version: and the version" "$(grep -c "^rashpa_build_info{version=\"$(version_of rashpa-tools)" "$file")" 1
	systemctl stop rashpa-metrics
}

# packages STATUS: names of our packages that are installed (ii), or removed but configured (rc)
packages() {
	dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 'rashpa*' 'librashpa*' python3-rashpa | sed -n "s/^$1 *//p" | sort -u
}

# fields FIELD UNIT: values of a field in a unit's lines of the journal
fields() { journalctl -b -o json -u "$2" | jq -r ".$1 // empty" | sort -u | xargs; }

case $stage in
first)
	is "user-one-group: the user is in the group" "$(id -Gn daq)" "daq rashpa"
	there
	streams
	network
	upgrade
	next second
	;;
second)
	there
	streams
	metrics
	nonsense
	is "journal-knows-lines: lines of the journal name their subject" "$(fields RASHPA_BUFFER rashpa-apply) $(fields RASHPA_DETECTOR remu@one) $(fields RASHPA_RECEIVER romulu@one)" \
		"ring0 one one"
	for unit in rashpa-apply rashpa-metrics rashpa-board@fpga0 rashpa-manager@one remu@one romulu@one; do
		good "systemd-analyze-security/${unit/@/-}: systemd-analyze security accepts $unit" systemd-analyze security --threshold=40 "$unit.service"
	done
	# changes of the administrator stay, also changes in a running system
	echo '{ "buffers": [ { "name": "more", "size": "2M" } ] }' >/etc/rashpa/buffers.d/more.conf
	good "same-version-again: the same version can be installed again" apt-get install -y --reinstall "$here"/new/rashpa-tools_*.deb
	is "buffer-board: buffer and board stay" "$(ls /dev/rashpa/buffer/ring0) $(board node)" "/dev/rashpa/buffer/ring0 fpga0"
	good "configuration-kept: configuration is kept" test -s /etc/rashpa/buffers.d/more.conf -a -s /etc/rashpa/boards.d/one.conf
	good "apply-new: apply makes the new buffer" rashpactl apply
	# remove everything
	rashpactl unbind fpga0
	rashpactl buffer remove ring0
	rashpactl buffer remove more
	good "module-unloaded: the module can be unloaded" modprobe -r rashpa
	mapfile -t names < <(packages ii)
	good "packages-removed: packages are removed" apt-get remove -y "${names[@]}"
	is "packages/configuration-kept: configuration is kept" "$(find /etc/rashpa -type f | wc -l)" 5
	mapfile -t names < <(packages rc)
	good "packages-purged: packages are purged: ${names[*]}" apt-get purge -y "${names[@]}"
	is "none-left: no package is left" "$(packages ii)$(packages rc)" ""
	is "nothing-left-administrator: only the administrator's folder is left" "$(find / -xdev \( -path /proc -o -path /sys -o \
		-path "$here" -o -path /tmp -o -path /run -o -path /var/log -o -path /var/lib/dpkg -o -path /var/cache \) -prune -o \
		-path /etc/rashpa -prune -print -o \( -iname '*rashpa*' -o -name 'remu*' -o -name 'romulu*' \) -print | sort | xargs)" \
		"/etc/rashpa"
	is "that-is: it contains the administrator's files" "$(find /etc/rashpa -type f | sort | xargs)" \
		"$(echo /etc/rashpa/{boards.d/one,buffers.d/more,buffers.d/one,remu-one,romulu-one}.conf)"
	is "kernel-finds-no: the kernel finds no module" "$(modinfo rashpa 2>&1 | grep -c "not found")" 1
	next third
	;;
third)
	[[ ! -e /dev/rashpa && ! -d /sys/module/rashpa ]]
	ok $? "nothing-back: neither nodes nor the module came back"
	is "nothing/no-unit-failed: no unit failed" "$(systemctl --failed --plain --no-legend)" ""
	last
	;;
# a kernel that requires signatures, and does not know the key of DKMS
refused)
	signer=$(modinfo -F signer rashpa)
	[[ $signer ]]
	ok $? "dkms-signed-module: DKMS has signed the module: $signer"
	is "kernel-wants-signatures: the kernel requires signatures" "$(cat /sys/module/module/parameters/sig_enforce)" Y
	[[ ! -d /sys/module/rashpa ]]
	ok $? "module-not-loaded: the module is not loaded"
	modprobe rashpa >"$work/said" 2>&1
	is "modprobe-why: modprobe prints the reason" "$? $(grep -o "Key was rejected by service" "$work/said")" "1 Key was rejected by service"
	rashpactl doctor >"$work/doctor"
	grep -A 1 "^problem *signing .*signed modules required; rashpa.ko is signed by \"$signer\", it does not know that key" \
		"$work/doctor" | grep -q "Key was rejected by service.*mokutil --import /var/lib/dkms/mok.pub"
	ok $? "doctor-why: doctor prints the reason and the remedy" || sed 's/^/# /' "$work/doctor"
	is "rest-system: the rest of the system is up" "$(systemctl --failed --plain --no-legend | grep -vE 'packages-test|rashpa-apply')" ""
	# run its script without the part that builds the module again
	sed '/^# Automatically added by dh_dkms/,/^# End automatically added/d' /var/lib/dpkg/info/rashpa-dkms.postinst |
		sh -s configure >"$work/said" 2>&1
	grep -q "^rashpa-dkms: .*mokutil --import /var/lib/dkms/mok.pub" "$work/said"
	ok $? "package-installed: the package prints them, too, when it is installed" || sed 's/^/# /' "$work/said"
	last
	;;
# Secure Boot, and firmware with the key of DKMS
signed)
	is "secure-boot: Secure Boot is on" "$(mokutil --sb-state)" "SecureBoot enabled"
	grep -q '\[integrity\]' /sys/kernel/security/lockdown
	ok $? "kernel-locked: the kernel is locked down"
	rashpactl doctor >"$work/doctor"
	grep -q "^[a-z]* *signing .*secure boot on, lockdown integrity, signed modules required; rashpa.ko is signed by \"$(modinfo -F signer rashpa)\", it knows" "$work/doctor"
	ok $? "doctor: the kernel knows the key" || sed 's/^/# /' "$work/doctor"
	there
	streams
	# the kernel refuses another key here, too
	cp "$(modinfo -n rashpa)" "$work/"
	xz -d "$work"/rashpa.ko.xz 2>/dev/null
	modprobe -r rashpa 2>/dev/null || { rashpactl unbind fpga0; rashpactl buffer remove ring0; modprobe -r rashpa; }
	openssl req -new -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=stranger -outform DER -keyout "$work/key" \
		-out "$work/certificate" 2>/dev/null
	strip --strip-debug "$work/rashpa.ko"
	good "module-stranger-signed: a stranger signs a module" "/lib/modules/$(uname -r)/build/scripts/sign-file" sha256 "$work/key" "$work/certificate" \
		"$work/rashpa.ko"
	is "refused: the kernel refuses it" "$(insmod "$work/rashpa.ko" 2>&1 | grep -oE "Key was rejected by service|Operation not permitted") $(ls -d /sys/module/rashpa 2>/dev/null)" \
		"Key was rejected by service "
	good "dkms-not: the kernel accepts the module of DKMS" modprobe rashpa
	last
	;;
esac
