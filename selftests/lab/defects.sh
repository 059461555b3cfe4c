#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: where=host kernel=newest seconds=20
# test: where=host kernel=debug seconds=45
# Does the kernel's log name each planted defect, and does the lab fail for it? Plants one
# defect of each class (modules/rashpa_defect.c) and searches the kernel's log for its name,
# among the lines that fail a run. The check's other guests show that a run without a defect
# succeeds. defects.sh [debug|newest]: the kernel; default: RASHPA_KERNEL, or debug. TAP.
set -uo pipefail

cd "$(dirname "$(readlink -f "$0")")/../.." || exit
kernel=${1:-${RASHPA_KERNEL:-debug}}
lab=selftests/lab/lab
plant=/sys/kernel/debug/rashpa-defect
load="insmod build/modules/$kernel/tests/rashpa_defect.ko"
work=$(mktemp -d /tmp/rashpa-defects.XXXXXX)
trap 'rm -rf "$work"' EXIT
mkdir -p build/lab
log=build/lab/defects-$kernel.log
n=0 failed=0

# Words of each defect's report. A stock kernel does not notice the other defects, or dies of a
# corrupted list.
declare -A says=(
	[refcount]="refcount_t: underflow"
	[shift]="UBSAN: shift-out-of-bounds"
	[bounds]="UBSAN: array-index-out-of-bounds"
)
case $kernel in
debug) says+=(
	[rcu]="suspicious RCU usage"
	[sleep]="BUG: sleeping function called from invalid context"
	[inversion]="possible circular locking dependency"
	[timer]="ODEBUG: free active .* timer_list"
	[dma-unmap]="DMA-API: .*rashpa-defect.*free DMA memory it has not allocated"
	[dma-unchecked]="DMA-API: .*rashpa-defect.*failed to check map error"
	[dma-leak]="DMA-API: .*pending DMA allocations while released"
	[list]="list_del corruption"
	[leak]="kmemleak: [0-9]+ new suspected memory leaks"
	[use-after-free]="BUG: KASAN: slab-use-after-free in defect_use_after_free"
	[read-after-free]="BUG: KASAN: slab-use-after-free in defect_read_after_free"
	[page-after-free]="BUG: KASAN: use-after-free in defect_page_after_free"
	[out-of-bounds]="BUG: KASAN: slab-out-of-bounds in defect_out_of_bounds"
	[double-free]="BUG: KASAN: double-free in defect_double_free"
) ;;
*) says+=( # KFENCE guards a few allocations, and the slab's own checks all others
	[use-after-free]="Poison overwritten|BUG: KFENCE: use-after-free write in defect_use_after_free"
	[read-after-free]="BUG: KFENCE: use-after-free read in defect_read_after_free"
	[page-after-free]="pagealloc: memory corruption"
	[out-of-bounds]="Right Redzone overwritten|BUG: KFENCE: (out-of-bounds write|memory corruption) in defect_"
	[double-free]="BUG kmalloc.*(Object already free|are to be freed)|BUG: KFENCE: invalid free in defect_"
) ;;
esac

ok() { # CONDITION-STATUS ID: SENTENCE
	n=$((n + 1))
	if (($1)); then
		failed=$((failed + 1))
		echo "not ok $n - $2"
	else
		echo "ok $n - $2"
	fi
	return "$1"
}

# guest OPTION... -- COMMAND: sets status; $work/said contains the lab's messages
guest() {
	status=0
	"$lab" run --kernel "$kernel" --smp 1 --timeout 900 --log "$log" "$@" \
		>"$work/out" 2>"$work/said" || status=$?
}

# ends WANTED ID: SENTENCE
ends() {
	((status == $1))
	ok $? "$2" || { echo "# exit status $status, expected $1"; sed 's/^/# /' "$work/said" | tail -n 20; }
}

# Lines of the log until the next defect. Leaks are searched at the end, after the last defect.
lines_of() { # NAME
	awk -v name="${1/#leak/double-free}" '/rashpa-defect: planting / { inside = $0 ~ " " name "\r?$" } inside' "$log"
}

# All defects in one guest. kasan_multi_shot: report each defect, not only the first one. Slabs
# are checked when they are used next, so ask for a check.
# shellcheck disable=SC2016 # the variables are the guest's
guest --keep-going --append kasan_multi_shot -- sh -ec '
	'"$load"'
	echo 1 2>/dev/null >/sys/kernel/debug/dma-api/all_errors || true
	for defect in $(cat '$plant'); do
		case " $* " in *" $defect "*) ;; *) continue ;; esac
		echo "$defect" >'$plant'
		for slab in /sys/kernel/slab/kmalloc*-64/validate; do
			[ ! -e "$slab" ] || echo 1 >"$slab"
		done
		echo "$defect"
	done' sh "${!says[@]}"
ends 0 "all: with --keep-going, a guest with every defect succeeds"
while read -r defect; do
	lines_of "$defect" >"$work/lines"
	grep -Eq -- "${says[$defect]}" "$work/lines"
	ok $? "$defect: the log has \"${says[$defect]}\"" || sed 's/^/#   /' "$work/lines"
	# the lab prints the lines that fail a run as NUMBER:LINE
	sed -nE 's/^lab:   [0-9]+://p' "$work/said" | grep -Eq -- "${says[$defect]}"
	ok $? "$defect.fails: in a line that fails a run"
	unset "says[$defect]"
done <"$work/out"
# the line that fails a run only counts leaks; the traces show the planted one
[[ $kernel != debug ]] || {
	lines_of leak | grep -a "kmemleak: .*defect_leak" >/dev/null
	ok $? "leak.planted: the planted leak is among them"
}
((${#says[@]} == 0))
ok $? "each: all defects were planted" || echo "# not: ${!says[*]}"

# on one kernel: the lab handles such a line in the same way on all
if [[ $kernel != debug ]]; then
	guest -- sh -ec "$load; echo double-free >$plant"
	ends 100 "status: a defect ends the run with status 100"
	grep -Eq "already free|are to be freed|invalid free" "$work/said"
	ok $? "names: the lab prints the defect"
fi

echo "1..$n"
((failed == 0))
