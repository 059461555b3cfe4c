#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check seconds=5
# romulu counts a stream of a program that names no dataset, and compares it only if it is asked to.
# The driver is files (librashpa-fake.so). TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
tools=$PWD/${RASHPA_TOOLS:-build/tools}
export LD_LIBRARY_PATH=$tools RASHPA_DEV
coproc program {
	PYTHONPATH=$tools/python RASHPA_LIBRARY=$tools/librashpa-fake.so \
		python3 -B tools/processing/tests/program.py 2>&1
}
input=${program[1]}
read -r RASHPA_DEV <&"${program[0]}"

# receive NAME STATUS OPTION...
receive() {
	local status=0
	rm -f "$work/report"
	timeout 60 "$tools/romulu-fake" --buffer frames --tune from-start --timeout 30 --json="$work/report" "${@:3}" \
		>"$work/out" 2>&1 || status=$?
	is "$1" "$status" "$2" || sed 's/^/# /' "$work/out"
}
says() { # NAME WORDS
	grep -q "$2" "$work/out"
	ok $? "$1" || sed 's/^/# /' "$work/out"
}

receive "count: all frames of a separate stream" 0
is "count-report: the report has the mode, and no count of what was not compared" \
	"$(jq -c '[.mode, .source, .frames, .corrupt, .duplicate, .unwritten]' "$work/report")" '["count",null,7,null,null,null]'
timeout 60 "$tools/romulu-fake" --buffer frames --tune from-start --timeout 30 >"$work/out" 2>&1
is "count-text: nor does the text" "$? $(grep -c corrupt "$work/out") $(grep -c "^frames  *7 " "$work/out")" "0 0 1" ||
	sed 's/^/# /' "$work/out"
receive "nothing-to-compare: --check of a stream that names no dataset fails" 1 --check
says "nothing-said: the sentence has the reason and the remedy" "names no dataset.*--dataset.*--check"
truncate -s $((7 * 64 * 96 * 2)) "$work/black.raw"
black=(--dataset "$work/black.raw" --geometry 96x64,u16)
receive "compare: with a dataset that is given it is compared" 4 --check "${black[@]}"
is "compare-report: and each frame is wrong" "$(jq -c '[.mode, .corrupt]' "$work/report")" '["check",7]'
says "zero: a pixel of 0 is printed as the others" "expected 0x0000, got 0x[0-9a-f]\{4\}"
receive "given-for-nothing: a dataset without --check is wrong usage" 2 "${black[@]}"
says "given-remedy: which the sentence says" "require --check"

exec {input}>&-
wait
finish
