#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check kernel=each seconds=5
# Documentation/ABI describes the devices, parameters and keys of fdinfo that the module shows, and
# no others.
# shellcheck source-path=SCRIPTDIR source=../lib/shell.sh
. "$(dirname "$0")/../lib/shell.sh"
abi=Documentation/ABI/testing

# Compare two sorted lists: only what one of them has.
differ() { diff "$1" "$2" | sed -n 's/^</# not described:/p; s/^>/# not there:/p'; }

sed -n 's/^What:\t*//p' "$abi"/* | sort >"$work/described"
for parameter in /sys/module/rashpa/parameters/*; do
	echo "$parameter"
done | sort >"$work/parameters"
is "parameters: each parameter is described" "$(differ "$work/parameters" <(grep ^/sys/module "$work/described"))" ""

# the mode in brackets is that of the file
awk '/^What:/ { what[n++] = $2 } /^Description:/ { for (i in what) print what[i], $2; delete what; n = 0 }' \
	"$abi/sysfs-module-rashpa" >"$work/modes"
wrong=$(while read -r parameter mode; do
	is_mode=$(stat -c %a "$parameter")
	[[ $mode == "(RW)" && $is_mode == 644 || $mode == "(RO)" && $is_mode == 444 ]] || echo "$parameter $mode $is_mode"
done <"$work/modes")
is "modes: the mode of each parameter is described" "$wrong" ""

# devices: names as described, and nothing but attributes of the driver core
rashpactl buffer create st-abi 4K >/dev/null
patterns=$(grep ^/sys/class "$work/described" | sed 's/<N>/[0-9]+/; s/<NAME>/.+/')
names=$(printf '%s\n' /sys/class/rashpa/* | grep -vxE "$patterns")
is "devices: each device is described" "$names" ""
kinds=$(for pattern in $patterns; do printf '%s\n' /sys/class/rashpa/* | grep -qxE "$pattern" || echo "$pattern"; done)
is "kinds: each kind of device is there" "$kinds" ""
ls /sys/class/mem/null | sort >"$work/core"
printf '%s\n' device waiting_for_supplier >>"$work/core"
attributes=$(for device in /sys/class/rashpa/*; do ls "$device"; done | sort -u | grep -vxFf "$work/core")
is "attributes: devices have only attributes of the driver core" "$attributes" ""
rashpactl buffer remove st-abi

grep -rhoE 'rashpa-[a-z]+:\\t' drivers | sed 's/:.*//' | sort -u >"$work/keys"
is "fdinfo: each key of fdinfo is described" \
	"$(differ "$work/keys" <(grep -ohE '^\s+rashpa-[a-z]+' "$abi/procfs-fdinfo-rashpa" | tr -d '\t' | sort -u))" ""

# the kernel's form: each entry has these lines
form=$(awk 'function check() { if (seen && seen != "dkcx") print FILENAME ": " last " " seen }
	/^What:/ && body { check(); seen = ""; body = 0 } /^What:/ { last = $2 }
	/^Date:/ { seen = seen "d" } /^KernelVersion:/ { seen = seen "k" }
	/^Contact:/ { seen = seen "c" } /^Description:/ { seen = seen "x"; body = 1 } END { check() }' "$abi"/*)
is "form: each entry has date, version, contact and description" "$form" ""
finish
