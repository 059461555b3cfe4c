#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=off seconds=20
# Loading with parameters: "ids" binds functions at once; a wrong value fails the load, is
# named in the kernel's log, and leaves nothing.
. "$(dirname "$0")/../lib/shell.sh"

module=build/modules/${RASHPA_KERNEL:?set by the lab}/rashpa.ko

# functions VENDOR:DEVICE: on the bus, sorted
functions() { lspci -D -n -d "$1" | cut -d' ' -f1 | sort; }

# bound VENDOR:DEVICE: those of them that are ours
bound() {
	local bdf
	for bdf in $(functions "$1"); do
		[[ /sys/bus/pci/drivers/rashpa/$bdf -ef /sys/bus/pci/devices/$bdf ]] && echo "$bdf"
	done
}

# refused NAME REASON PARAMETER: REASON is a pattern of what the log says
refused() {
	local before status=0
	before=$(dmesg | wc -l)
	insmod "$module" "$3" 2>"$work/out" || status=$?
	holds "module-not-loaded: $1: the module is not loaded" "$status != 0"
	dmesg | tail -n +$((before + 1)) | grep -q "rashpa: $2"
	ok $? "log-names-value: $1: the log names the value" || dmesg | tail -n 5 | sed 's/^/#   /'
	[[ ! -e /sys/module/rashpa && ! -e /sys/bus/pci/drivers/rashpa && ! -e /dev/rashpa ]]
	ok $? "nothing-left: $1: nothing is left"
	# an open node would hold a module that is being removed
	dmesg | tail -n +$((before + 1)) | grep -q "bound as"
	holds "nothing-bound-meanwhile: $1: and nothing was bound meanwhile" "$? == 1"
	((status)) || rmmod rashpa
}

rmmod rashpa
ok $? "module: the module goes"
# tests before this one have bound some, for as long as there is a driver of that name
for override in /sys/bus/pci/devices/*/driver_override; do
	echo >"$override"
done
edu=$(functions 1234:11e8)
if [[ $edu ]]; then
	refused "ids, not a pair" '.*"edu" is not vendor:device' ids=edu
	refused "ids, five digits" '.*"12340:11e8" is not' ids=12340:11e8
	refused "ids, more after it" '.*"1234:11e8-y" is not' ids=1234:11e8-y
	refused "ids, the second is empty" '.*"" is not' ids=1234:11e8,
	insmod "$module" ids=1234:11e8
	ok $? "ids/loads: ids: it loads"
	is "ids/all-functions-id: ids: all functions with this id are bound" "$(bound 1234:11e8)" "$edu"
	is "ids/read: ids: and can be read" "$(cat /sys/module/rashpa/parameters/ids)" 1234:11e8
	is "ids/nodes: ids: they have nodes" "$(rashpactl --json list | jq '.devices | length')" \
		"$(wc -w <<<"$edu")"
	is "ids/others-not-bound: ids: others are not bound" "$(bound 1234:5250)" ""
	rmmod rashpa
	ok $? "ids/module: ids: the module goes"
	both=$(bound 1234:11e8)
	is "ids/functions-free: ids: and the functions are free" "$both" ""
	insmod "$module" ids=1234:5250,1234:11e8
	is "ids-two/functions-bound: ids, two: functions of both are bound" "$(bound 1234:5250; bound 1234:11e8)" \
		"$(functions 1234:5250; functions 1234:11e8)"
	rmmod rashpa
	ok $? "ids-two/module: ids, two: the module goes"
	insmod "$module" ids=
	is "ids-empty/loads-binds-nothing: ids, empty: it loads, and binds nothing" "$?$(bound 1234:11e8)" 0
	rmmod rashpa
else
	skip "ids: ids" "no edu in this guest (lab run --device edu)"
fi
refused "p2p_bridge" ".*maybe.*" p2p_bridge=maybe
refused "limit_mib" ".*-1.*" limit_mib=-1
insmod "$module"
ok $? "module-again: the module comes again"
finish
