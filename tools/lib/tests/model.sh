#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=200
# Runs inside the lab's root: spin tries all interleavings of the protocol of stream-place.c
# (places.pml), and of protocols with one mistake, which it has to find. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"

command -v spin >/dev/null || { skip "places-model: places.pml" "no spin here (lab exec --full)"; finish; }

# explore OPTION...: prints the number of errors, which is 0 or 1. Repeats the answer for the same model.
explore() {
	local model=$PWD/tools/lib/tests/places.pml at memo
	memo=/var/cache/rashpa/checked/$({ spin -V; cat "$model"; echo "$*"; } | sha256sum | cut -c-40)
	cat "$memo" 2>/dev/null && return
	at=$(mktemp -d "$work/spin.XXX")
	(cd "$at" && spin -a "$@" "$model" && gcc -O2 -DSAFETY -DCOLLAPSE -DMEMLIM=3000 -o pan pan.c &&
		./pan -m100000 -n) >"$at/log" 2>&1
	# a search that was not whole proves nothing
	if grep -q "search depth too small\|out of memory\|Error" "$at/log"; then
		sed 's/^/# /' "$at/log"
		return
	fi
	sed -n 's/.*errors: //p' "$at/log" | tee "$at/errors"
	[[ ! -s $at/errors ]] || cp "$at/errors" "$memo"
}

is "join-leave: a place joins and leaves" "$(explore -DN=2)" 0
is "share: two workers share a place" "$(explore -DN=2 -DSHARES -DALONE)" 0
is "worker-dies: one of them dies" "$(explore -DN=2 -DSHARES -DALONE -DDIES=0)" 0
is "place-dies: the consumer of a place dies" "$(explore -DN=2 -DDIES=2)" 0
is "join-unseen: credit misses a place that joins" "$(explore -DN=3 -DBROKEN=1)" 1
is "join-ignored: credit does not wait for it" "$(explore -DN=3 -DBROKEN=2)" 1
is "ring-once: a doorbell keeps old credit" "$(explore -DN=3 -DBROKEN=3)" 1
is "orphans-untold: stacks of a dead worker stay" "$(explore -DN=3 -DSHARES -DALONE -DDIES=0 -DBROKEN=4)" 1
is "next-ends: so does the stack that it just claimed" "$(explore -DN=3 -DSHARES -DALONE -DDIES=0 -DBROKEN=5)" 1
finish
