#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Does the debug kernel notice what it is there for, and does the lab fail for it? Plants
# one defect a class (modules/rashpa_defect.c) and looks for its name in the kernel's log,
# among the lines that fail a run. That a run without a defect is good, the check's other
# guests show. TAP.
set -uo pipefail

cd "$(dirname "$(readlink -f "$0")")/../.." || exit
lab=selftests/lab/lab
plant=/sys/kernel/debug/rashpa-defect
load="insmod build/modules/debug/tests/rashpa_defect.ko"
work=$(mktemp -d /tmp/rashpa-defects.XXXXXX)
trap 'rm -rf "$work"' EXIT
mkdir -p build/lab
log=build/lab/defects.log
n=0 failed=0

# What a report of each defect says.
declare -A says=(
	[rcu]="suspicious RCU usage"
	[sleep]="BUG: sleeping function called from invalid context"
	[inversion]="possible circular locking dependency"
	[refcount]="refcount_t: underflow"
	[shift]="UBSAN: shift-out-of-bounds"
	[bounds]="UBSAN: array-index-out-of-bounds"
	[timer]="ODEBUG: free active .* timer_list"
	[dma-unmap]="DMA-API: .*rashpa-defect.*free DMA memory it has not allocated"
	[dma-unchecked]="DMA-API: .*rashpa-defect.*failed to check map error"
	[dma-leak]="DMA-API: .*pending DMA allocations while released"
	[list]="list_del corruption"
	[leak]="kmemleak: [0-9]+ new suspected memory leaks"
	[use-after-free]="BUG: KASAN: slab-use-after-free in defect_use_after_free"
	[out-of-bounds]="BUG: KASAN: slab-out-of-bounds in defect_out_of_bounds"
	[double-free]="BUG: KASAN: double-free in defect_double_free"
)

ok() { # CONDITION-STATUS NAME
	n=$((n + 1))
	if (($1)); then
		failed=$((failed + 1))
		echo "not ok $n - $2"
	else
		echo "ok $n - $2"
	fi
	return "$1"
}

# guest OPTION... -- COMMAND: sets status; what the lab says is in $work/said
guest() {
	status=0
	"$lab" run --kernel debug --smp 1 --timeout 900 --log "$log" "$@" \
		>"$work/out" 2>"$work/said" || status=$?
}

# ends WANTED NAME
ends() {
	((status == $1))
	ok $? "$2" || { echo "# exit status $status, expected $1"; sed 's/^/# /' "$work/said" | tail -n 20; }
}

# Where the report of one defect begins and ends in the log; the leak's comes last.
lines_of() { # NAME
	if [[ $1 == leak ]]; then
		awk '/rashpa-defect: planted double-free/, 0' "$log"
	else
		awk -v name="$1" '$0 ~ "rashpa-defect: planting " name "\r?$", $0 ~ "rashpa-defect: planted " name "\r?$"' "$log"
	fi
}

# All in one guest; of what is only reported once, all reports are wanted.
# shellcheck disable=SC2016 # the variables are the guest's
guest --keep-going --append kasan_multi_shot -- sh -ec '
	'"$load"'
	echo 1 >/sys/kernel/debug/dma-api/all_errors
	for defect in $(cat '$plant'); do
		echo "$defect" >'$plant'
		echo "$defect"
	done'
ends 0 "a guest in which every defect was planted, and the lab was told to go on"
while read -r defect; do
	[[ ${says[$defect]-} ]] || { ok 1 "$defect: nobody knows what it says"; continue; }
	lines_of "$defect" >"$work/lines"
	grep -Eq -- "${says[$defect]}" "$work/lines"
	ok $? "$defect: the log names it" || sed 's/^/#   /' "$work/lines"
	# the lab prints the lines that fail a run as NUMBER:LINE
	sed -nE 's/^lab:   [0-9]+://p' "$work/said" | grep -Eq -- "${says[$defect]}"
	ok $? "$defect: ... in a line that fails a run"
	unset "says[$defect]"
done <"$work/out"
# the line that fails a run counts leaks; that this one is among them, the traces say
lines_of leak | grep -a "kmemleak: .*defect_leak" >/dev/null
ok $? "leak: ... and it is the planted one"
((${#says[@]} == 0))
ok $? "each was planted" || echo "# not: ${!says[*]}"

guest -- sh -ec "$load; echo use-after-free >$plant"
ends 100 "a defect ends the run with status 100"
grep -q "KASAN" "$work/said"
ok $? "... and the lab says which"

echo "1..$n"
((failed == 0))
