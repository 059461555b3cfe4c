#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: kernel=6.1,newest iommu=off seconds=20
# Programs that know nothing of us use our buffers, as files: perftest, fio, NumPy, and
# direct I/O. Where the memory cannot be used that way they end, with an error.
. "$(dirname "$0")/../lib/shell.sh"

buffers=(perf-server perf-client disk-io frames)

listening() { ss -Hltn "sport = :$1" | grep -q . || gone "$server"; }

# write_bw SERVER CLIENT: 100 RDMA writes of 64 KiB from the client's buffer to the
# server's. Sets server_status and client_status (124: it hung).
write_bw() {
	local common=(-x 1 -s 65536 -n 100 -p 18515)
	timeout 60 ib_write_bw -d rxe0 "${common[@]}" --mmap="/dev/rashpa/buffer/$1" \
		>"$work/server" 2>&1 &
	server=$!
	wait_for 30 listening 18515
	client_status=0 server_status=0
	timeout 60 ib_write_bw -d rxe1 "${common[@]}" --mmap="/dev/rashpa/buffer/$2" \
		10.77.0.1 >"$work/client" 2>&1 || client_status=$?
	wait "$server" || server_status=$?
}

# fio_on BUFFER: write 8 MiB past the page cache, read them back, compare checksums.
fio_on() {
	timeout 60 fio --name=foreign --filename="/dev/$disk" --direct=1 --rw=write \
		--bs=64k --size=8M --ioengine=io_uring --iodepth=4 \
		--verify=crc32c --verify_state_save=0 \
		--mem="mmapshared:/dev/rashpa/buffer/$1" \
		--output-format=json --output="$work/fio.json" >"$work/fio" 2>&1
}

said() { sed 's/^/#   /' "$@" | tail -n 15; } # FILE...: of a foreign program

# Name of the lab's disk (--disk); empty without one.
find_disk() {
	local s
	[[ $(lspci -d ::0108) ]] || return
	modprobe -q nvme
	wait_for 10 test -e /sys/class/nvme/nvme0
	for s in /sys/block/nvme*n1/device/serial; do
		[[ -e $s && $(<"$s") == rashpa0* ]] || continue
		s=${s#/sys/block/}
		echo "${s%%/*}"
		return
	done
}

for b in "${buffers[@]}"; do
	rashpactl buffer create "$b" 16M --backend contig >/dev/null || bad=1
done
ok "$bad" "buffers: buffers"

# --- perftest over soft-RoCE: registered by address at both ends
if selftests/lib/rxe.sh >"$work/rxe" 2>&1; then
	write_bw perf-server perf-client
	is "ib-write-bw-mmap/server-client-succeed: ib_write_bw --mmap: server and client succeed" "$server_status $client_status" "0 0" ||
		said "$work/server" "$work/client"
	# It allocates two messages each: the first to send from, the second to write to.
	python3 - <<'P'
import mmap, os, sys
def message(name, n):
    fd = os.open(f"/dev/rashpa/buffer/{name}", os.O_RDONLY)
    return mmap.mmap(fd, 131072, prot=mmap.PROT_READ)[n * 65536:(n + 1) * 65536]
there, sent = message("perf-server", 1), message("perf-client", 0)
sys.exit(0 if any(sent) and there == sent else 1)
P
	ok $? "ib-write-bw-mmap/client-sent-server: ib_write_bw --mmap: the client's data are in the server's buffer"
else
	sed 's/^/#   /' "$work/rxe"
	ok 1 "soft-roce-kernel: soft-RoCE in this kernel"
fi

# --- a disk that moves data by DMA between itself and the buffer
disk=$(find_disk)
if [[ $disk ]]; then
	fio_on disk-io
	is "fio/direct-i-o-buffer: fio: direct I/O in our buffer ends well, checksums verified" $? 0 ||
		said "$work/fio"
	is "fio/all-written-read: fio: all was written, and read back" \
		"$(jq -c '.jobs[0] | [.error, .write.io_bytes, .read.io_bytes]' "$work/fio.json")" \
		"[0,8388608,8388608]"
	python3 - "/dev/$disk" <<'P'
import mmap, os, sys
fd = os.open("/dev/rashpa/buffer/disk-io", os.O_RDWR)
m = mmap.mmap(fd, 16 << 20)
half = 8 << 20
m[:half] = bytes(range(256)) * (half // 256)
m[half:] = bytes(half)
direct = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
with memoryview(m) as view:
    out = os.pwritev(direct, [view[:half]], 0)
    back = os.preadv(direct, [view[half:]], 0)
cached = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(cached, 0, 0, os.POSIX_FADV_DONTNEED)
good = out == back == half and m[:half] == m[half:] == os.pread(cached, half, 0)
sys.exit(0 if good else 1)
P
	ok $? "o-direct/8-mib-one-call: O_DIRECT: 8 MiB in one call, to the disk and back, are the same"
else
	skip "fio-o-direct: fio, O_DIRECT" "no disk in this guest (lab run --disk 64M)"
fi

# --- NumPy: detector frames as an array, and as bytes in another process
python3 - >"$work/numpy" 2>"$work/numpy.err" <<'P'
import numpy
node = "/dev/rashpa/buffer/frames"
frames = numpy.memmap(node, dtype="<u2", mode="r+", shape=(16, 512, 1024))
print("shape", frames.shape, "empty", not frames.any())
row, column = numpy.indices((512, 1024))
for i in range(16):
    frames[i] = row + column + i
print("sum", frames[7].sum(dtype="u8"))
try:
    numpy.memmap(node, dtype="<u2", mode="r+", shape=(17, 512, 1024))
    print("17 frames fit")
except OSError as e:
    print("17 frames:", e.strerror)
frames.flush()
print("flushed")
print("bytes", numpy.memmap(node, dtype="u1", mode="r").shape)
P
ok $? "numpy-memmap/16-frames-512: numpy.memmap: 16 frames of 512 x 1024 pixels, and flush()" || said "$work/numpy.err"
is "numpy-memmap/array-asked: numpy.memmap: the array is what was asked for" "$(sed -n 1p "$work/numpy")" \
	"shape (16, 512, 1024) empty True"
# the sum over rows 0..511 and columns 0..1023 of row + column + 7
is "numpy-memmap/reads-wrote: numpy.memmap: it reads what it wrote" "$(sed -n 2p "$work/numpy")" \
	"sum $((1024 * 511 * 512 / 2 + 512 * 1023 * 1024 / 2 + 7 * 512 * 1024))"
is "numpy-memmap/cannot-buffer-longer: numpy.memmap: it cannot make the buffer longer" "$(sed -n 3p "$work/numpy")" \
	"17 frames: Invalid argument"
is "numpy-memmap/without-shape-all: numpy.memmap: without a shape it is all of the buffer" "$(sed -n 5p "$work/numpy")" \
	"bytes ($((16 << 20)),)"
python3 - >"$work/pixel" <<'P'
import mmap, os
fd = os.open("/dev/rashpa/buffer/frames", os.O_RDONLY)
m = mmap.mmap(fd, 16 << 20, prot=mmap.PROT_READ)
at = (7 * 512 * 1024 + 300 * 1024 + 900) * 2
print(int.from_bytes(m[at:at + 2], "little"))
P
is "numpy-memmap/another-program-finds: numpy.memmap: another program finds pixel (300, 900) of frame 7" \
	"$(cat "$work/pixel")" $((300 + 900 + 7))

# --- CMA memory is not for registration by address: an error, at once
rashpactl buffer create reserved 16M --backend cma >"$work/out" 2>&1
if (($? == 0)); then
	for pair in "reserved perf-client" "perf-server reserved"; do
		# shellcheck disable=SC2086
		write_bw $pair
		holds "cma/ib-write-bw-fails: CMA ($pair): ib_write_bw fails" "$server_status || $client_status"
		holds "cma/not-hang: CMA ($pair): it does not hang" \
			"$server_status != 124 && $client_status != 124"
		grep -qi "failed to create MR" "$work/server" "$work/client"
		ok $? "cma/memory-cannot-registered: CMA ($pair): it says that the memory cannot be registered" ||
			said "$work/server" "$work/client"
	done
	if [[ $disk ]]; then
		fio_on reserved
		status=$?
		holds "cma/fio-fails-not: CMA: fio fails and does not hang" "$status && $status != 124"
		is "cma/bad-address: CMA: it says Bad address" "$(jq '.jobs[0].error' "$work/fio.json")" 14 ||
			said "$work/fio"
	else
		skip "cma/fio: CMA: fio" "no disk in this guest (lab run --disk 64M)"
	fi
	rashpactl buffer remove reserved
	ok $? "cma/nothing-holds-buffer: CMA: nothing holds the buffer"
else
	grep -q "CMA.*\(cma=\|contig\)" "$work/out"
	ok $? "cma/without-area-answer: CMA: without an area the answer says what would help" ||
		said "$work/out"
fi

for b in "${buffers[@]}"; do
	rashpactl buffer remove "$b"
	ok $? "nothing-holds: nothing holds $b"
done
finish
