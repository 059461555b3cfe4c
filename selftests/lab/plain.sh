# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2034,SC2153
# Cached roots of plain Debian machines, with a stock kernel and what packages depend on: guests that
# install packages boot from an image of one.

PLAIN_VERSION=1	# raise it when the steps below change what is in such a root

declare -A PLAIN_SUITES=([12]=bookworm [13]=trixie)

# plain_path DEBIAN DEPENDENCIES
plain_path() {
	local hash
	hash=$(echo "$PLAIN_VERSION $2" | sha256sum)
	echo "$CACHE/plain-$1-${hash:0:12}"
}

build_plain() { # final path, suite, dependencies as apt writes them
	local root=$1 suite=$2 new=$1.new.$$ main security
	local key=/usr/share/keyrings/debian-archive-keyring.gpg

	find_archive
	# shellcheck disable=SC2064
	trap "${SUDO[*]} rm -rf --one-file-system '$new'" EXIT
	STEP_LOG=$root.log
	: >"$STEP_LOG"
	say "making a plain root of $suite in $root (log: $STEP_LOG)"
	step "base system" "${SUDO[@]}" debootstrap --variant=minbase --keyring="$key" "$suite" "$new" "$main"
	{
		echo "deb [signed-by=$key] $main $suite main"
		echo "deb [signed-by=$key] $main $suite-updates main"
		[[ ! $security ]] || echo "deb [signed-by=$key] $security $suite-security main"
	} | "${SUDO[@]}" tee "$new/etc/apt/sources.list" >/dev/null
	write_access "$new" "$main" "$security" >/dev/null
	echo force-unsafe-io | "${SUDO[@]}" tee "$new/etc/dpkg/dpkg.cfg.d/lab" >/dev/null
	step "package lists" build_in "$new" apt-get update
	step "machine" build_in "$new" apt-get install -y systemd-sysv udev dbus initramfs-tools zstd \
		pciutils jq linux-image-amd64 linux-headers-amd64
	step "dependencies" build_in "$new" apt-get satisfy -y "$3"
	# shellcheck disable=SC2016
	step "initramfs" build_in "$new" sh -euc '
		for kernel in /lib/modules/*; do
			INITRD= update-initramfs -c -k "${kernel##*/}"
		done'
	step "clean" build_in "$new" sh -euc '
		apt-get clean
		rm -rf /var/lib/apt/lists/* /tmp/* /usr/sbin/policy-rc.d
		rm -f /etc/apt/apt.conf.d/99lab-build
		: >/etc/machine-id
		echo lab >/etc/hostname
		passwd -d root
		ln -sf /lib/systemd/system/multi-user.target /etc/systemd/system/default.target
		systemctl mask systemd-networkd-wait-online.service apt-daily.timer apt-daily-upgrade.timer \
			dpkg-db-backup.timer e2scrub_all.timer fstrim.timer e2scrub_reap.service'
	"${SUDO[@]}" chmod 755 "$new"
	"${SUDO[@]}" mv -T "$new" "$root"
	trap - EXIT
	say "root complete: $(du -sh "$root" 2>/dev/null | cut -f1), ${SECONDS} s"
}

# Make the root unless it is there; sets PLAIN.
have_plain() { # 12|13, dependencies
	[[ ${PLAIN_SUITES[$1]-} ]] || die "plain: Debian 12 or 13, not \"$1\""
	PLAIN=$(plain_path "$1" "$2")
	[[ -d $PLAIN ]] && return
	mkdir -p "$CACHE"
	exec 9>"$PLAIN.lock"
	flock 9
	[[ -d $PLAIN ]] || build_plain "$PLAIN" "${PLAIN_SUITES[$1]}" "$2"
	exec 9>&-
}

# plain DEBIAN [DEPENDENCY,...]
cmd_plain() {
	(($#)) || die "plain: of which Debian, 12 or 13?"
	have_plain "$1" "${2-}"
	echo "$PLAIN"
}

# in_image ROOT IMAGE SIZE COMMAND...: the command runs on this machine, as root, with a copy of the root as
# its folder; what it leaves becomes an image with ext4, which guests boot from. Kernel and initramfs: $2.vmlinuz,
# $2.initrd.
in_image() {
	local root=$1 image=$2 size=$3
	shift 3
	# shellcheck disable=SC2016
	"${SUDO[@]}" unshare --mount --propagation private bash -euc '
		root=$1 image=$2 size=$3 owner=$4; shift 4
		over=$(mktemp -d)
		mount -t tmpfs -o size=80% tmpfs "$over"
		mkdir "$over"/{upper,work,all}
		mount -t overlay -o "lowerdir=$root,upperdir=$over/upper,workdir=$over/work" overlay "$over/all"
		(cd "$over/all" && "$@")
		rm -f "$image"
		truncate -s "$size" "$image"
		mke2fs -q -t ext4 -d "$over/all" -L root "$image"
		cp "$(ls "$over"/all/boot/vmlinuz-* | sort -V | tail -n 1)" "$image.vmlinuz"
		cp "$(ls "$over"/all/boot/initrd.img-* | sort -V | tail -n 1)" "$image.initrd"
		chown --reference="$owner" "$image" "$image.vmlinuz" "$image.initrd"
		umount "$over/all" "$over"
		rmdir "$over"' bash "$root" "$image" "$size" "$TOP" "$@"
}

# boot_image IMAGE LIMIT LOG: until the guest switches itself off; it may reboot, and finds what it wrote, which
# goes with the run. It has a software FPGA. What it writes to /dev/virtio-ports/out is standard output.
boot_image() {
	local image=$1 limit=$2 status=0 lib

	have_root
	lib=$ROOT/usr/lib/x86_64-linux-gnu
	LOADER=("$lib/ld-linux-x86-64.so.2" --library-path "$lib")
	LOG=$(readlink -m "$3")
	JOB=$(mktemp -d /tmp/rashpa-lab.XXXXXX)
	FPGA_PID=() FPGA_DIED=0 FPGA_OPTIONS=()
	trap finish_run EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	mkfifo "$JOB/out"
	start_fpga 0 || exit "$E_FPGA"
	: >"$LOG"
	cat "$JOB/out" &
	QEMU_MODULE_DIR=$lib/qemu timeout -k 5 "$limit" "${LOADER[@]}" "$ROOT/usr/bin/qemu-system-x86_64" \
		-nodefaults -no-user-config -display none -name plain \
		-L "$ROOT/usr/share/qemu" -L "$ROOT/usr/share/seabios" \
		-accel tcg,thread=multi -cpu max -smp 2 -m 2G -object memory-backend-memfd,id=ram0,size=2G,share=on \
		-machine q35,memory-backend=ram0 \
		-kernel "$image.vmlinuz" -initrd "$image.initrd" \
		-append "root=/dev/vda rw console=ttyS0 loglevel=4 systemd.show_status=true no_timer_check" \
		-serial "file:${LOG//,/,,}" -device virtio-serial-pci \
		-chardev "file,id=out,path=$JOB/out" -device virtserialport,chardev=out,name=out \
		-drive "file=${image//,/,,},format=raw,if=virtio,snapshot=on,cache=unsafe" \
		-device pcie-root-port,id=fpga-port0,chassis=2,slot=2,pref64-reserve=256M,mem-reserve=32M \
		-device "{\"driver\":\"vfio-user-pci\",\"id\":\"fpga0\",\"bus\":\"fpga-port0\",\"socket\":{\"type\":\"unix\",\"path\":\"$JOB/fpga0.sock\"}}" \
		</dev/null >"${LOG%.log}-qemu.log" 2>&1 &
	QEMU_PID=$!
	wait "$QEMU_PID" 2>/dev/null || status=$?
	QEMU_PID=
	: <>"$JOB/out"
	stop_fpgas || say "a software FPGA died"
	((status == 0)) || { say "QEMU ended with status $status"; tail -n 12 "${LOG%.log}-qemu.log" "$LOG" >&2; }
	return "$status"
}
