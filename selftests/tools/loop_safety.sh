#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=on smp=2 seconds=120
# A GPU (lavapipe) drives the board by a ring in its memory, and the loop ends early: the program is
# killed, the board is removed, which revokes the doorbell's window, or reset. Another process has the
# dma-buf of the memory all the time: afterwards nothing writes there, while the board works for others.
. "$(dirname "$0")/../lib/shell.sh"

have_fpga || { skip "kept: a loop that ends early" "no software FPGA in this guest"; finish; }
[[ -w /dev/udmabuf ]] || { skip "kept: a loop that ends early" "no udmabuf, from which lavapipe's memory is exported"; finish; }
export VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.json

# keep PROCESS: take the dma-buf of its GPU's memory, and print "kept". At each line of the input, the memory is filled
# and "filled" printed; at the next one, words that differ from that are counted
cat >"$work/keep.py" <<-'END'
	import ctypes, glob, mmap, os, sys
	process = int(sys.argv[1])
	pidfd = os.pidfd_open(process)
	for info in glob.glob(f"/proc/{process}/fdinfo/*"):
	    with open(info) as f:
	        text = f.read()
	    if "exp_name:\tudmabuf" in text:
	        size = int(text.split("size:")[1].split()[0])
	        fd = ctypes.CDLL(None, use_errno=True).syscall(438, pidfd, int(os.path.basename(info)), 0)	# pidfd_getfd
	        break
	memory = mmap.mmap(fd, size)
	full = b"\xa5" * size
	print("kept", flush=True)
	while sys.stdin.readline():
	    memory[:] = full
	    print("filled", flush=True)
	    sys.stdin.readline()
	    print(sum(a != b for a, b in zip(memory[:], full)), flush=True)
END

runs() { [[ $(status '.rings[0].events // 0') -gt 2000 ]] || gone "$looper"; }
begin() { # a loop without an end, whose GPU drives
	rashpa-bench loop --fpga "fpga$fpga" --events 10000000 --gpu vulkan --memory gpu --only gpu >"$work/out" 2>"$work/err" &
	looper=$!
	wait_for 120 runs
	coproc keep { exec python3 -B "$work/keep.py" "$looper" 2>&1; }
	read -ru "${keep[0]}" said
	is "kept: $1: another process has the memory, too" "$said" kept
}
# unwritten NAME: the memory stays as it is filled now, while the board works in another memory
unwritten() {
	echo >&"${keep[1]}"
	read -ru "${keep[0]}" said
	[[ $1 != killed ]] || again "$1"
	rashpa-bench loop --fpga "fpga$fpga" --events 4000 >"$work/next" 2>&1
	is "next: $1: the next loop has the board" $? 0 || sed 's/^/# /' "$work/next"
	echo >&"${keep[1]}"
	read -ru "${keep[0]}" said
	is "unwritten: $1: no byte of the memory was written" "$said" 0
	eval "exec ${keep[1]}>&-"
	# shellcheck disable=SC2154 # a word of coproc
	wait "$keep_PID"
}

# a register of BAR 0, and a store to a BAR
register() { rashpactl fpga read "fpga$fpga" "0:$(($1))"; }
store() { rashpactl fpga write "fpga$fpga" "$1:$(($2))" $(($3)) >/dev/null; }
stopped_again() { (($(register "$ring+4") & 4)); }
# again NAME: start the ring with the registers that the loop has left, and ring for a descriptor
again() {
	local entry
	entry=$(register 0x5c)
	while ((($(register entry) & 0xffff) != 8)); do entry=$((entry + 16)); done
	ring=$(register entry+4) doorbell=$(register entry+12)
	store 0 "$ring+0x14" "$(register "$ring+0x14") + 1"
	store 0 "$ring" 1
	store 2 "$doorbell+0x10" 1
	wait_for 20 stopped_again
	ok $? "again: $1: a ring that starts with the same registers ends with a fault"
}

begin "killed"
kill -KILL "$looper"
wait "$looper" 2>/dev/null
is "killed-rest: the board is at rest" "$(status .busy)" false
unwritten "killed"

begin "removed"
echo 1 >"/sys/bus/pci/devices/$bdf/remove"
wait "$looper"
is "removed-ends: a loop whose board is removed fails, though its GPU rings on" $? 1 || sed 's/^/# /' "$work/out" "$work/err"
echo 1 >/sys/bus/pci/rescan
have_fpga
ok $? "removed-back: the board is back"
unwritten "removed"

begin "reset"
rashpactl fpga reset "fpga$fpga" >/dev/null
ok $? "reset-done: the board is reset while the GPU rings"
kill -INT "$looper"
wait "$looper"
is "reset-ends: the loop fails" $? 1
unwritten "reset"
finish
