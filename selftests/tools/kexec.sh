#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: where=host kernel=6.1,newest seconds=40
# test: tier=nightly where=host kernel=6.12 seconds=40
# A guest starts another kernel (kexec) while a board streams: the driver stops the board first, so that no
# write is refused. Both kernels are the same, with an initramfs as the lab's. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../lib/shell.sh
. "$(dirname "$0")/../lib/shell.sh"
kernel=${RASHPA_KERNEL:-newest} marker=rashpa.kexec
out=build/kexec-$kernel

# --- in the guest

# Counters of the board, and its command register, as NAME=NUMBER
board() {
	selftests/lab/host fpga 0 status
	echo "command=0x$(od -An -tx2 -j4 -N2 "/sys/bus/pci/devices/$bdf/config" | tr -d ' ')"
}

# As the lab's (selftests/lab/run.sh), from the modules of the guest's own root
initramfs() { # FILE
	local tree=$work/tree module
	mkdir -p "$tree"/{bin,modules,dev,proc,sys,lower,upper,new}
	cp /usr/bin/busybox "$tree/bin/"
	cp selftests/lab/initramfs-init "$tree/init"
	for module in virtio_pci virtio_console virtio_blk crc32c_generic ext4 9pnet_virtio 9p overlay; do
		modprobe --show-depends "$module" 2>/dev/null
	done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' >"$work/modules"
	while read -r module; do
		case $module in
		*.xz) xz -dc "$module" ;;
		*.zst) zstd -dcq "$module" ;;
		*) cat "$module" ;;
		esac >"$tree/modules/$(basename "${module%%.ko*}")"
	done <"$work/modules"
	sed 's,.*/,,; s,\.ko.*,,' "$work/modules" >"$tree/modules/order"
	(cd "$tree" && find . | busybox cpio -o -H newc -R 0:0 2>/dev/null) >"$1"
}

# The kernel that runs, with its command line and a word more: kexec_file_load()
load() { # INITRAMFS
	python3 - "/boot/vmlinuz-$(uname -r)" "$1" "$(</proc/cmdline) $marker" <<-'END'
		import ctypes, os, sys
		kernel, initramfs = (os.open(name, os.O_RDONLY) for name in sys.argv[1:3])
		line = sys.argv[3].encode() + b"\0"
		if ctypes.CDLL(None, use_errno=True).syscall(320, kernel, initramfs, len(line), line, 0):
		    sys.exit(f"kexec_file_load: {os.strerror(ctypes.get_errno())}")
	END
}

# reboot(LINUX_REBOOT_CMD_KEXEC)
jump() { python3 -c 'import ctypes; ctypes.CDLL(None).syscall(169, 0xfee1dead, 672274793, 0x45584543, 0)'; }

# The register STATUS of the reference interface
busy() {
	echo 1 >"/sys/bus/pci/devices/$bdf/enable"
	python3 - "/sys/bus/pci/devices/$bdf/resource0" <<-'END'
		import mmap, os, struct, sys
		registers = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 0x10000)
		print("status=%#x" % struct.unpack("<I", registers[0x14:0x18]))
	END
}

first_kernel() {
	export PATH=$PWD/build/tools:$PATH RASHPA_PROFILES=$PWD/tools/data/profiles
	insmod "build/modules/$kernel/rashpa.ko" && have_fpga && initramfs "$work/initramfs" && load "$work/initramfs" ||
		return
	rashpactl buffer create ring0 64M >/dev/null
	remu --buffer ring0 --fpga "$fpga" --dataset generate:10 --geometry 256x128 --policy overwrite &
	streams() { [[ $(selftests/lab/host fpga 0 status) =~ bytes=([0-9]+) ]] && ((BASH_REMATCH[1] > 10000000)); }
	wait_for 60 streams || return
	board >"$out/before"
	jump
}

second_kernel() {
	bdf=$(lspci -D -d 1234:5250 | cut -d' ' -f1)
	{ board && busy; } >"$out/after"
	selftests/lab/host fpga 0 status >"$out/later"
}

if [[ ${1-} == guest ]]; then
	if grep -qw "$marker" /proc/cmdline; then
		second_kernel
	else
		first_kernel
	fi
	exit
fi

# --- outside

number() { grep -ow "$2=[0-9a-fx]*" "$out/$1" | cut -d= -f2; } # FILE NAME

rm -rf "$out"
mkdir -p "$out"
selftests/lab/lab run --kernel "$kernel" --iommu off --fpga 1 --timeout 900 --log "$out/kernel.log" -- \
	selftests/tools/kexec.sh guest >"$out/log" 2>&1
is "jump: the guest starts another kernel, and ends well" "$? $(grep -c "Linux version" "$out/kernel.log")" "0 2" || sed 's/^/# /' "$out/log"
for file in before after; do
	sed "s/^/# $file: /" "$out/$file"
done
holds "master-on: the board could write before" "$(number before command) & 4"
holds "master-off: it cannot afterwards" "!($(number after command) & 4)"
holds "idle: no process of it runs" "!($(number after status) & 1)"
is "orderly: it was stopped before it was cut off: no write was refused" "$(number after faults)" 0
holds "stopped: by its register CONTROL" "$(number after stops) > $(number before stops)"
is "silent: it writes nothing more" "$(number later bytes)" "$(number after bytes)"
finish
