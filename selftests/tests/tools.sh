#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The tools' answers to wrong input: an exit status, a sentence that names the thing and
# the remedy, and nothing has changed. And their JSON can be read.
. "$(dirname "$0")/../shell.sh"

# refuses STATUS PATTERN COMMAND...: and leaves buffers and functions as they were
refuses() {
	local want=$1 pattern=$2 got before
	shift 2
	before=$(rashpactl --json buffer list; rashpactl --json list)
	timeout 20 "$@" >"$work/out" 2>"$work/err"
	got=$?
	if ((got == want)) && grep -Eq -- "$pattern" "$work/err" &&
		[[ $before == "$(rashpactl --json buffer list; rashpactl --json list)" ]]; then
		ok 0 "refused: $*"
	else
		echo "# exit status $got, expected $want; expected a message like \"$pattern\", got:"
		sed 's/^/#   /' "$work/err" "$work/out"
		ok 1 "refused: $*"
	fi
}

rashpactl buffer create here 4M >/dev/null
refuses 1 "a/b.*letters" rashpactl buffer create a/b 4M
refuses 1 "\.hidden" rashpactl buffer create .hidden 4M
refuses 1 "longer than 63" rashpactl buffer create "$(printf 'x%.0s' {1..80})" 4M
refuses 1 "here.*exists" rashpactl buffer create here 4M
refuses 2 "0" rashpactl buffer create zero 0
refuses 2 "4Q" rashpactl buffer create unit 4Q
refuses 2 "99999999T" rashpactl buffer create huge 99999999T
refuses 2 "-4M|option" rashpactl buffer create negative -4M
refuses 1 "large.*(MiB|GiB)" rashpactl buffer create large 512G
refuses 1 "node.*7" rashpactl buffer create node7 4M --node 7
refuses 2 "backend" rashpactl buffer create odd 4M --backend magic
refuses 2 "." rashpactl buffer create
refuses 2 "nonsense" rashpactl nonsense
refuses 1 "nosuch" rashpactl buffer remove nosuch
refuses 1 "nosuch" rashpactl buffer info nosuch
refuses 1 "fpga77" rashpactl map here fpga77
refuses 1 "0000:7f:1f.7" rashpactl bind 0000:7f:1f.7
refuses 1 "dead:beef" rashpactl bind dead:beef
refuses 1 "fpga77" rashpactl event watch fpga77
refuses 1 "nosuch.*rashpactl buffer create" remu --buffer nosuch --images 1
refuses 1 "nosuch.*rashpactl buffer create" romulu --buffer nosuch
refuses 2 "buffer" remu
refuses 2 "udp.*pcie|not built" remu --buffer here --transport udp
refuses 2 "outside" remu --buffer here --dtp 1000,500,100x100

rashpactl --json doctor >"$work/json"
jq -e . "$work/json" >/dev/null
ok $? "doctor --json is JSON"
rashpactl --json buffer list | jq -e '.[]? // .buffers[] | select(.name == "here" and .length == 4194304)' >/dev/null
ok $? "buffer list --json has the buffer and its length"

if have_fpga; then
	refuses 1 "$bdf.*(already|bound|fpga$fpga)" rashpactl bind "$bdf"
	refuses 1 "nosuch" rashpactl map nosuch "fpga$fpga"
	refuses 1 "here.*(MiB|bytes|need)" remu --buffer here --fpga "$fpga" --images 10
	refuses 1 "/nowhere" remu --buffer here --fpga "$fpga" --dataset /nowhere
	refuses 1 "vector 999|999" rashpactl event watch "fpga$fpga" --vector 999
	refuses 3 "no stream" romulu --buffer here --timeout 1
	rashpactl --json map here "fpga$fpga" >"$work/json"
	is "map --json: one segment" "$(jq .segments "$work/json")" 1
	rashpactl event watch "fpga$fpga" --device --count 1 --timeout 20 --json >"$work/event" &
	watcher=$!
	# the watcher's channel turns bus mastering on; until then there is nothing to stop
	while kill -0 "$watcher" 2>/dev/null && [[ ! -s $work/event ]]; do
		rashpactl quiesce "fpga$fpga" >/dev/null
	done
	wait "$watcher"
	ok $? "event watch sees a quiesce"
	jq -e . "$work/event" >/dev/null
	ok $? "and prints it as JSON"
else
	skip "bound functions" "no software FPGA in this guest"
fi
rashpactl buffer remove here
ok $? "remove"
finish
