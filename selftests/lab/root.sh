# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# The cached Debian 13 root: compilers, QEMU, kernels and their headers.

ROOT_VERSION=5	# raise it when the steps below change what is in the root

root_path() {
	local hash
	hash=$({ echo "$ROOT_VERSION"; entries "$LAB/packages"; entries "$LAB/kernels"; } | sha256sum)
	echo "$CACHE/root-${hash:0:12}"
}

# The archive to use is this machine's own: prints "main security".
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

	# bookworm only for what trixie does not have; from backports QEMU, and what its kernels need
	"${SUDO[@]}" tee "$1/etc/apt/preferences.d/lab" <<-END
	Package: *
	Pin: release n=bookworm*
	Pin-Priority: 90

	Package: src:qemu src:seabios src:ipxe src:linux-base
	Pin: release n=trixie-backports
	Pin-Priority: 990
	END

	"${SUDO[@]}" tee "$1/etc/dpkg/dpkg.cfg.d/lab" <<-END
	force-unsafe-io
	path-exclude=/usr/share/man/*
	path-exclude=/usr/share/doc/*
	path-exclude=/usr/share/info/*
	path-exclude=/usr/share/locale/*
	END
}

# What lets apt work while a root is made; finish_root takes most of it out again.
write_access() { # root, main, security
	# How this machine reaches its archive; taken out again when all is there.
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

# Newest stock kernel of a series, e.g. 6.1 -> 6.1.0-45-amd64; of all of them for "newest".
# It has headers and an image: that is signed, and comes to the archive later.
newest() { # root, series
	local series=${2//./\\.}

	[[ $2 != newest ]] || series='[0-9]+'
	build_in "$1" apt-cache search --names-only "^linux-(headers|image)-$series\.[0-9]" |
		sed -nE 's/^linux-(headers|image)-([0-9][^ ]*[0-9]-amd64) .*/\2/p' |
		sort -V | uniq -d | tail -n 1
}

# Newest source of the archive: of it, the debug kernel is made.
newest_source() { # root
	build_in "$1" apt-cache search --names-only '^linux-source-[0-9.]+$' | cut -d' ' -f1 |
		sort -V | tail -n 1
}

# The package's scripts run depmod; nobody needs Debian's initramfs here. What a kernel of
# backports needs newer than in the release, comes from there as well.
install_kernel() { # root, release, suite
	local -a from=()

	[[ $3 != *-backports ]] || from=(-t "$3")
	build_in "$1" apt-get install -y "${from[@]}" "linux-image-$2" "linux-headers-$2"
	# shellcheck disable=SC2016 # since 7.2 the image lies beside the modules
	build_in "$1" sh -euc '
		[ -e "/boot/vmlinuz-$1" ] || cp "/usr/lib/modules/$1/vmlinuz" "/boot/vmlinuz-$1"
		chmod 644 "/boot/vmlinuz-$1"
		[ -s "/usr/lib/modules/$1/modules.dep" ] || depmod "$1"
		rm -f "/boot/initrd.img-$1"' sh "$2"
}

# checkpatch, coccinelle's rules and what they read, beside the source package.
unpack_scripts() { # root
	build_in "$1" sh -euc '
		cd /usr/src
		set -- linux-source-*.tar.xz
		mkdir linux-scripts
		tar -xf "$1" -C linux-scripts --strip-components=1 --wildcards \
			"linux-source-*/scripts" "linux-source-*/.clang-format" "linux-source-*/COPYING"'
}

finish_root() { # root
	build_in "$1" sh -euc '
		groupadd --system rashpa
		apt-get clean
		rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old /tmp/* /usr/sbin/policy-rc.d
		rm -f /etc/apt/apt.conf.d/99lab-build
		mkdir -p /rashpa /rashpa-data /var/cache/rashpa
		ln -sf ../../bin/ccache /usr/lib/ccache/cc
		chmod 755 /root'
}

# What makes roots, and where from: sets the caller's main, security.
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

build_root() { # final path
	local root=$1 new main security series suite release source
	local -a packages

	find_archive
	new=$root.new.$$
	# shellcheck disable=SC2064
	trap "${SUDO[*]} rm -rf --one-file-system '$new'" EXIT
	STEP_LOG=$root.log
	: >"$STEP_LOG"
	say "making a Debian 13 root in $root (log: $STEP_LOG)"
	mapfile -t packages < <(entries "$LAB/packages")

	step "base system" "${SUDO[@]}" debootstrap --variant=minbase \
		--keyring=/usr/share/keyrings/debian-archive-keyring.gpg trixie "$new" "$main"
	step "archive configuration" write_sources "$new" "$main" "$security"
	write_access "$new" "$main" "$security" >/dev/null
	step "package lists" build_in "$new" apt-get update
	step "packages" build_in "$new" apt-get install -y "${packages[@]}"

	while read -r series suite; do
		release=$(newest "$new" "$series")
		[[ $release ]] || die "no kernel $series in $suite"
		step "kernel $release" install_kernel "$new" "$release" "$suite"
		printf '%s\t%s\n' "$series" "$release" | "${SUDO[@]}" tee -a "$new/etc/lab-kernels" >/dev/null
	done < <(entries "$LAB/kernels")

	source=$(newest_source "$new")
	[[ $source ]] || die "no source of a kernel in the archive"
	step "source ${source#linux-source-}" build_in "$new" apt-get install -y "$source"
	step "scripts of the kernel" unpack_scripts "$new"
	step "clean" finish_root "$new"
	"${SUDO[@]}" chmod 755 "$new"
	"${SUDO[@]}" mv -T "$new" "$root"
	trap - EXIT
	say "root complete: $(du -sh "$root" 2>/dev/null | cut -f1), ${SECONDS} s"
}

# Make the root unless it is there; sets ROOT.
have_root() {
	ROOT=$(root_path)
	[[ -d $ROOT ]] && return
	mkdir -p "$CACHE"
	exec 9>"$ROOT.lock"
	if ! flock -n 9; then
		say "another lab makes the root, waiting"
		flock 9
	fi
	[[ -d $ROOT ]] || build_root "$ROOT"
	exec 9>&-
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

# Make it unless it is there; sets IMAGE.
have_image() {
	IMAGE=$ROOT.img
	[[ ! -e $IMAGE ]] || return 0
	exec 9>"$ROOT.lock"
	flock 9
	[[ -e $IMAGE ]] || build_image
	exec 9>&-
}

# Make the kernel of a series unless it is there; "coverage" is a build for the debug kernel.
have_kernel() { # series
	if [[ $1 == debug || $1 == coverage ]]; then
		have_debug
	else
		have_root
		[[ $(release "$1") ]] || die "no kernel $1"
	fi
}

# release SERIES -> exact release
release() {
	if [[ $1 == debug ]]; then
		cat "$DEBUG/release"
	else
		awk -v s="$1" '$1 == s { print $2 }' "$ROOT/etc/lab-kernels"
	fi
}

cmd_root() {
	have_root
	echo "$ROOT"
}

cmd_release() { # series
	(($# == 1)) || die "release: of which series?"
	have_kernel "$1" >&2
	release "$1"
}

cmd_kernels() {
	have_root >&2
	cat "$ROOT/etc/lab-kernels"
	find_debug
	if [[ -d $DEBUG ]]; then
		printf 'debug\t%s\n' "$(release debug)"
	else
		printf 'debug\t%s\n' "not made yet"
	fi
}

cmd_clean() {
	local path keep=none keep_debug=none

	if [[ ${1-} == --old ]]; then
		keep=$(root_path)
		ROOT=$keep
		[[ ! -d $ROOT ]] || { find_debug; keep_debug=$DEBUG; }
	fi
	for path in "$CACHE"/results "$CACHE"/root-* "$CACHE"/debug-* "$CACHE"/initramfs-* "$CACHE"/headers-* \
		"$CACHE"/apt; do
		[[ $path == "$keep"* || $path == "$keep_debug"* ]] ||
			"${SUDO[@]}" rm -rf --one-file-system "$path"
	done
	# earlier ones of these cannot be told from those of another checkout
	[[ $keep != none ]] || "${SUDO[@]}" rm -rf --one-file-system "$CACHE"/plain-* "$CACHE"/maker-*
}

# enter [--over LAYER] [--scratch] [FOLDER TARGET]... -- COMMAND...: replaces this process by
# the command inside the root, which is read-only here; each FOLDER is seen as TARGET.
# --over: the root with that layer over it. --scratch: what is written to the root is kept
# in memory while the command runs.
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

# Objects of the compiler (ccache) and sources that were checked, by what went into them: they
# serve all checkouts. What is not asked for any more goes.
kept_results() {
	local dir=$CACHE/results

	mkdir -p "$dir/ccache" "$dir/checked"
	find "$dir/checked" -type f -atime +60 -delete
	[[ $(stat -c %u "$dir/checked") == $(stat -c %u "$TOP") ]] ||
		"${SUDO[@]}" chown -R --reference="$TOP" "$dir"
}

# exec [--kernel SERIES]... [--headers] [--scratch] [--debian 12] COMMAND...: inside the root; the checkout
# is /rashpa, and files get the owner of the checkout. With --scratch the command is root's. With --debian it is
# another root, in which packages of that Debian are made.
cmd_exec() {
	local name scratch='' debian='' path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	local -a pass=() layers=() folders=("$TOP" rashpa) who=()

	while [[ ${1-} == --* ]]; do
		case $1 in
		--) shift; break ;;
		--kernel)
			(($# > 1)) || die "exec: --kernel has no value"
			have_kernel "$2"
			shift
			;;
		--debian)
			(($# > 1)) || die "exec: --debian has no value"
			debian=$2
			shift
			;;
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
	[[ $debian ]] || find_debug
	if [[ ! $debian && -d $DEBUG ]]; then
		debug_mount_point
		folders+=("$DEBUG/modules" "usr/lib/modules/$(release debug)")
	fi
	enter "${layers[@]}" "${folders[@]}" -- "${who[@]}" env -i -C /rashpa HOME=/root LANG=C.UTF-8 \
		PATH="$path" "${pass[@]}" "$@"
}
