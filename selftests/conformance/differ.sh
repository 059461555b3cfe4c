#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs inside the lab's root: the same streams into two device programs. TAP. The model and
# itself must not differ, the model and one that was told to misbehave must; then the model and
# the second implementation, where there is one. RASHPA_BUILD: the build folder.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
build=${RASHPA_BUILD:-build}
differ=$build/selftests/conformance/differ
model=$build/tools/rashpa-fpga
second=$build/tools/rashpa-fpga-second
out=$(mktemp -d) || exit
trap 'rm -rf "$out"' EXIT
n=0 bad=0

# good NAME COMMAND...: its status is the test
good() {
	local name=$1
	shift
	n=$((n + 1))
	if "$@" >"$out/log" 2>&1; then
		echo "ok $n - $name"
	else
		grep -v '^ok \|^1\.\.' "$out/log" | tail -n 60 | sed 's/^/# /'
		bad=1
		echo "not ok $n - $name"
	fi
}

# It must be found, kept as a text, which shows it again, and is good for an honest model.
found() { # COMMAND
	local kept="$out/stream.txt"
	rm -f "$kept"
	! "$differ" "$model" "$model" --tell "$1" --streams 200 --save "$kept" || return
	[[ -s $kept ]] || return
	! "$differ" "$model" "$model" --tell "$1" --replay "$kept" || return
	"$differ" "$model" "$model" --replay "$kept"
}

good "the model and itself" "$differ" "$model" "$model" --seconds 4
for word in "lose lock 2" "lose interrupt 3" "twice interrupt 0" "wild 0x100000000" "drop on"; do
	good "the model and one that was told: $word" found "$word"
done
if [[ -x $second ]]; then
	good "the model and the second implementation" "$differ" "$model" "$second" --seconds 8
fi
echo "1..$n"
exit "$bad"
