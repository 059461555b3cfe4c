#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=on seconds=125
# Units as systemd starts them, sandboxed: the daemons, with their own user, and metrics. Their processes
# run in a namespace in which systemd is the first process, as in a container.
. "$(dirname "$0")/../lib/shell.sh"

have_fpga || { skip "units: units" "no software FPGA in this guest"; finish; }
systemd=/usr/lib/systemd/systemd
[[ -x $systemd ]] || { skip "units: units" "no systemd"; finish; }
groupadd -rf rashpa
chgrp -R rashpa /dev/rashpa
install -m 755 build/tools/{remu,romulu,rashpa-manager} /usr/local/bin
install -m 644 build/tools/{remu,romulu}@.service /etc/systemd/system
mkdir -p /etc/rashpa
rashpactl buffer create led 64M >/dev/null && chgrp rashpa /dev/rashpa/buffer/led
ok $? "buffer: buffer"
mountpoint -q /sys/fs/cgroup || mount -t cgroup2 cgroup2 /sys/fs/cgroup
container=lab unshare --pid --mount --fork --mount-proc "$systemd" --system --unit=basic.target \
	--log-target=null --show-status=false >"$work/systemd" 2>&1 &
unshare=$!
in_it() { nsenter -t "$(pgrep -P "$unshare")" -p -m "$@"; }
answers() { in_it systemctl list-units >/dev/null 2>&1; }
wait_for 120 answers
ok $? "systemd-answers: systemd answers" || sed 's/^/# /' "$work/systemd"

for tool in remu romulu; do
	in_it systemctl start "$tool@one" >"$work/out" 2>&1
	ok $? "one-starts/$tool: $tool@one starts" || { sed 's/^/# /' "$work/out"; in_it systemctl status "$tool@one" | sed 's/^/# /'; }
	wait_for 30 in_it test -S "/run/$tool-one/socket"
	ok $? "listens: it listens" || in_it systemctl status "$tool@one" | sed 's/^/# /'
	pid=$(in_it systemctl show -P MainPID "$tool@one")
	holds "user-not-root: as a user that is not root" "$(in_it stat -c %u "/proc/$pid") > 0"
	is "group-rashpa: in the group rashpa" "$(in_it stat -c %G "/proc/$pid")" rashpa
	is "not-group-cannot: users outside the group cannot reach it" "$(in_it stat -c %a "/run/$tool-one")" 750
done
cat >"$work/experiment.xml" <<-END
	<experiment xmlns="urn:rashpa:1" version="1.0" name="units">
		<detector name="board" at="unix:/run/remu-one/socket">
			<fpga>$fpga</fpga> <dataset>generate:4</dataset> <bunch>4</bunch> <images>80</images>
		</detector>
		<receiver name="judge" at="unix:/run/romulu-one/socket">
			<buffer>led</buffer> <write>images.raw</write>
		</receiver>
		<flow from="board" to="judge" transport="pcie"/>
	</experiment>
END
in_it rashpa-manager run --json="$work/report.json" "$work/experiment.xml" >"$work/out" 2>&1
is "run: a run" $? 0 || sed 's/^/# /' "$work/out"
is "sent: all images arrived" "$(jq -c '.flows[0] | [.sent, .received, .lost, .unaccounted]' "$work/report.json")" "[80,80,0,0]"
is "unit-write: and is where the unit may write" "$(in_it stat -L -c %s /var/lib/rashpa/romulu-one/images.raw)" \
	$((80 * 1024 * 512 * 2))
sed -i 's|<write>images.raw|<write>/usr/images.raw|' "$work/experiment.xml"
in_it rashpa-manager run "$work/experiment.xml" >"$work/out" 2>&1
is "elsewhere-not: elsewhere it may not" "$? $(grep -m 1 -o "/usr/images.raw: Read-only" "$work/out")" \
	"1 /usr/images.raw: Read-only" || sed 's/^/# /' "$work/out"
for tool in remu romulu; do
	in_it systemctl stop "$tool@one"
	ok $? "one-stops/$tool: $tool@one stops"
	is "without-error: without an error" "$(in_it systemctl show -P Result "$tool@one")" success
done
# metrics, which are root's, for a collector's folder
folder=/var/lib/prometheus/node-exporter
mkdir -p "$folder"
install -m 755 build/tools/rashpactl /usr/local/bin
install -m 644 build/tools/rashpa-metrics.service /etc/systemd/system
echo INTERVAL=0.2 >/etc/rashpa/metrics.conf
in_it systemctl daemon-reload
in_it systemctl start rashpa-metrics >"$work/out" 2>&1
ok $? "rashpa-metrics-starts: rashpa-metrics starts" || sed 's/^/# /' "$work/out"
wait_for 30 grep -qs '^rashpa_stream_state{buffer="led",state="ended"} 1$' "$folder/rashpa.prom"
ok $? "file-stream: its file has the stream" || in_it systemctl status rashpa-metrics | sed 's/^/# /'
in_it systemctl stop rashpa-metrics
is "stops-without-error: it stops without an error, and takes its file away" \
	"$(in_it systemctl show -P Result rashpa-metrics) $(ls "$folder")" "success "
# what shall be there after a boot, made with few rights
install -m 644 build/tools/rashpa-{apply,board@}.service /etc/systemd/system
mkdir -p /etc/rashpa/{buffers,boards,profiles}.d
cp tools/data/profiles/*.json /etc/rashpa/profiles.d
echo '{ "buffers": [ { "name": "early", "size": "2M" } ] }' >/etc/rashpa/buffers.d/one.conf
echo "{ \"boards\": [ { \"function\": \"$bdf\" } ] }" >/etc/rashpa/boards.d/one.conf
rashpactl unbind "$bdf"
in_it systemctl daemon-reload
in_it systemctl start rashpa-apply >"$work/out" 2>&1
ok $? "rashpa-apply-starts: rashpa-apply starts" || { sed 's/^/# /' "$work/out"; in_it systemctl status rashpa-apply | sed 's/^/# /'; }
is "buffer-group: the buffer is the group's" "$(stat -c '%U:%G' /dev/rashpa/buffer/early)" root:rashpa
node=$(rashpactl --json list | jq -r "[.. | objects | select(.bdf? == \"$bdf\")][0] | select(.profile) | .node")
[[ $node == fpga* ]]
ok $? "board-bound-profile: the board is bound, with its profile"
in_it systemctl start "rashpa-board@$node"
ok $? "udev-starts-board: the unit that udev starts for a board has nothing left to do"
rashpactl buffer remove early
rm -r /etc/rashpa/{buffers,boards,profiles}.d
in_it systemctl poweroff --force >/dev/null 2>&1 || kill -KILL "$(pgrep -P "$unshare")"
wait "$unshare" 2>/dev/null
rashpactl buffer remove led
ok $? "buffer-not-held: the buffer is not held"
finish
