# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2034
# Boot a kernel of the root with QEMU and run a command in the guest.

# Make the kernel of a series unless it exists; sets RELEASE, VMLINUZ, MODULES, GUEST (its root).
find_kernel() { # series
	have_kernel "$1"
	RELEASE=$(release "$1")
	GUEST=$ROOT
	[[ $1 != arm64 ]] || GUEST=$ARM64/root
	VMLINUZ=$GUEST/boot/vmlinuz-$RELEASE
	MODULES=$GUEST/usr/lib/modules/$RELEASE
	[[ $1 == debug ]] || return 0
	VMLINUZ=$DEBUG/vmlinuz
	MODULES=$DEBUG/modules
}

# Unpack this kernel unless that was done; sets VMLINUX. QEMU starts it at once: an emulated
# processor takes 2 s to unpack it, in each guest. The debug kernel is built without CONFIG_PVH.
have_vmlinux() {
	local hash at length unpack

	VMLINUX=$VMLINUZ
	[[ $RELEASE != *-rashpa-debug && $RELEASE != *-arm64 ]] || return 0

	hash=$({ echo "$ROOT"; stat -c %Y "$VMLINUZ"; declare -f have_vmlinux; } | sha256sum)
	VMLINUX=$CACHE/vmlinux-$RELEASE-${hash:0:12}
	[[ ! -e $VMLINUX ]] || return 0
	field() { od -An -j "$1" -N "$2" -t "u$2" "$VMLINUZ" | tr -d ' '; }
	# the header of a bzImage: sectors of setup, offset and length of the rest, whose end is its size unpacked
	at=$((($(field 0x1f1 1) + 1) * 512 + $(field 0x248 4)))
	length=$(($(field 0x24c 4) - 4))
	unpack=zstd
	[[ $(od -An -j "$at" -N 2 -t x1 "$VMLINUZ") != " fd 37" ]] || unpack=xz
	head -c $((at + length)) "$VMLINUZ" | tail -c "$length" |
		"${LOADER[@]}" "$ROOT/usr/bin/$unpack" -dcq >"$VMLINUX.$$" || die "cannot unpack $VMLINUZ"
	mv "$VMLINUX.$$" "$VMLINUX"
}

# Make the initramfs of this kernel unless it exists; sets INITRAMFS.
have_initramfs() {
	local rel=$RELEASE dir mods=$MODULES hash wanted ko file

	hash=$({ echo "$GUEST"; stat -c %Y "$VMLINUZ"; declare -f have_initramfs; cat "$LAB/initramfs-init"; } | sha256sum)
	INITRAMFS=$CACHE/initramfs-$rel-${hash:0:12}
	[[ -e $INITRAMFS ]] && return

	dir=$(mktemp -d "$CACHE/initramfs.XXXXXX")
	mkdir "$dir/bin" "$dir/modules" "$dir/dev" "$dir/proc" "$dir/sys" \
		"$dir/lower" "$dir/upper" "$dir/new"
	cp "$GUEST/usr/bin/busybox" "$dir/bin/"
	cp "$LAB/initramfs-init" "$dir/init"
	: >"$dir/modules/order"
	# ext4 of 6.1 requests a checksum by its name; other kernels have no such module. 6.1 has no
	# virtio-iommu. QEMU needs the IOMMU before the devices that it translates.
	for wanted in virtio_pci virtio-iommu virtio_console virtio_blk crc32c_generic ext4 9pnet_virtio 9p overlay; do
		[[ ! $wanted =~ ^(crc32c_generic|virtio-iommu)$ ]] || grep -q "/$wanted\.ko" "$mods/modules.dep" || continue
		grep -q "/$wanted\.ko" "$mods/modules.dep" "$mods/modules.builtin" ||
			die "no $wanted for the initramfs of $rel"
		# "a.ko: b.ko c.ko" means: load c, b, a
		for ko in $(sed -nE "s,^([^:]*/${wanted}\.ko[^:]*):,\1,p" "$mods/modules.dep" |
			tr ' ' '\n' | tac); do
			file=${ko##*/}
			file=${file%%.ko*}.ko
			[[ -e $dir/modules/$file ]] && continue
			case $ko in
			*.xz) "$ROOT/usr/bin/busybox" xzcat "$mods/$ko" ;;
			*.zst) "${LOADER[@]}" "$ROOT/usr/bin/zstd" -dcq "$mods/$ko" ;;
			*) cat "$mods/$ko" ;;
			esac >"$dir/modules/$file"
			echo "$file" >>"$dir/modules/order"
		done
	done
	(cd "$dir" && find . | "$ROOT/usr/bin/busybox" cpio -o -H newc -R 0:0 2>/dev/null |
		gzip -1) >"$dir.cpio"
	mv "$dir.cpio" "$INITRAMFS"
	rm -rf "$dir"
}

# Compile a library that a process of QEMU loads, unless it exists; sets HELPER.
have_helper() { # name, library
	local hash

	hash=$({ echo "$ROOT"; cat "$LAB/$1.c"; } | sha256sum)
	HELPER=$TOP/build/lab/$1-${hash:0:12}.so
	[[ -e $HELPER ]] && return
	mkdir -p "$TOP/build/lab"
	"$LAB/lab" exec --full -- cc -std=gnu17 -D_GNU_SOURCE -shared -fPIC -O2 -Wall -Wextra -Werror \
		-o "build/lab/$1.$$" "selftests/lab/$1.c" ${2:+"$2"} >&2 || die "cannot compile selftests/lab/$1.c"
	mv "$TOP/build/lab/$1.$$" "$HELPER"
}

# A GPU whose memory is a BAR; Mesa draws and computes for it on this processor. QEMU needs a render
# node, and Mesa udmabuf; helpers replace those that are missing. Adds QEMU's helper to "preload".
add_gpu() { # bus
	local render=("${LOADER[@]}") node=''

	for node in /dev/dri/render*; do
		[[ ! -w $node ]] || break
		node=
	done
	if [[ ! $node ]]; then
		have_helper surfaceless -lEGL
		preload+=(--preload "$HELPER")
	fi
	if [[ ! -w /dev/udmabuf ]]; then
		have_helper udmabuf
		render+=(--preload "$HELPER")
	fi
	# a separate process, also with the root's libraries
	printf '#!/bin/sh\nexec %s "$@"\n' "${render[*]@Q} '$ROOT/usr/libexec/virgl_render_server'" >"$JOB/render"
	chmod 755 "$JOB/render"
	export RENDER_SERVER_EXEC_PATH=$JOB/render VK_LOADER_LAYERS_DISABLE='~all~'
	export VK_DRIVER_FILES=$ROOT/usr/share/vulkan/icd.d/lvp_icd.json
	export __EGL_VENDOR_LIBRARY_FILENAMES=$ROOT/usr/share/glvnd/egl_vendor.d/50_mesa.json
	QEMU+=(-device "virtio-gpu-gl-pci,bus=$1,hostmem=256M,blob=on,venus=on")
}

# start_fpga NUMBER: returns once the process listens.
start_fpga() {
	local i=$1 program=${RASHPA_FPGA:-$TOP/build/tools/rashpa-fpga} n
	local socket=$JOB/fpga$i.sock
	local -a start=("$program") more=()
	local option

	if [[ ! -x $program ]]; then
		say "no software FPGA: $program"
		return 1
	fi
	rm -f "$socket"
	# programs that were built in the root run here with the root's libraries
	[[ $(head -c 4 "$program") != $'\x7fELF' ]] || start=("${LOADER[@]}" "$program")
	# NUMBER:OPTION is for one FPGA
	for option in "${FPGA_OPTIONS[@]}"; do
		if [[ ! $option =~ ^[0-9]+:- ]]; then
			more+=("$option")
		elif [[ ${option%%:*} == "$i" ]]; then
			more+=("${option#*:}")
		fi
	done
	"${start[@]}" --socket "$socket" --control "$JOB/fpga$i.control" \
		--log "${LOG%.log}-fpga$i.log" "${more[@]}" </dev/null &
	FPGA_PID[i]=$!
	for ((n = 0; n < 500; n++)); do # a guest that asked waits for 30 s
		[[ -S $socket ]] && return
		kill -0 "${FPGA_PID[i]}" 2>/dev/null || break
		sleep 0.05
	done
	say "software FPGA $i does not listen (log: ${LOG%.log}-fpga$i.log)"
	return 1
}

# kill -0 does not show the end of a child that the shell missed during "read -t".
alive() { [[ -e /proc/$1/exe ]]; }

# Answer requests of "host" in the guest, until QEMU ends.
serve_guest() {
	local line='' part status request number pid

	exec 5<>"$JOB/host.out"
	while alive "$QEMU_PID"; do
		status=0
		IFS= read -r -t 0.2 -u 5 part || status=$?
		line+=$part	# a time-out in the middle of a line leaves its beginning here
		((status)) && continue
		read -r request number <<<"$line"
		line=''
		if [[ $request == start-fpga && -e $JOB/share/fpga$number.json ]]; then
			pid=${FPGA_PID[number]-}
			if [[ $pid ]] && alive "$pid"; then
				echo "error: FPGA $number runs" >"$JOB/host.in"
			elif { [[ ! $pid ]] || reap_fpga "$number"; } && start_fpga "$number"; then
				echo ok >"$JOB/host.in"
			else
				echo "error: FPGA $number: see the log" >"$JOB/host.in"
			fi
		else
			echo "error: $request $number" >"$JOB/host.in"
		fi
	done
	exec 5>&-
}

# Wait for an FPGA that has ended or is about to; fails if it died.
reap_fpga() { # number
	local i=$1 status=0

	wait "${FPGA_PID[i]}" || status=$?
	((status == 0 || status == 143)) && return
	say "software FPGA $i ended with status $status (log: ${LOG%.log}-fpga$i.log)"
	FPGA_DIED=1
	return 1
}

# Stop the FPGAs; fails if one died during the run.
stop_fpgas() {
	local i

	for i in "${!FPGA_PID[@]}"; do
		kill -TERM "${FPGA_PID[i]}" 2>/dev/null || true
		reap_fpga "$i" || true
		unset "FPGA_PID[i]"
	done
	((FPGA_DIED == 0))
}

# Does KVM boot a kernel here? The answer is stored until this machine reboots.
probe_kvm() {
	local note
	note=$CACHE/kvm-$(</proc/sys/kernel/random/boot_id)
	exec 7>"$CACHE/kvm.lock"
	flock 7
	if [[ ! -e $note ]]; then
		rm -f "$CACHE"/kvm-*
		if [[ -w /dev/kvm ]] && "$LAB/lab" run --accel kvm --timeout 8 --smp 1 \
			--log "$CACHE/kvm.log" -- true >/dev/null 2>&1; then
			echo kvm >"$note"
		else
			echo tcg >"$note"
		fi
		say "KVM was tried: guests use $(<"$note") until this machine reboots"
	fi
	exec 7>&-
	cat "$note"
}

# Sets ACCEL: options of QEMU.
accelerate() { # tcg|kvm|icount|probe
	local accel=$1
	# with erms and fsrm, kernel and libraries copy by instructions that QEMU emulates byte by byte
	[[ $accel != probe ]] || accel=$(probe_kvm)
	case $accel in
	tcg) ACCEL=(-accel "tcg,thread=multi" -cpu max,erms=off,fsrm=off) ;;
	# one instruction takes one nanosecond; an idle guest jumps to its next timer
	icount) ACCEL=(-accel "tcg,thread=single" -icount shift=0,sleep=off -cpu max,erms=off,fsrm=off) ;;
	kvm) ACCEL=(-accel kvm -cpu host) ;;
	esac
}

finish_run() {
	trap - EXIT INT TERM
	if [[ ${QEMU_PID-} ]]; then
		kill -TERM "$QEMU_PID" 2>/dev/null || true
		wait "$QEMU_PID" 2>/dev/null || true
	fi
	stop_fpgas || true
	rm -rf "$JOB"
	# files of a QEMU that ran as root get the owner of the checkout
	if ((EUID == 0)) && [[ $(stat -c %u "$TOP") != 0 ]]; then
		find "$TOP/build" -xdev -user 0 -exec chown -h --reference="$TOP" {} + || true
	fi
}

# The log without allowed lines, without whole reports that contain one, and without the lines that
# a test expects.
without_allowed() {
	tr -d '\r' <"$LOG" | ALLOWED=$(entries "$LAB/allow" | paste -sd'|') awk '
		BEGIN { allowed = ENVIRON["ALLOWED"] }
		function is_allowed(line) { return allowed != "" && line ~ allowed }
		sub(/.*lab: expects: */, "") { expected = $0; next }
		expected != "" && index($0, expected) { next }
		/-+\[ cut here \]-+/ { printf "%s", report; report = ""; inside = 1; drop = 0 }
		inside {
			report = report $0 "\n"
			drop = drop || is_allowed($0)
			if ($0 ~ /---\[ end trace/) {
				if (!drop)
					printf "%s", report
				report = ""
				inside = 0
			}
			next
		}
		!is_allowed($0)
		END { printf "%s", report }'
}

# Lines of the log that must not be there.
findings() { without_allowed | grep -anEf <(entries "$LAB/patterns"); }

share() { # id, path, more
	QEMU+=(-fsdev "local,id=$1,path=${2//,/,,},security_model=none,multidevs=remap$3"
		-device "virtio-9p-pci,fsdev=$1,mount_tag=$1")
}

port() { # name, chardev
	local id=${2#*,id=}
	QEMU+=(-chardev "$2" -device "virtserialport,chardev=${id%%,*},name=$1")
}

# Memory that software FPGAs share, in so many NUMA nodes. Adds to "machine".
add_memory() { # size, nodes
	local i size
	size=$(($(numfmt --from=iec "$1") / $2))
	for ((i = 0; i < $2; i++)); do
		QEMU+=(-object "memory-backend-memfd,id=ram$i,size=$size,share=on")
		(($2 == 1)) || QEMU+=(-numa "node,nodeid=$i,memdev=ram$i")
	done
	(($2 > 1)) || machine+=,memory-backend=ram0
}

# An NVMe disk of zeros; its contents are lost when the run ends.
disk() { # number, size
	truncate -s "$2" "$JOB/disk$1" 2>/dev/null || die "run: --disk $2: not a size"
	QEMU+=(-blockdev "driver=file,node-name=disk$1,filename=$JOB/disk$1"
		-device "nvme,drive=disk$1,serial=rashpa$1")
}

# Disks and other devices of the command line, once.
plug_others() {
	local i
	for i in "${!disks[@]}"; do
		disk "$i" "${disks[i]}"
	done
	QEMU+=("${devices[@]}")
	disks=() devices=()
}

cmd_run() {
	local caching='' kernel iommu=off memory=2G smp=2 fpgas=0 spare=1 topology=port accel=probe checks=yes
	local above machine=q35 program console=ttyS0 room limit=300 nodes=1 keep=0 append='' log='' name i bus lib status=0 gpus=0 display=none
	local -a devices=() disks=() preload=()

	FPGA_OPTIONS=()
	kernel=$(core_kernel | cut -f1)
	while (($#)); do
		case $1 in
		--keep-going) keep=1; shift; continue ;;
		--full) FULL=yes; shift; continue ;;
		--no-checks) checks=; shift; continue ;;
		--gpu) gpus=1 FULL=yes; shift; continue ;;
		--) shift; break ;;
		esac
		(($# > 1)) || die "run: $1 has no value, or -- CMD is missing"
		case $1 in
		--kernel) kernel=$2 ;;
		--iommu) iommu=$2 ;;
		--memory) memory=$2 ;;
		--smp) smp=$2 ;;
		--nodes) nodes=$2 ;;
		--fpga) fpgas=$2 ;;
		--spare) spare=$2 ;;
		--fpga-option) FPGA_OPTIONS+=("$2") ;;
		--topology) topology=$2 ;;
		--append) append+=" $2" ;;
		--device) devices+=(-device "$2") ;;
		--object) devices+=(-object "$2") ;;
		--netdev) devices+=(-netdev "$2") ;;
		--disk) disks+=("$2") ;;
		--timeout) limit=$2 ;;
		--log) log=$2 ;;
		--accel) accel=$2 ;;
		*) die "run: unknown option $1" ;;
		esac
		shift 2
	done
	(($#)) || die "run: no command"
	[[ $iommu =~ ^(on|off|lazy|virtio|amd)$ ]] || die "run: --iommu on, off, lazy, virtio or amd"
	[[ $topology =~ ^(port|switch|both)$ ]] || die "run: --topology port, switch or both"
	[[ $accel =~ ^(tcg|kvm|icount|probe)$ ]] || die "run: --accel tcg, kvm, icount or probe"
	[[ $fpgas =~ ^[0-9]+$ && $spare =~ ^[0-9]+$ && $limit =~ ^[0-9]+$ && $nodes =~ ^[12]$ ]] || die "run: not a number"
	find_kernel "$kernel"
	# programs of the root run here without a chroot, so they need no privileges
	lib=$ROOT/usr/lib/x86_64-linux-gnu
	LOADER=("$lib/ld-linux-x86-64.so.2" --library-path "$lib")
	have_vmlinux
	have_initramfs
	ROOT=$GUEST have_image
	program=$ROOT/usr/bin/qemu-system-x86_64
	if [[ $kernel == arm64 ]]; then
		[[ $iommu =~ ^(on|off|virtio)$ && $nodes == 1 && $gpus == 0 ]] ||
			die "run: an arm64 guest has no --gpu, --nodes 2, or --iommu $iommu"
		[[ $iommu != on || $fpgas == 0 ]] ||
			die "run: QEMU's SMMU does not report maps to software FPGAs; use --iommu virtio, or --fpga 0"
		program=$ARM64/over/usr/bin/qemu-system-aarch64 machine=virt,gic-version=3 console=ttyAMA0
		ACCEL=(-accel "tcg,thread=multi" -cpu max,pauth-impdef=on)
	else
		accelerate "$accel"
	fi

	LOG=$(readlink -m "${log:-$TOP/build/lab/$kernel-iommu-$iommu.log}")
	mkdir -p "$(dirname "$LOG")"
	: >"$LOG"
	JOB=$(mktemp -d /tmp/rashpa-lab.XXXXXX)
	FPGA_PID=()
	FPGA_DIED=0
	trap finish_run EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	mkdir "$JOB/share"
	mkfifo "$JOB/stdout" "$JOB/stderr" "$JOB/host.in" "$JOB/host.out"

	# no console on its screen
	((!gpus)) || { display=egl-headless; append+=" drm_kms_helper.fbdev_emulation=0"; }
	QEMU=("$program" -nodefaults -no-user-config -display "$display"
		-L "$ROOT/usr/share/qemu" -L "$ROOT/usr/share/seabios" -L "$ROOT/usr/lib/ipxe/qemu"
		-name lab -no-reboot -m "$memory" -smp "$smp"
		-serial "file:${LOG//,/,,}"
		-kernel "$VMLINUX" -initrd "$INITRAMFS" "${ACCEL[@]}")
	case $kernel-$iommu in
	arm64-on) machine+=,iommu=smmuv3 ;;
	arm64-*) ;;
	*-off) append="intel_iommu=off$append" ;;
	*) machine+=,kernel-irqchip=split ;;
	esac
	add_memory "$memory" "$nodes"
	QEMU+=(-machine "$machine")
	case $kernel-$iommu in
	arm64-on | *-off) ;;
	*-amd) QEMU+=(-device amd-iommu,dma-remap=on) ;;
	*-virtio) QEMU+=(-device virtio-iommu-pci) ;;
	*)
		# software FPGAs need caching mode; without it the kernel flushes lazily
		[[ $iommu == lazy ]] || caching=,caching-mode=on
		QEMU+=(-device "intel-iommu,intremap=on$caching")
		append="intel_iommu=on$append"
		;;
	esac
	[[ $iommu == off ]] || append="iommu=nopt $append"
	((keep)) || append="oops=panic $append"
	# tsc=reliable: on a busy machine the clocks that watch each other disagree, and HPET is slow to
	# read. slab_debug: without checks the slabs keep addresses of lost objects in arrays, where
	# kmemleak finds them. no5lvl: while the kernel examines its processor for the second time, it
	# briefly misses the fifth level of page tables. An interrupt at that moment makes KASAN report
	# a valid address as wild. Stock kernels can check for writes to freed memory, and beyond the
	# end. With U, reports would name the allocating function, but a boot takes a second longer.
	# guest-init starts KFENCE.
	case $kernel$checks in
	debug*) append="tsc=reliable no5lvl slab_debug=F,kmalloc-* $append" ;;
	6.1yes) append="slub_debug=FZP page_poison=1 $append" ;;
	*yes) append="slab_debug=FZP page_poison=1 kfence.sample_interval=0 $append" ;;
	esac
	# no_timer_check: on a busy machine ticks come late, and 6.1 would panic
	QEMU+=(-append "console=$console loglevel=7 printk.devkmsg=on panic=-1 no_timer_check $append")

	QEMU+=(-device virtio-serial-pci)
	port stdout "file,id=stdout,path=$JOB/stdout"
	port stderr "file,id=stderr,path=$JOB/stderr"
	port host "pipe,id=host,path=$JOB/host"
	# QEMU's own monitor, connected to itself: the guest may unplug devices
	QEMU+=(-chardev "socket,id=monitor,path=$JOB/monitor,server=on,wait=off"
		-object "monitor-qmp,id=monitor,chardev=monitor")
	port qmp "socket,id=qmp,path=$JOB/monitor"
	QEMU+=(-blockdev "driver=file,node-name=root,filename=$IMAGE,read-only=on"
		-device "virtio-blk-pci,drive=root,serial=root")
	share rashpa "$TOP" ""
	share job "$JOB/share" ""
	# the root contains the modules of all other kernels
	[[ $kernel != debug ]] || share modules "$MODULES" ,readonly=on
	find_data
	[[ ! $DATA ]] || share data "$DATA" ,readonly=on

	if ((fpgas + gpus)) && [[ $topology != port ]]; then
		QEMU+=(-device "pcie-root-port,id=switch-port,chassis=1,slot=1"
			-device "x3130-upstream,id=switch,bus=switch-port")
	fi
	# more ports than FPGAs, for boards that are plugged in later; many fit only below 4 GiB, and
	# only if each takes no more than it needs
	above=pcie.0
	if ((nodes > 1)); then
		plug_others # before there is another bus, where QEMU would put them
		QEMU+=(-device pxb-pcie,id=node1,bus_nr=64,numa_node=1)
		above=node1
	fi
	room=pref64-reserve=256M,mem-reserve=32M
	((spare <= 1)) || room=pref64-reserve=64M,mem-reserve=2M
	for ((i = 0; fpgas && i < fpgas + spare; i++)); do
		bus=fpga-port$i
		case $topology$i in
		port* | both[!0]*) QEMU+=(-device "pcie-root-port,id=$bus,bus=$above,chassis=$((i + 2)),slot=$((i + 2)),$room") ;;
		*) QEMU+=(-device "xio3130-downstream,id=$bus,bus=switch,chassis=$((i + 2)),slot=$((i + 2))") ;;
		esac
		printf '{"driver":"vfio-user-pci","id":"fpga%d","bus":"%s","socket":{"type":"unix","path":"%s"}}\n' \
			"$i" "$bus" "$JOB/fpga$i.sock" >"$JOB/share/fpga$i.json"
		port "fpga$i" "socket,id=control$i,path=$JOB/fpga$i.control,reconnect-ms=1000"
		((i < fpgas)) || continue
		start_fpga "$i" || exit "$E_FPGA"
		QEMU+=(-device "$(<"$JOB/share/fpga$i.json")")
	done
	if ((gpus)); then
		case $topology in
		port) QEMU+=(-device "pcie-root-port,id=gpu-port,chassis=64,slot=64") ;;
		*) QEMU+=(-device "xio3130-downstream,id=gpu-port,bus=switch,chassis=64,slot=64") ;;
		esac
		add_gpu gpu-port
	fi
	plug_others

	[[ ! $iommu =~ ^(amd|virtio)$ ]] || iommu=on # what tests expect of it
	{
		for name in $(compgen -e RASHPA_); do
			printf 'export %s=%q\n' "$name" "${!name}"
		done
		printf 'export RASHPA_KERNEL=%q RASHPA_IOMMU=%q RASHPA_FPGAS=%q RASHPA_GPUS=%q\n' \
			"$kernel" "$iommu" "$fpgas" "$gpus"
		printf 'unset RASHPA_CACHE RASHPA_FPGA RASHPA_MIRROR RASHPA_MIRROR_SECURITY RASHPA_DATA\n'
		[[ ! $DATA ]] || printf 'export RASHPA_DATA=/rashpa-data\n'
	} >"$JOB/share/environment"
	{ printf '%q ' "$@"; echo; } >"$JOB/share/command"

	cat "$JOB/stdout" &
	local out=$!
	cat "$JOB/stderr" >&2 &
	local err=$!
	QEMU_MODULE_DIR=$lib/qemu timeout -k 5 "$limit" "${LOADER[@]}" "${preload[@]}" "${QEMU[@]}" </dev/null >"${LOG%.log}-qemu.log" 2>&1 &
	QEMU_PID=$!
	serve_guest
	wait "$QEMU_PID" 2>/dev/null || status=$?
	QEMU_PID=
	: <>"$JOB/stdout" # ends the readers, even if QEMU never opened these
	: <>"$JOB/stderr"
	wait "$out" "$err" || true
	judge "$status" "$keep" "$limit"
}

indent() { sed 's/^/lab:   /' >&2; }

# Report the result of the run; ends the program with the exit status.
judge() { # status of timeout/QEMU, keep going, time limit
	local status=$1 keep=$2 limit=$3 found='' fpga=0

	found=$(findings) || true
	stop_fpgas || fpga=1
	if [[ $found ]]; then
		say "the kernel log has:"
		indent <<<"$found"
	fi
	if ((status == 124 || status == 137)); then
		say "time limit of $limit s"
		status=$E_TIME
	elif [[ ! -e $JOB/share/status ]]; then
		say "QEMU ended with status $status and printed:"
		tail -n 12 "${LOG%.log}-qemu.log" | indent
		! grep -q "no drm render node" "${LOG%.log}-qemu.log" ||
			say "--gpu: this QEMU does not call the egl_init() of selftests/lab/surfaceless.c, and the host has no render node"
		say "the guest ended without an exit status; the end of its log:"
		tail -n 12 "$LOG" | tr -d '\r' | indent
		status=$E_DEAD
	else
		status=$(<"$JOB/share/status")
		if [[ $found ]] && ! ((keep)); then
			status=$E_LOG
		elif ((fpga)); then
			status=$E_FPGA
		fi
	fi
	((status == 0)) || say "exit status $status; kernel log: $LOG"
	exit "$status"
}
