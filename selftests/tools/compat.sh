#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=50
# test: tier=nightly kernel=6.1 seconds=70
# Programs compiled in other ways: with the first published header, and for 32 bits on
# this kernel (pointers travel as u64, mmap offsets and records are the same).
# shellcheck source-path=SCRIPTDIR source=../lib/shell.sh
. "$(dirname "$0")/../lib/shell.sh"

# part NAME COMMAND...: one test here is one of the program's; its numbers are not ours
part() {
	local name=$1 line status
	shift
	timeout 300 "$@" >"$work/out" 2>&1
	status=$?
	# no process for a line: on the debug kernel they begin slowly
	while IFS= read -r line; do
		if [[ $line =~ ^ok\ *[0-9]*\ *-?\ *(.*[^ ])\ *"# SKIP "(.*) ]]; then
			skip "$name/${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
		elif [[ $line =~ ^(not\ )?ok\ *[0-9]*\ *-?\ *(.*) ]]; then
			ok "$((!!${#BASH_REMATCH[1]}))" "$name/${BASH_REMATCH[2]}"
		elif [[ $line == "#"* || $line == "Bail out!"* ]]; then
			echo "# ${line#"# "}"
		fi
	done <"$work/out"
	((status == 0 || status == 4))
	ok $? "$name/ends: the program ends well"
}

node=
if have_fpga; then
	node=/dev/rashpa/fpga$fpga
	part first-header build/selftests/old/first-header "$node"
else
	skip "first-header: first header" "no software FPGA"
fi

# Debian 13 leaves 32-bit programs on; others want ia32_emulation=1 on the command line.
if ! build/selftests/32/old/first-header /dev/null >"$work/out" 2>&1 &&
	! grep -q "^Bail out!\|^ok\|^not ok" "$work/out"; then
	skip "32-bits: 32 bits" "this kernel runs no 32-bit programs (ia32_emulation=1)"
	finish
fi
[[ ! $node ]] || part first-header-32 build/selftests/32/old/first-header "$node"
for t in ${RASHPA_COMPAT_TESTS:-abi event map memory mmap name pin ring}; do
	part "$t-32" "build/selftests/32/${t}_test"
done
finish
