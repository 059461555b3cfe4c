# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2034,SC2153
# Cached roots of plain Debian machines, with a stock kernel and the dependencies of packages.
# Guests that install packages boot from an image of one.

PLAIN_VERSION=2	# raise it when the steps below change the contents of such a root
MAKER_VERSION=1

declare -A PLAIN_SUITES=([12]=bookworm [13]=trixie)

suite_of_debian() { # 12|13
	[[ ${PLAIN_SUITES[$1]-} ]] || die "plain: Debian 12 or 13, not \"$1\""
	echo "${PLAIN_SUITES[$1]}"
}

# plain_path KIND DEBIAN VERSION DEPENDENCIES
plain_path() {
	local hash
	hash=$(echo "$3 $4" | sha256sum)
	echo "$CACHE/$1-$2-${hash:0:12}"
}

# begin_plain ROOT SUITE [FROM]: sets the caller's new
begin_plain() {
	local main security key=/usr/share/keyrings/debian-archive-keyring.gpg

	begin_root "$1" "a root of $2" "${3:-$2}"
	[[ ${3-} ]] || {
		echo "deb [signed-by=$key] $main $2 main"
		echo "deb [signed-by=$key] $main $2-updates main"
		[[ ! $security ]] || echo "deb [signed-by=$key] $security $2-security main"
	} | "${SUDO[@]}" tee "$new/etc/apt/sources.list" >/dev/null
	prepare_root
}

build_plain() { # final path, suite
	local new

	begin_plain "$1" "$2"
	step "machine" build_in "$new" apt-get install -y systemd-sysv udev dbus initramfs-tools zstd \
		pciutils jq iproute2 rdma-core ibverbs-providers openssl mokutil linux-image-amd64 linux-headers-amd64
	# shellcheck disable=SC2016
	step "initramfs" build_in "$new" sh -euc '
		for kernel in /lib/modules/*; do
			INITRD= update-initramfs -c -k "${kernel##*/}"
		done'
	step "settings" build_in "$new" sh -euc '
		: >/etc/machine-id
		echo lab >/etc/hostname
		passwd -d root
		ln -sf /lib/systemd/system/multi-user.target /etc/systemd/system/default.target
		systemctl mask systemd-networkd-wait-online.service apt-daily.timer apt-daily-upgrade.timer \
			dpkg-db-backup.timer e2scrub_all.timer fstrim.timer e2scrub_reap.service'
	finish_root "$1"
}

# the same with dependencies as apt writes them
extend_plain() { # final path, suite, root, dependencies
	local new

	begin_plain "$1" "$2" "$3"
	step "dependencies" build_in "$new" apt-get satisfy -y "$4"
	finish_root "$1"
}

# a root in which packages of another Debian are made
build_maker() { # final path, suite, dependencies as apt writes them
	local new

	begin_plain "$1" "$2"
	step "packaging tools" build_in "$new" apt-get satisfy -y "build-essential, ccache, $3"
	step "places" build_in "$new" sh -euc '
		mkdir -p /rashpa /rashpa-data /var/cache/rashpa
		ln -sf ../../bin/ccache /usr/lib/ccache/cc
		chmod 755 /root'
	finish_root "$1"
}

# Make the root, from one without dependencies, unless it exists; sets PLAIN.
have_plain() { # 12|13 [DEPENDENCY,...]
	local suite bare

	suite=$(suite_of_debian "$1") || exit
	bare=$(plain_path plain "$1" "$PLAIN_VERSION" "")
	PLAIN=$(plain_path plain "$1" "$PLAIN_VERSION" "${2-}")
	[[ ! -d $PLAIN ]] || return 0
	make_once "$bare" build_plain "$bare" "$suite"
	make_once "$PLAIN" extend_plain "$PLAIN" "$suite" "$bare" "${2-}"
}

# Make a root with the build dependencies of debian/control unless it exists; sets ROOT.
have_maker() { # 12
	local suite depends

	suite=$(suite_of_debian "$1") || exit
	depends=$(sed -n '/^Build-Depends/,/^$/{/@\|^$/d; s/^[^ ]*: *//; s/<[^>]*>//; s/[ ,]*$//; p}' \
		"$TOP/tools/packaging/debian/control" | sed 's/^ *//' | sort | paste -sd,)
	# these depend on the package with kernel-doc
	depends+=,linux-headers-amd64
	ROOT=$(plain_path maker "$1" "$MAKER_VERSION" "$depends")
	make_once "$ROOT" build_maker "$ROOT" "$suite" "$depends"
}

# plain DEBIAN [DEPENDENCY,...]
cmd_plain() {
	(($#)) || die "plain: Debian 12 or 13 is missing"
	have_plain "$1" "${2-}"
	echo "$PLAIN"
}

# in_image ROOT IMAGE SIZE COMMAND...: run the command on this machine, as root, in a copy of ROOT.
# The copy becomes an image with ext4, which guests boot from. Kernel and initramfs: $2.vmlinuz,
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

# boot_image IMAGE LIMIT LOG [APPEND [FIRMWARE]]: boot the image with a software FPGA, until the
# guest switches itself off. The guest may reboot and keeps its changes, until the run ends.
# Standard output is the guest's /dev/virtio-ports/out. APPEND: more kernel arguments. FIRMWARE:
# variables of UEFI, which make it check signatures.
boot_image() {
	local image=$1 limit=$2 status=0 lib machine=q35 append=${4-} smp=2
	local -a firmware=()

	# on few processors, the second one only waits for the first
	(($(nproc) > 2)) || smp=1
	# the full root contains the firmware
	[[ ! ${5-} ]] || FULL=yes
	have_root
	lib=$ROOT/usr/lib/x86_64-linux-gnu
	LOADER=("$lib/ld-linux-x86-64.so.2" --library-path "$lib")
	accelerate probe
	LOG=$(readlink -m "$3")
	JOB=$(mktemp -d /tmp/rashpa-lab.XXXXXX)
	FPGA_PID=() FPGA_DIED=0 FPGA_OPTIONS=()
	trap finish_run EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	mkfifo "$JOB/out"
	if [[ ${5-} ]]; then
		cp "$5" "$JOB/variables"
		# with this firmware and no IOMMU, registers of a board are not reachable
		machine+=,smm=on,kernel-irqchip=split
		firmware=(-device "intel-iommu,intremap=on,caching-mode=on"
			-global driver=cfi.pflash01,property=secure,value=on
			-drive "if=pflash,unit=0,format=raw,readonly=on,file=$ROOT/usr/share/OVMF/OVMF_CODE_4M.secboot.fd"
			-drive "if=pflash,unit=1,format=raw,file=$JOB/variables")
	fi
	start_fpga 0 || exit "$E_FPGA"
	: >"$LOG"
	cat "$JOB/out" &
	QEMU_MODULE_DIR=$lib/qemu timeout -k 5 "$limit" "${LOADER[@]}" "$ROOT/usr/bin/qemu-system-x86_64" \
		-nodefaults -no-user-config -display none -name plain \
		-L "$ROOT/usr/share/qemu" -L "$ROOT/usr/share/seabios" \
		"${ACCEL[@]}" -smp "$smp" -m 2G -object memory-backend-memfd,id=ram0,size=2G,share=on \
		-machine "$machine,memory-backend=ram0" "${firmware[@]}" \
		-kernel "$image.vmlinuz" -initrd "$image.initrd" \
		-append "root=/dev/vda rw console=ttyS0 loglevel=4 systemd.show_status=true no_timer_check $append" \
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
