#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=off seconds=90
# romulu records a stream of a board in folders: memory of all kinds, several file systems, without io_uring, and with
# receivers that are killed.
. "$(dirname "$0")/../lib/shell.sh"

have_fpga || { skip "record: record" "no software FPGA in this guest"; finish; }
export PYTHONPATH=$PWD/build/tools/python PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
RASHPA_LIBRARY=$PWD/${RASHPA_TOOLS:-build/tools}/librashpa.so.0
export RASHPA_LIBRARY
width=128 height=64
head -c $((10 * width * height * 2)) /dev/urandom >"$work/images.raw"
modprobe -a loop ext4
truncate -s 64M "$work/disk"
mkdir "$work/ext4" "$work/tmpfs"
busybox mke2fs -F "$work/disk" >"$work/log" 2>&1 && mount -t ext4 -o loop "$work/disk" "$work/ext4" &&
	mount -t tmpfs -o size=64M none "$work/tmpfs"
ok $? "disks: a disk with ext4, and memory" || sed 's/^/# /' "$work/log"

produce() { # BUFFER OPTION...
	remu --buffer "$1" --fpga "$fpga" --dataset "$work/images.raw" --geometry ${width}x$height --split 2 --bunch 4 \
		--slots 8 --timeout 60 "${@:2}" >"$work/remu.out" 2>&1 &
	remu=$!
}
folders() { # DIR...: empty ones
	rm -rf "$work"/{ext4,tmpfs}/d?
	mkdir -p "$@"
	at=("$@") to=("${@/#/--write=}")
}
receive() { # BUFFER OPTION...
	romulu --buffer "$1" --timeout 60 --json="$work/report" "${to[@]}" "${@:2}" >"$work/out" 2>&1
}
# Are images 0 to COUNT in the recording, and right? COUNT "some": as many as there are.
recorded() {
	python3 - "$work/images.raw" "$1" "${at[@]}" >"$work/log" 2>&1 <<-P
		import sys, numpy
		from rashpa.recording import Recording
		images = numpy.fromfile(sys.argv[1], "<u2").reshape(-1, $height, $width)
		recording = Recording(*sys.argv[3:])
		count = len(recording) if sys.argv[2] == "some" else int(sys.argv[2])
		assert len(recording) == count, f"{len(recording)} images"
		assert numpy.array_equal(recording.images["frame"], numpy.arange(count)), recording.images["frame"]
		for frame, image in enumerate(recording):
		    assert numpy.array_equal(image, images[frame % len(images)]), f"frame {frame} differs"
		print(count)
	P
}
says() { grep -q "$1" "$work/out"; }

# run NAME BUFFER DIR...: a stream that goes round, from the slots of that buffer to these folders
run() {
	folders "${@:3}"
	produce "$2" --images 400
	receive "$2"
	ok $? "$1: $1 is recorded" || sed 's/^/# /' "$work/out"
	wait "$remu"
	recorded 400
	ok $? "$1-right: each image is right" || sed 's/^/# /' "$work/log"
	sed 's/^/# /' "$work/out" | grep -v "# [a-z]* *[0-9]"
}

# --- kinds of memory
for backend in contig cma; do
	rashpactl buffer create $backend 16M --backend $backend >/dev/null 2>&1 || {
		skip "$backend: memory of $backend" "there is none"
		continue
	}
	run $backend $backend "$work"/ext4/d{a,b}
	says "cannot be pinned"
	is "$backend-copied: stacks are copied only if their memory has no pages" "$((!$?))" "$([[ $backend == cma ]] && echo 1 || echo 0)"
done
buffer=contig

# --- file systems, and no io_uring
run tmpfs $buffer "$work/tmpfs/da"
dd if=/dev/zero of="$work/tmpfs/x" bs=4096 count=1 oflag=direct 2>/dev/null
takes=$?
says "O_DIRECT"
is "tmpfs-cache: the page cache is used only if tmpfs takes no O_DIRECT" "$((!$?))" $((takes != 0))
if [[ -e /proc/sys/kernel/io_uring_disabled ]]; then
	echo 2 >/proc/sys/kernel/io_uring_disabled
	run no-ring $buffer "$work/ext4/da"
	says "without io_uring"
	ok $? "no-ring-said: it says so"
	echo 0 >/proc/sys/kernel/io_uring_disabled
else
	skip "no-ring: without io_uring" "this kernel always has it"
fi

# --- receivers that are killed in mid-stream
folders "$work"/ext4/d{a,b}
produce $buffer --images 0
for i in {1..3}; do
	romulu --buffer $buffer --timeout 60 "${to[@]}" >"$work/out" 2>&1 &
	romulu=$!
	kept() { (($(stat -c %s "$work/ext4/da/frames.index" 2>/dev/null || echo 0) >= i * 100 * 64)); }
	wait_for 30 kept
	kill -9 "$romulu"
	wait "$romulu" 2>/dev/null
	recorded some
	ok $? "killed/$i: receiver $i is killed: each image is there once, and right" || sed 's/^/# /' "$work/log"
done
receive $buffer --images 100
ok $? "after: the next receiver goes on"
kill -INT "$remu"
wait "$remu"
recorded some
ok $? "after-right: each image is there once, and right" || sed 's/^/# /' "$work/log"
holds "after-all: it added its own" "$(<"$work/log") >= 400"

# --- a disk that is full
mount -o remount,size=1M "$work/tmpfs"
folders "$work"/{ext4/da,tmpfs/db}
produce $buffer --images 400
receive $buffer
is "full: one of two disks is full: a failure" $? 1
says "No space left"
ok $? "full-said: with the reason"
recorded "$(jq .frames "$work/report")"
ok $? "full-right: the recording has the images of the report" || sed 's/^/# /' "$work/log"
mount -o remount,size=64M "$work/tmpfs"
receive $buffer
ok $? "full-next: the next receiver takes the rest" || sed 's/^/# /' "$work/out"
wait "$remu"
recorded 400
ok $? "full-all: each image is there once" || sed 's/^/# /' "$work/log"
umount "$work"/{ext4,tmpfs}
for backend in contig cma; do rashpactl buffer remove $backend 2>/dev/null; done
finish
