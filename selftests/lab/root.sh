# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# The cached Debian 13 roots. The core root serves the tools, the module for the newest kernel and
# most guests. The full root is a copy of it, with everything else: other kernels, other
# compilers, the source of the kernel. It is made on first use.

ROOT_VERSION=6	# raise it when the steps below change the contents of the core root
FULL_VERSION=1	# the same for the full one
FULL=${RASHPA_FULL-}	# not empty: ROOT is the full one

# section NAME: its lines of "packages"
section() {
	entries "$LAB/packages" | awk -v s="[$1]" '/^\[/ { inside = $0 == s; next } inside'
}

# Series and suite of the core root: the last line; those of the full root: the lines before it.
core_kernel() { entries "$LAB/kernels" | tail -n 1; }
full_kernels() { entries "$LAB/kernels" | head -n -1; }

core_path() {
	local hash
	hash=$({ echo "$ROOT_VERSION"; section core; section stand-in; core_kernel; } | sha256sum)
	echo "$CACHE/root-${hash:0:12}"
}

full_path() {
	local hash
	hash=$({ echo "$FULL_VERSION $(core_path)"; section full; full_kernels; } | sha256sum)
	echo "$CACHE/full-${hash:0:12}"
}

# Prints "main security": addresses of the archive that this machine uses.
mirrors() {
	local uri label main='' security=''

	if [[ ${RASHPA_MIRROR-} ]]; then
		echo "$RASHPA_MIRROR ${RASHPA_MIRROR_SECURITY-}"
		return
	fi
	# shellcheck disable=SC2016 # the variables are apt's
	while IFS='|' read -r uri label; do
		case $label in
		Debian) main=${main:-$uri} ;;
		Debian-Security) security=${security:-$uri} ;;
		esac
	done < <(apt-get indextargets --format '$(REPO_URI)|$(LABEL)' 'Created-By: Packages' 'Origin: Debian')
	[[ $main ]] && echo "$main $security"
}

write_sources() { # root, main, security
	local suite
	{
		for suite in trixie trixie-updates trixie-backports bookworm; do
			echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $2 $suite main"
		done
		if [[ $3 ]]; then
			for suite in trixie-security bookworm-security; do
				echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $3 $suite main"
			done
		fi
	} | "${SUDO[@]}" tee "$1/etc/apt/sources.list"

	# bookworm only for packages that trixie lacks; backports for QEMU and the needs of its kernels
	"${SUDO[@]}" tee "$1/etc/apt/preferences.d/lab" <<-END
	Package: *
	Pin: release n=bookworm*
	Pin-Priority: 90

	Package: src:qemu src:seabios src:ipxe src:linux src:linux-base src:linux-signed-amd64
	Pin: release n=trixie-backports
	Pin-Priority: 990
	END
}

# Files that apt needs while a root is made; finish_root removes most of them.
write_access() { # root, main, security
	# Settings to reach the archive; removed at the end.
	{
		apt-config dump | grep -E '^Acquire::(https?|ftp)::|^Acquire::(Check-Valid-Until|Check-Date|Retries)' || true
		echo 'APT::Install-Recommends "false";'
		echo 'Acquire::Languages "none";'
		if [[ $2$3 == *https:* && -e /etc/ssl/certs/ca-certificates.crt ]]; then
			"${SUDO[@]}" mkdir -p "$1/etc/ssl/certs"
			"${SUDO[@]}" cp /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/"
		fi
	} | "${SUDO[@]}" tee "$1/etc/apt/apt.conf.d/99lab-build"
	printf '#!/bin/sh\nexit 101\n' | "${SUDO[@]}" tee "$1/usr/sbin/policy-rc.d"
	"${SUDO[@]}" chmod 755 "$1/usr/sbin/policy-rc.d"
	"${SUDO[@]}" cp -L /etc/resolv.conf "$1/etc/resolv.conf"
}

# build_in ROOT COMMAND...: a writable chroot with its own mounts.
build_in() {
	local root=$1
	shift
	# shellcheck disable=SC2016
	"${SUDO[@]}" unshare --mount --propagation private sh -euc '
		root=$1; shift
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		exec chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 \
			DEBIAN_FRONTEND=noninteractive INITRD=No \
			PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"' sh "$root" "$@"
}

# Newest kernel of a series, e.g. 6.1 -> 6.1.0-45-amd64; of all series for "newest", and of those
# with PREEMPT_RT for "rt". It must have headers and an image: the image is signed, and reaches
# the archive later.
newest() { # root, series
	local series=${2//./\\.} flavour=amd64

	[[ $2 != rt ]] || flavour=rt-amd64
	[[ $2 != newest && $2 != rt ]] || series='[0-9]+'
	build_in "$1" apt-cache search --names-only "^linux-(headers|image)-$series\.[0-9]" |
		sed -nE "s/^linux-(headers|image)-([0-9][^ ]*[0-9]-$flavour) .*/\2/p" |
		sort -V | uniq -d | tail -n 1
}

# install_packages ROOT KERNELS PACKAGE...: KERNELS are lines of "kernels".
install_packages() {
	local root=$1 series suite release
	local -a releases=()

	while read -r series suite; do
		release=$(newest "$root" "$series")
		[[ $release ]] || die "no kernel $series in $suite"
		releases+=("$release")
		printf '%s\t%s\n' "$series" "$release" | "${SUDO[@]}" tee -a "$root/etc/lab-kernels" >/dev/null
	done <<<"$2"
	build_in "$root" apt-get install -y "${@:3}" "${releases[@]/#/linux-image-}" \
		"${releases[@]/#/linux-headers-}"
	# The packages' scripts run depmod; Debian's initramfs is not needed here.
	# shellcheck disable=SC2016 # since 7.2 the image is in the folder of the modules
	build_in "$root" sh -euc '
		for release; do
			[ -e "/boot/vmlinuz-$release" ] || cp "/usr/lib/modules/$release/vmlinuz" "/boot/vmlinuz-$release"
			chmod 644 "/boot/vmlinuz-$release"
			[ -s "/usr/lib/modules/$release/modules.dep" ] || depmod "$release"
			rm -f "/boot/initrd.img-$release"
		done' sh "${releases[@]}"
}

# Newest source of the archive; the debug kernel is made from it.
newest_source() { # root
	build_in "$1" apt-cache search --names-only '^linux-source-[0-9.]+$' | cut -d' ' -f1 |
		sort -V | tail -n 1
}

# Unpack checkpatch, coccinelle's rules and the files that they read, next to the source package.
unpack_scripts() { # root
	build_in "$1" sh -euc '
		cd /usr/src
		set -- linux-source-*.tar.xz
		mkdir linux-scripts
		tar -xf "$1" -C linux-scripts --strip-components=1 --wildcards \
			"linux-source-*/scripts" "linux-source-*/.clang-format" "linux-source-*/COPYING"'
}

# Install debootstrap and find the archive: sets the caller's main, security.
find_archive() {
	need debootstrap=debootstrap unshare=util-linux
	[[ -e /usr/share/keyrings/debian-archive-keyring.gpg ]] || need /=debian-archive-keyring
	read -r main security < <(mirrors) || true
	if [[ ! ${main-} ]]; then
		"${SUDO[@]}" apt-get update >&2 || true
		read -r main security < <(mirrors) || true
	fi
	[[ ${main-} ]] || die "no Debian archive in this machine's apt configuration (set RASHPA_MIRROR)"
}

# begin_root PATH WHAT SUITE|ROOT [FOLDER...]: sets the caller's new, main and security. The new
# root is debootstrap's, without these folders of /usr/share, or a copy of ROOT. prepare_root and
# finish_root follow; finish_root puts it in place.
begin_root() {
	new=$1.new.$$
	find_archive
	# shellcheck disable=SC2064
	trap "${SUDO[*]} rm -rf --one-file-system '$new'" EXIT
	STEP_LOG=$1.log
	: >"$STEP_LOG"
	say "making $2 in $1 (log: $STEP_LOG)"
	if [[ -d $3 ]]; then
		step "copy of ${3##*/}" "${SUDO[@]}" cp -a --reflink=auto "$3" "$new"
		return
	fi
	"${SUDO[@]}" mkdir -p "$new/etc/dpkg/dpkg.cfg.d"
	printf '%s\n' force-unsafe-io "${@:4}" | sed 's,^[a-z]*$,path-exclude=/usr/share/&/*,' |
		"${SUDO[@]}" tee "$new/etc/dpkg/dpkg.cfg.d/lab" >/dev/null
	step "base system" "${SUDO[@]}" debootstrap --variant=minbase \
		--keyring=/usr/share/keyrings/debian-archive-keyring.gpg "$3" "$new" "$main"
}

prepare_root() {
	write_access "$new" "$main" "$security" >/dev/null
	step "package lists" build_in "$new" apt-get update
}

finish_root() { # final path
	step "clean" build_in "$new" sh -euc '
		apt-get clean
		rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old /tmp/* /usr/sbin/policy-rc.d
		rm -f /etc/apt/apt.conf.d/99lab-build'
	"${SUDO[@]}" chmod 755 "$new"
	"${SUDO[@]}" mv -T "$new" "$1"
	trap - EXIT
	say "complete: $(du -sh "$1" 2>/dev/null | cut -f1), ${SECONDS} s"
}

# One empty package that provides unneeded dependencies of other packages.
stand_in() { # root
	local dir
	dir=$(mktemp -d)
	chmod 755 "$dir"
	mkdir -m 755 "$dir/DEBIAN"
	cat >"$dir/DEBIAN/control" <<-END
	Package: lab-stand-in
	Version: 1
	Architecture: all
	Maintainer: the lab <root@localhost>
	Provides: $(section stand-in | sed 's/$/ (= 999)/' | paste -sd,)
	Description: nothing, in place of packages that nothing here needs
	END
	"${SUDO[@]}" dpkg-deb --root-owner-group --build "$dir" "$1/tmp/stand-in.deb"
	build_in "$1" dpkg -i /tmp/stand-in.deb
	rm -r "$dir"
}

build_core() { # final path
	local new main security
	local -a packages

	begin_root "$1" "the core root" trixie doc info locale man
	write_sources "$new" "$main" "$security" >/dev/null
	prepare_root
	stand_in "$new" >>"$STEP_LOG" 2>&1
	mapfile -t packages < <(section core)
	step "packages" install_packages "$new" "$(core_kernel)" "${packages[@]}"
	step "folders" build_in "$new" sh -euc '
		groupadd --system rashpa
		mkdir -p /rashpa /rashpa-data /var/cache/rashpa
		ln -sf ../../bin/ccache /usr/lib/ccache/cc
		chmod 755 /root'
	finish_root "$1"
}

build_full() { # final path
	local new main security source
	local -a packages

	begin_root "$1" "the full root" "$(core_path)"
	prepare_root
	mapfile -t packages < <(section full)
	source=$(newest_source "$new")
	[[ $source ]] || die "no source of a kernel in the archive"
	step "packages" install_packages "$new" "$(full_kernels)" "${packages[@]}" "$source"
	step "scripts of the kernel" unpack_scripts "$new"
	finish_root "$1"
}

# make_once PATH COMMAND...: run the command, which makes PATH, unless PATH exists.
make_once() {
	[[ ! -e $1 ]] || return 0
	mkdir -p "$CACHE"
	exec 9>"$1.lock"
	if ! flock -n 9; then
		say "another lab makes ${1##*/}, waiting"
		flock 9
	fi
	[[ -e $1 ]] || "${@:2}"
	exec 9>&-
}

# Make the root unless it exists, and the full one if FULL is set; sets ROOT. The disk of guests
# is made in the background.
have_root() {
	ROOT=$(core_path)
	if [[ ! -d $ROOT ]]; then
		make_once "$ROOT" build_core "$ROOT"
		RASHPA_FULL='' setsid "$LAB/lab" image </dev/null >/dev/null 2>&1 &
	fi
	[[ $FULL ]] || return 0
	ROOT=$(full_path)
	make_once "$ROOT" build_full "$ROOT"
}

# The root as a disk of guests. 1 GiB of holes keeps mke2fs from running out of room.
build_image() {
	local new=$IMAGE.new.$$ blocks

	# shellcheck disable=SC2064
	trap "${SUDO[*]} rm -f '$new'" EXIT
	need mke2fs=e2fsprogs
	STEP_LOG=$ROOT.log
	blocks=$("${SUDO[@]}" du -sxk "$ROOT" | cut -f1)
	step "disk of guests" "${SUDO[@]}" mke2fs -q -t ext4 -O ^has_journal -E root_owner=0:0 -m 0 \
		-d "$ROOT" "$new" "$((blocks * 5 / 4 + (1 << 20)))k"
	"${SUDO[@]}" chown --reference="$CACHE" "$new"
	mv "$new" "$IMAGE"
	trap - EXIT
}

# Make the disk of guests unless it exists; sets IMAGE.
have_image() {
	IMAGE=$ROOT.img
	make_once "$IMAGE" build_image
}

# Make the kernel of a series unless it exists; "coverage" is a build for the debug kernel.
have_kernel() { # series
	{ entries "$LAB/kernels" | cut -f1; printf '%s\n' debug coverage arm64; } |
		grep -xF -- "$1" >/dev/null ||
		die "no kernel $1"
	[[ $1 == "$(core_kernel | cut -f1)" ]] || FULL=yes
	if [[ $1 == debug || $1 == coverage ]]; then
		have_debug
	elif [[ $1 == arm64 ]]; then
		have_arm64
	else
		have_root
		[[ $(release "$1") ]] || die "no kernel $1"
	fi
}

# release SERIES -> exact release
release() {
	if [[ $1 == debug ]]; then
		cat "$DEBUG/release"
	elif [[ $1 == arm64 ]]; then
		cat "$ARM64/release"
	else
		awk -v s="$1" '$1 == s { print $2 }' "$ROOT/etc/lab-kernels"
	fi
}

cmd_root() {
	[[ ${1-} != --full ]] || FULL=yes
	have_root
	echo "$ROOT"
}

cmd_image() {
	have_root
	have_image
	echo "$IMAGE"
}

cmd_release() { # series
	(($# == 1)) || die "release: SERIES is missing"
	have_kernel "$1" >&2
	release "$1"
}

cmd_kernels() {
	local series known

	have_root >&2
	[[ ! -d $(full_path) ]] || ROOT=$(full_path)
	find_debug
	find_arm64
	for series in $(entries "$LAB/kernels" | cut -f1) debug arm64; do
		known=$(release "$series" 2>/dev/null) || true
		printf '%s\t%s\n' "$series" "${known:-not made yet}"
	done
}

cmd_clean() {
	local path keep=none keep_debug=none keep_arm64=none

	if [[ ${1-} == --old ]]; then
		keep=$(core_path)
		find_arm64
		keep_arm64=$ARM64
		ROOT=$(full_path)
		[[ ! -d $ROOT ]] || { find_debug; keep_debug=$DEBUG; }
	fi
	for path in "$CACHE"/results "$CACHE"/{root,full,debug,arm64,initramfs,vmlinux,headers}-* "$CACHE"/apt; do
		[[ $path == "$keep"* || $path == "$keep_debug"* || $path == "$keep_arm64"* || $path == "${ROOT-none}"* ]] ||
			"${SUDO[@]}" rm -rf --one-file-system "$path"
	done
	# earlier versions of these look the same as those of another checkout
	[[ $keep != none ]] || "${SUDO[@]}" rm -rf --one-file-system "$CACHE"/plain-* "$CACHE"/maker-*
}

# enter [--over LAYER] [--scratch] [FOLDER TARGET]... -- COMMAND...: replaces this process by
# the command inside the root, which is read-only here; each FOLDER is seen as TARGET.
# --over: mount that layer over the root. --scratch: keep changes of the root in memory while
# the command runs.
enter() {
	local over='' scratch=''

	while [[ $1 == --over || $1 == --scratch ]]; do
		if [[ $1 == --over ]]; then
			over=$2
			shift
		else
			scratch=yes
		fi
		shift
	done
	# shellcheck disable=SC2016
	exec "${SUDO[@]}" unshare --mount --propagation private sh -euc '
		root=$1 over=$2 scratch=$3; shift 3
		layers=lowerdir=${over:+$over:}$root
		if [ "$scratch" ]; then
			mount -t tmpfs tmpfs "$root/mnt"
			mkdir "$root/mnt/upper" "$root/mnt/work"
			layers=$layers,upperdir=$root/mnt/upper,workdir=$root/mnt/work
			mount -t overlay -o "$layers" overlay "$root"
		elif [ "$over" ]; then
			mount -t overlay -o "ro,$layers" overlay "$root"
		else
			mount --bind "$root" "$root"
			mount -o remount,bind,ro "$root"
		fi
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		mount --rbind /sys "$root/sys"
		for dir in tmp run root; do
			mount -t tmpfs -o mode=1777 tmpfs "$root/$dir"
		done
		while [ "$1" != -- ]; do
			mount --bind "$1" "$root/$2"
			[ "$2" != rashpa-data ] || mount -o remount,bind,ro "$root/$2"
			shift 2
		done
		shift
		exec chroot "$root" "$@"' sh "$ROOT" "$over" "$scratch" "$@"
}

# Objects of the compiler (ccache) and results of source checks, by hash of their inputs. All
# checkouts share them. Unused ones are removed.
kept_results() {
	local dir=$CACHE/results

	mkdir -p "$dir/ccache" "$dir/checked"
	find "$dir/checked" -type f -atime +60 -delete
	[[ $(stat -c %u "$dir/checked") == $(stat -c %u "$TOP") ]] ||
		"${SUDO[@]}" chown -R --reference="$TOP" "$dir"
}

# exec [--full] [--kernel SERIES]... [--headers] [--scratch] [--debian 12] COMMAND...: run the
# command inside the root; the checkout is /rashpa, and files get the owner of the checkout.
# --scratch: as root. --debian: in a root that makes packages of that Debian.
cmd_exec() {
	local name scratch='' debian='' path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	local -a pass=() layers=() folders=("$TOP" rashpa) who=() kernels=()

	while [[ ${1-} == --* ]]; do
		case $1 in
		--) shift; break ;;
		--kernel)
			(($# > 1)) || die "exec: --kernel has no value"
			kernels+=("$2")
			shift
			;;
		--debian)
			(($# > 1)) || die "exec: --debian has no value"
			debian=$2
			shift
			;;
		--full) FULL=yes ;;
		--headers) have_headers; layers+=(--over "$HEADERS") ;;
		--scratch) scratch=yes; layers+=(--scratch) ;;
		*) die "exec: unknown option $1" ;;
		esac
		shift
	done
	(($#)) || die "exec: no command"
	if [[ $debian ]]; then
		have_maker "$debian"
	else
		have_root
		for name in "${kernels[@]}"; do
			have_kernel "$name"
			[[ $name != arm64 ]] || { layers+=(--over "$ARM64/over"); folders+=("$ARM64/root" mnt); }
		done
	fi
	if [[ ! $scratch ]]; then
		who=(setpriv --reuid "$(stat -c %u "$TOP")" --regid "$(stat -c %g "$TOP")"
			--clear-groups)
		kept_results
		folders+=("$CACHE/results" var/cache/rashpa)
		path=/usr/lib/ccache:$path
		pass+=(CCACHE_DIR=/var/cache/rashpa/ccache CCACHE_MAXSIZE=2G)
	fi
	find_data
	if [[ $DATA ]]; then
		folders+=("$DATA" rashpa-data)
		RASHPA_DATA=/rashpa-data
		export RASHPA_DATA
	fi
	for name in $(compgen -e RASHPA_) TERM; do
		[[ -v $name ]] && pass+=("$name=${!name}")
	done
	pass+=(WERROR=-Werror)
	[[ ! $FULL || $debian ]] || find_debug
	if [[ -d ${DEBUG-} ]]; then
		debug_mount_point
		folders+=("$DEBUG/modules" "usr/lib/modules/$(release debug)")
	fi
	enter "${layers[@]}" "${folders[@]}" -- "${who[@]}" env -i -C /rashpa HOME=/root LANG=C.UTF-8 \
		PATH="$path" "${pass[@]}" "$@"
}
