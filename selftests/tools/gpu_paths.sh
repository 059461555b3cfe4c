#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: kernel=6.1,newest iommu=both seconds=40 needs=gpu
# A short version of gpu.sh for each board: images go from the board into memory of the lab's GPU, and
# shaders process them there with the results of the reference; below a switch (peer) and at root
# ports (bridge). For kernels and IOMMUs on which gpu.sh would take too long.
. "$(dirname "$0")/../lib/shell.sh"
. "$(dirname "$0")/../lib/pipeline.sh"
. "$(dirname "$0")/../lib/gpu.sh"

buffer=paths
have_gpu "frames-memory-gpu: frames in memory of a GPU, from each board"
for ((board = 1; board <= RASHPA_FPGAS; board++)); do
	have_fpga "$board"
	ok $? "board-bound: board $board is bound" || continue
	case $(<"/sys/bus/pci/devices/$bdf/../device") in
	0x8233) place="board $board, below the switch" ;;
	*) place="board $board, at a root port" ;;
	esac
	as_reference "$place"
	jungfrau "$place"
done
rashpactl buffer remove "$buffer"
ok $? "nothing-holds-buffer: nothing holds the buffer"
finish
