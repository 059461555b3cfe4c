#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=40
# Runs inside the lab's root, without a GPU: checks the calls to the libraries of GPUs, their order,
# and the handling of the answers. Stand-ins (tools/lib/tests/gpu-libraries) log the calls, and
# compute on processors. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
here=$PWD/build/tools/lib/tests/gpu-libraries
export STAND_IN_LOG=$work/calls STAND_IN=
export LD_LIBRARY_PATH=$here:$PWD/${RASHPA_TOOLS:-build/tools}

# calls COMMAND...: prints the calls, a line each; a mistake is a separate failure
calls() {
	rm -f "$work/calls"
	"$@" >"$work/out" 2>&1
	grep -v '^#' "$work/calls" 2>/dev/null | sed 's/^cu//'
}
mistakes() { grep WRONG "$work/calls" 2>/dev/null; }
# says NAME PATTERN COMMAND...: its output
says() {
	local got
	got=$("${@:3}" 2>&1)
	[[ $got =~ $2 ]]
	ok $? "$1" || echo "# expected \"$2\", got \"$got\""
}

# --- CUDA: memory

says "gpu: a GPU reports its properties" "^stand-in 0 for a GPU: processors, CUDA 13.0, 4096 MiB, at 0000:41, flags 9$" \
	"$here/memory" cuda about
is "memory-pages/unmade: memory of pages: how it is made, and unmade" "$(calls "$here/memory" cuda alloc 3000000 | paste -sd';')" \
	"Init 0;DevicePrimaryCtxRetain 0;MemCreate pages1 4194304 handles 1 direct 1;MemAddressReserve address2 4194304;MemMap address2 pages1;MemSetAccess address2 3;MemGetHandleForAddressRange address2 4194304 dma-buf;MemUnmap address2;MemAddressFree address2;MemRelease pages1;DevicePrimaryCtxRelease 0"
is "user: as its user has it" "$(<"$work/out")" "dma-buf of 4194304 bytes, address yes"
export STAND_IN=no-vmm
is "plain-memory-no: plain memory, where there are no such pages" "$(calls "$here/memory" cuda alloc 3000000 | paste -sd';')" \
	"Init 0;DevicePrimaryCtxRetain 0;MemAlloc memory1 3002368;PointerSetAttribute memory1 sync-memops 1;MemGetHandleForAddressRange memory1 3002368 dma-buf;MemFree memory1;DevicePrimaryCtxRelease 0"
is "no-mistakes: no mistakes" "$(mistakes)" ""
export STAND_IN=no-dmabuf
says "gpu-gives-none: a GPU that gives none" "^EOPNOTSUPP: stand-in 0.*gives no dma-buf" "$here/memory" cuda alloc 4096
export STAND_IN=full
says "one-full: one that is full" "^ENOMEM: stand-in 0.*no memory left" "$here/memory" cuda alloc 4096
is "nothing-left-failure: nothing is left of a failure" "$(calls "$here/memory" cuda alloc 4096 | paste -sd';'; mistakes)" \
	"Init 0;DevicePrimaryCtxRetain 0;DevicePrimaryCtxRelease 0"
export STAND_IN=none
says "no-gpu: no GPU" "^EOPNOTSUPP: .*no GPU on this machine" "$here/memory" cuda about
export STAND_IN=two
says "second-two: the second of two" "^stand-in 1.*at 0000:42" "$here/memory" cuda:1 about
export STAND_IN=
says "second-one-not: a second one that is not there" "^ENODEV: cuda:1.*1 GPUs" "$here/memory" cuda:1 about
says "too-much: too much" "^EINVAL: .*1 to 4294967296 bytes" "$here/memory" cuda alloc 5000000000
is "memory-host: memory of the host" "$(calls "$here/memory" cuda register 8192 | paste -sd';'; mistakes)" \
	"Init 0;DevicePrimaryCtxRetain 0;MemHostRegister registered1 8192 3;MemHostUnregister registered1;DevicePrimaryCtxRelease 0"
is "address-no-dma-buf: which has an address, and no dma-buf; not twice" "$(paste -sd';' <"$work/out" | sed 's/: stand-in.*//')" \
	"registered, address yes, dma-buf -1;EBUSY"
is "window: a window" "$(calls "$here/memory" cuda window 4096 | grep Register)" "MemHostRegister window1 4096 7"
export STAND_IN=root
says "window-root: a window, where only root may" "^EPERM: .*only root.*doctor" "$here/memory" cuda window 4096
export STAND_IN=
says "half-page: half a page" "^EINVAL: .*whole pages" "$here/memory" cuda register 6000
LD_LIBRARY_PATH='' says "no-cuda: no CUDA" "^EOPNOTSUPP: there is no CUDA on this machine" "$here/memory" cuda about

# --- Vulkan: memory of the host, on lavapipe

export VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.json
says "vulkan-takes-memory: Vulkan takes memory of the host" "^registered, address no, dma-buf -1" "$here/memory" vulkan register 8192
says "no-half-page: but no half a page" "^EINVAL: .*whole pages" "$here/memory" vulkan register 6000

# --- ROCm: memory

says "rocm/gpu-no-processor: ROCm: a GPU, and no processor" "^stand-in for a GPU of ROCm, ROCm, 1 MiB, at 0001:83, flags 9$" "$here/memory" rocm about
is "memory-pool: memory of the GPU's pool" "$(calls "$here/memory" rocm alloc 5000 | paste -sd';'; cat "$work/out")" \
	"init;allocate pool21 8192 0;export_dmabuf;free;shut_down
dma-buf of 8192 bytes, address yes"
is "memory/memory-host: memory of the host" "$(calls "$here/memory" rocm register 8192 | paste -sd';')" \
	"init;lock 8192 agent2;lock 8192 agent2;unlock;unlock;shut_down"
says "no-window: no window" "^EOPNOTSUPP: .*no windows" "$here/memory" rocm window 4096
says "no/second-one-not: a second one that is not there" "^ENODEV: rocm:1.*1 GPUs" "$here/memory" rocm:1 about
STAND_IN=full says "no/one-full: one that is full" "^ENOMEM: stand-in" "$here/memory" rocm alloc 4096
STAND_IN=offset says "dma-buf-begins-before: a dma-buf that begins before the memory" "^EIO: .*byte 4096" "$here/memory" rocm alloc 4096
STAND_IN=none says "dma/no-gpu: no GPU" "^EOPNOTSUPP: ROCm does not begin.*amdgpu" "$here/memory" rocm about
# the library may be there, as another one's dependency
LD_LIBRARY_PATH='' says "no-rocm: no ROCm" "^EOPNOTSUPP: (there is no ROCm|ROCm does not begin)" "$here/memory" rocm about
is "no/no-mistakes: no mistakes" "$(mistakes)" ""

# --- NVML: what rashpactl doctor says of BAR1

# a machine with one GPU of NVIDIA, and the open modules
pci=$work/root/sys/bus/pci/devices/0000:41:00.0
mkdir -p "$pci" "$work/root/proc/driver/nvidia"
echo 0x030200 >"$pci/class"
echo 0x10de >"$pci/vendor"
echo "0x100000000 0x10fffffff 0x14220c" >"$pci/resource"
echo "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.10" >"$work/root/proc/driver/nvidia/version"
ln -s ../../../../bus/pci/drivers/nvidia "$pci/driver"
gpus=("$here/gpus" "$work/root")
says "doctor: size and use of BAR1" \
	"^gives: 0000:41:00.0: nvidia \(open modules\) gives memory of .* to boards, BAR1 128 GiB, 3 MiB of it used$" "${gpus[@]}"
is "library-begun-asked: the library is begun, asked for this function, and let go of" "$(calls "${gpus[@]}" | paste -sd';'; mistakes)" \
	"nvmlInit;nvmlDeviceGetHandleByPciBusId 0000:41:00.0;nvmlDeviceGetBAR1MemoryInfo;nvmlDeviceGetMemoryInfo;nvmlShutdown"
STAND_IN=small says "bar-smaller-memory: a BAR that is smaller than the memory" \
	"^note: .*but only 256 MiB of 80 GiB are in its BAR, BAR1 256 MiB, 3 MiB of it used -> switch on Resizable BAR" "${gpus[@]}"
STAND_IN=no-total says "gpu-not-memory: a GPU that does not report the size of its memory" "^gives: .*BAR1 128 GiB, 3 MiB of it used$" "${gpus[@]}"
STAND_IN=none says "driver-not-answer: a driver that does not answer" "^gives: .*, BAR 256 MiB; NVML does not begin: said by a stand-in$" "${gpus[@]}"
STAND_IN=lost says "gpu-not-know: a GPU that it does not know" "^gives: .*, BAR 256 MiB; NVML does not know the GPU: said by a stand-in$" "${gpus[@]}"
is "library/nothing-left-failure: nothing is left of a failure" "$(STAND_IN=lost calls "${gpus[@]}" | paste -sd';'; mistakes)" \
	"nvmlInit;nvmlDeviceGetHandleByPciBusId 0000:41:00.0;nvmlShutdown"
LD_LIBRARY_PATH='' says "no-nvml: no NVML" "^gives: .*, BAR 256 MiB; NVML is missing: there is no libnvidia-ml.so.1$" \
	"${gpus[@]}"

# --- CUDA: the engine

rm -f "$work/calls"
TMPDIR=$work timeout 900 "${RASHPA_TOOLS:-build/tools}/processing-selftest" cuda >"$work/out" 2>&1
ok $? "engine-computes-reference: the engine computes what the reference does" || grep -v '^ok' "$work/out" | sed 's/^/# /'
is "tests: it ran more than 50 tests" "$(($(grep -c '^ok' "$work/out") > 50))" 1
is "no-mistake-stand-in: it makes no mistake that the stand-in sees" "$(mistakes)" ""

# --- CUDA: a kernel that drives a ring, and launches

rm -f "$work/calls"
good "loop: a kernel drives a ring, and launches answer" "${RASHPA_TOOLS:-build/tools}/loop-selftest" cuda
is "loop-kernel: both were kernels of CUDA" "$(grep -c '^cuLaunchKernel stream[0-9]* rpu_loop 1 1$' "$work/calls" | sed 's/^[1-9][0-9][0-9]*$/many/'; mistakes)" many

# --- CUDA: ways to be driven

# drives NAME PATTERN WAY OPTION...: compares the output, and expects no mistakes
drives() {
	local got
	rm -f "$work/calls"
	got=$(timeout 120 "$here/drive" "${@:3}" 2>&1; mistakes)
	[[ $got =~ $2 ]]
	ok $? "$1" || echo "# expected \"$2\", got \"$got\""
}
# of 40 images 13 are vetoed
all="^all: 40 images, 27 results, 0 wrong, 13 vetoed, lost none, copies ahead in credit$"
for way in launch ahead poll; do
	drives "$way" "$all" "$way"
	drives "program-image/$way: $way: the program tells that an image is there" "$all" "$way" own=1
	drives "one-credit/$way: $way: one credit" "^all: 40 images, [0-9]+ results, 0 wrong, 13 vetoed, lost none, copies ahead in credit$" \
		"$way" credits=1
	STAND_IN=two drives "two-gpus-turn/$way: $way: two GPUs in turn" "$all" "$way" gpus=2
	drives "vetoed-dropped-not/$way: $way: what is vetoed or dropped is not copied over results that are held" \
		"^all: 40 images, 3 results, 0 wrong, 13 vetoed" "$way" credits=3 hold=40
	drives "payload-memory-gpu/$way: $way: payload in memory of the GPU" "$all" "$way" direct=1
	drives "nothing-left-host/$way: $way: nothing is left where the host ends early" "^stopped: .* 5 results, 0 wrong" "$way" close=5
	drives "producer-ends/$way: $way: the producer ends" \
		"nothing came for 300 ms: stream [a-z]+ waits for the lock to be 31, and it is 30: [^:]*producer: 30 images, 20 results, 0 wrong, 10 vetoed" \
		"$way" stop=30 patience=300
	drives "producer-ends-program/$way: $way: the producer ends, and the program holds all results" \
		"nothing came for 300 ms: .*: 30 images, 20 results, 0 wrong" "$way" stop=30 patience=300 hold=25
done
STAND_IN=two drives "two-gpus-odd: two GPUs, an odd number of images" "^all: 41 images, 27 results, 0 wrong, 14 vetoed" \
	ahead gpus=2 images=41
drives "results-held-not: results that are held do not end a drive" "^all: 40 images, [0-9]+ results, 0 wrong" ahead hold=3 patience=2000
STAND_IN=two drives "two-gpus/one-credit-left: two GPUs: one of them has a credit left, and the producer ends" \
	"nothing came for 300 ms: .*: 29 images, 19 results, 0 wrong" ahead gpus=2 credits=10 stop=29 patience=300 hold=25
drives "without-credit-program: without a credit the program may be what the producer waits for" "^stopped: 30 images, 5 results, 0 wrong" \
	ahead credits=5 stop=30 patience=300 hold=25 vain=1
drives "two-drives-one: two drives of one pipeline, and one after the other" \
	"^beside it: .*its pipeline is another drive's: close that first.*"$'\n'"${all:1:-1}"$'\n'"then: opened$" ahead again=1
export STAND_IN=two
drives "one-pipeline-two: one pipeline as two GPUs" "^refused: .*: numbers 0 and 1 are the same one$" ahead gpus=2 same=1
drives "vetoes-differ: vetoes that differ" "^refused: GPUs of a drive have one veto: that of pipeline 1 is another one$" ahead gpus=2 other=1
drives "pixels-saturated-another: pixels that are saturated from another number on" "^refused: .*: pipeline 1 has another one$" ahead gpus=2 saturated=1
export STAND_IN=
# who owns the loop reads the lock, and gives slots back: the producer obeys that word alone
owned="${all:0:-1}"$'\n'"given back: 10 stacks$"
drives "poll/kernel-owns-loop: poll: the kernel owns the loop, stacks of four, a ring of two of them" "$owned" poll owner=1 bunch=4
drives "poll/program-nothing-all: poll: and the program does nothing at all until 40 images went through 8 slots" "$owned" \
	poll owner=1 bunch=4 apart=1 credits=40
drives "poll/waited-results: poll: nor is it waited for with its results" \
	"^all: 40 images, 3 results, 0 wrong, 13 vetoed, lost none.*"$'\n'"given back: 10 stacks$" poll owner=1 bunch=4 credits=3 hold=40
drives "poll/watchdog-finds-producer: poll: its watchdog finds that the producer has ended" \
	"nothing came for 300 ms: .* waits for the lock to be 8, and it is 7: [^:]*producer: 28 images.*"$'\n'"given back: 7 stacks$" \
	poll owner=1 bunch=4 stop=30 patience=300
drives "enqueues-not-loop: a way that enqueues does not own the loop" "^refused: given and lock_images need" ahead owner=1
drives "stacks-whole: stacks are whole" "^refused: images: 41 are not whole stacks of 4" poll owner=1 bunch=4 images=41
is "lock-word-registered: lock and word are registered, and let go of" \
	"$(calls "$here/drive" poll owner=1 images=1 | grep -c 'MemHost\(Register\|Unregister\) registered'; mistakes)" 6
drives "window/two-pieces: a window: two pieces" "$all" ahead window=2000
drives "window/image-pieces: a window: an image in many pieces" "$all" ahead window=96
drives "window/pieces-lock-counts: a window: more pieces than a lock counts" "^refused: 1000000000 images have 24 pieces each" \
	ahead window=96 images=1000000000 close=5 patience=3000
drives "window-pieces-no: a window in pieces, and no work ahead of it" "^refused: .*enqueued ahead" launch window=96
# sparse memory of 20 GiB
long=(slots=20 step=1073741824)
export STAND_IN=large
drives "ring-16-gib: a ring of more than 16 GiB" "$all" ahead "${long[@]}"
drives "kernel-stays-not: which a kernel that stays does not reach" "^refused: a ring of 20 slots of 1073741824 bytes is too long" poll "${long[@]}"
drives "one-15-gib: one of 15 GiB it does" "$all" poll slots=15 step=1073741824
drives "gpu-read-one: nor does a GPU read one in its memory" "^refused: .*: raw images end at byte 20401095808 .*up to 17179869184: use fewer slots$" \
	ahead direct=1 "${long[@]}"
drives "one-16-gib: but one of 16 GiB" "$all" launch direct=1 slots=16 step=1073741824
export STAND_IN=
# the order in each stream of calls that are enqueued before the first image comes
calls "$here/drive" ahead images=1 >"$work/order"
in_stream() { sed -nE "s/^([A-Za-z0-9]+) stream$1 (.*)/\1 \2/p" "$work/order" | grep -v Create | sed -E 's/(registered|host|memory|window)[0-9]+/\1/g' | paste -sd';'; }
is "in: the lock, a copy, the word" "$(in_stream 2)" \
	"StreamWaitValue32 registered >= 1;MemcpyHtoDAsync memory registered 1152;StreamWriteValue32 host 1"
is "compute: the word, kernels, the next word" "$(in_stream 3)" \
	"StreamWaitValue32 host >= 1;MemsetD32Async memory 0 2;LaunchKernel rpu_take 3 128;LaunchKernel rpu_above 1 128;LaunchKernel rpu_decide 1 128;LaunchKernel rpu_bank 5 128;LaunchKernel rpu_publish 1 128;StreamWriteValue32 host+4 1"
is "out: the veto's lock, a copy, the word" "$(in_stream 4)" \
	"StreamWaitValue32 host+8 >= 1;MemcpyDtoHAsync host memory 2320;StreamWriteValue32 host+12 1"
is "payload-gpu/flush-wait: payload in the GPU: a flush with the wait" \
	"$(calls "$here/drive" ahead direct=1 images=1 | grep -c '>= 1 flush$')" 1
export STAND_IN=no-flush
is "gpu-offers-one: no flush if the GPU does not offer one" "$(calls "$here/drive" ahead direct=1 images=1 | grep -c 'flush$'; mistakes)" 0
export STAND_IN=hang
says "gpu-not-answer: a GPU that does not answer" "did not answer for 300 ms: image 0 is there, [12] are copied in and 0 computed.*released only when" \
	timeout 60 "$here/drive" ahead own=1 images=3 patience=300
export STAND_IN=

# --- CUDA: what measures it

# measured: its rows, in the order of the first of each
measured() {
	rm -f "$work/calls" "$work/bench.json"
	timeout 300 "${RASHPA_TOOLS:-build/tools}/rashpa-bench" gpu --gpu cuda --copies 4K --sizes 4K --repeat 2 \
		--json="$work/bench.json" >"$work/out" 2>&1
	echo "$? $(jq -r "$1" "$work/bench.json")"
}
ways="a launch;a launch ahead, flush off;a launch ahead, flush on;a shader that polls"
is "rashpa-bench: a launch, launches ahead with and without a flush, a kernel that polls" \
	"$(measured '[.rows[].name][:4] | join(";")')" "0 $ways"
is "no-mistake: and makes no mistake" "$(mistakes)" ""
is "wait-flags: each wait has its own flags" "$(sed -nE 's/^cuStreamWaitValue32 stream[0-9]+ host[0-9]+ >= [0-9]+(.*)/>=\1/p' "$work/calls" | sort -u | paste -sd';')" \
	">=;>= flush"
is "percentiles-reads-four: percentiles of reads of four bytes" \
	"$(jq -c '.rows[] | select(.name | test("4 bytes")) | .percentiles | [keys_unsorted, (.p50 <= .p90 and .p99 <= .max)]' "$work/bench.json")" \
	'[["p50","p90","p99","p99.9","max"],true]'
is "pageable-beside-pinned: pageable and pinned memory, from 1 KiB on" \
	"$(jq -c '[.rows[] | select(.peer == "pageable") | .size_bytes] | unique' "$work/bench.json")" "[1024,4096]"
is "images-memory-host: images in memory of the host and of the GPU, three ways each" \
	"$(jq '[.rows[].name | select(test("driven by"))] | unique | length' "$work/bench.json")" 6
export STAND_IN=no-flush
is "gpu-no-flush: a GPU that has no flush: that row is left out, with the reason" \
	"$(measured '[.left_out[] | .name + ": " + .reason] | join(";")')" \
	"0 a launch ahead, flush on: stand-in 0 for a GPU: processors does not support it"
export STAND_IN=none
is "no-gpu/reason: no GPU: that is the reason" "$(measured '[(.rows | length), (.left_out[0].reason | test("no GPU on this machine"))] | tostring')" "1 [0,true]"
export STAND_IN=

# --- memory of a GPU as target of RDMA

rdma() { says "$1" "$2" "$here/rdma" "${@:3}"; }
dmabuf="reg_dmabuf_mr offset 8192 length 1048576 iova 139637976727552 fd 7 access 3;"
by_address="reg_mr 0x7f0000000000 length 1048576 iova 0x7f0000000000 access 3;"
rdma "RDMA: by its dma-buf" "^$dmabuf by 0, far 0, at 0x7f0000000000, key 4; dereg_mr$" - 0x100000 0 0 0
rdma "no-gpu-address: by its dma-buf, without an address" "^${dmabuf/139637976727552/0} by 0, far 0, at 0, key 4; dereg_mr$" \
	no-address 0x100000 0 0 0
rdma "a card that takes none: nvidia-peermem" "^$dmabuf $by_address by 1, far 0, at 0x7f0000000000, key 4; dereg_mr$" \
	no-dmabuf 0x100000 0 0 0
rdma "old-kernel: a kernel that takes none: nvidia-peermem" "^$dmabuf $by_address by 1," old 0x100000 0 0 0
rdma "no-dma-buf: memory without one: nvidia-peermem" "^$by_address by 1," none 0x100000 0 0 0
rdma "and no such module" "^$dmabuf $by_address EOPNOTSUPP: card: its driver, mlx9,.*modprobe nvidia-peermem" \
	no-dmabuf,no-module 0x100000 0 0 0
rdma "module-refuses: a module that does not take it" "^$dmabuf $by_address EOPNOTSUPP: .*nvidia-peermem does not" \
	no-dmabuf,no-pages 0x100000 0 0 0
rdma "no address" "^${dmabuf/139637976727552/0} EOPNOTSUPP: .*the same process only" no-dmabuf,no-address 0x100000 0 0 0
rdma "nothing: neither dma-buf nor address" "^EOPNOTSUPP: the driver of the memory.*the same process only" none,no-address 0x100000 0 0 0
rdma "soft: a soft card" "^$dmabuf $by_address EOPNOTSUPP: card is a soft card.*contig" soft,no-dmabuf,no-pages 0x100000 0 0 0
rdma "host: memory of the host: by its address" "^$by_address by 1, far 0, at 0x7f0000000000, key 4; dereg_mr$" host 0x100000 0 0 0
rdma "host-no-pages: which has no pages: by its dma-buf" "^$by_address $dmabuf by 0," host,no-pages 0x100000 0 0 0
rdma "host-neither: nor does the card take that" "^$by_address $dmabuf EOPNOTSUPP: .*contig" host,no-pages,no-dmabuf 0x100000 0 0 0
rdma "too much to pin: that is no reason for another way" "^$dmabuf ENOMEM: .*ulimit -l," full 0x100000 0 0 0
rdma "more than the BAR has" "^E2BIG: 1048576 bytes.*65536.*Resizable BAR" - 0x100000 0x10000 0 0
rdma "as much as the BAR has" "by 0" - 0x100000 0x100000 0 0
rdma "at another processor" "far 1" - 0x100000 0 0 1
rdma "whose processor is not known" "far 0" - 0x100000 0 0 -1
finish
