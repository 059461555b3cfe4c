#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=25
# Runs inside the lab's root: the same streams into two device programs. TAP. Two models must not
# differ, a model and a misbehaving model must. The model and the second implementation, if it was
# built, must not differ. Programs that start boards leave no board. RASHPA_BUILD: the build folder.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../lib/shell.sh
. "$(dirname "$0")/../lib/shell.sh"
build=${RASHPA_BUILD:-build}
differ=$build/selftests/conformance/differ
model=$build/tools/rashpa-fpga
selftest=$build/tools/rashpa-fpga-selftest
second=$build/tools/rashpa-fpga-second

# differ must find the misbehaviour and save the stream, which shows it again, but not for two good
# models.
found() { # COMMAND
	local kept="$work/stream.txt"
	rm -f "$kept"
	! "$differ" "$model" "$model" --tell "$1" --streams 200 --save "$kept" || return
	[[ -s $kept ]] || return
	! "$differ" "$model" "$model" --tell "$1" --replay "$kept" || return
	"$differ" "$model" "$model" --replay "$kept"
}

# Kill the command once it runs BOARDS boards (0: it ends without a kill): no process may keep its
# output open.
takes_along() { # BOARDS COMMAND...
	local boards=$1 pid i status
	shift
	rm -f "$work/pipe"
	mkfifo "$work/pipe" || return
	"$@" >"$work/pipe" 2>&1 &
	pid=$!
	exec 3<"$work/pipe"
	for ((i = 0; boards && i < 1000; i++)); do
		(($(pgrep -c -P "$pid") < boards)) || break
		sleep 0.01
	done
	((i < 1000)) || echo "it starts no boards"
	((!boards)) || kill -KILL "$pid"
	timeout 30 cat <&3 >/dev/null
	status=$?
	exec 3<&-
	wait "$pid" 2>/dev/null
	return "$((status || i == 1000))"
}

good "model-itself: two models do not differ" "$differ" "$model" "$model" --seconds 2
for word in "lose lock 2" "lose interrupt 3" "twice interrupt 0" "wild 0x100000000" "drop on"; do
	good "model-one: the model and one with \"$word\" differ" found "$word"
done
if [[ -x $second ]]; then
	good "model-second-implementation: the model and the second implementation do not differ" \
		"$differ" selftests/conformance/model.sh "$second" --seconds 4
fi
good "differ-killed-leaves: differ leaves no board when it is killed" \
	takes_along 2 "$differ" "$model" "$model" --seconds 60
good "self-test-killed-leaves: the self-test leaves no board when it is killed" \
	takes_along 1 "$selftest" program/speed
good "tests-self-test-leave: some tests of the self-test leave no board" \
	takes_along 0 "$selftest" clock/held
finish
