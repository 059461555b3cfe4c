# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2034
# The arm64 guest, series "arm64": made once from Debian's packages for that machine, which are
# unpacked and not installed. $ARM64 contains:
#   release
#   root/   the guest's root, with libraries for the cross compiler
#   over/   layer over the full root: headers of the kernel, QEMU for this machine

ARM64_VERSION=1	# raise it when the steps below change the result

# Sets ARM64, whether it exists or not.
find_arm64() {
	local hash
	hash=$({ echo "$ARM64_VERSION $(core_path)"; section arm64; } | sha256sum)
	ARM64=$CACHE/arm64-${hash:0:12}
}

# packages_for ARCHITECTURE PROGRAM ARGUMENT...: apt with separate lists in the caller's "new"
packages_for() {
	local apt=$new/apt
	"$2" -o APT::Architecture="$1" -o APT::Architectures="$1" -o APT::Install-Recommends=false \
		-o APT::Sandbox::User="$(id -un)" -o Dir::State="$apt" -o Dir::State::status=/dev/null \
		-o Dir::Cache="$apt" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
		-o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::Etc::preferencesparts=/dev/null "${@:3}"
}

# Print the packages that these need, with them.
closure() { # architecture, package...
	packages_for "$1" apt-get -s -t trixie-backports install "${@:2}" | sed -n 's/^Inst \([^ ]*\) .*/\1/p'
}

unpack_packages() { # target, architecture, package...
	local debs=$new/debs deb

	mkdir -p "$debs" "$new/$1"
	(cd "$debs" && packages_for "$2" apt-get -t trixie-backports download "${@:3}")
	for deb in "$debs"/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | "${SUDO[@]}" tar -x -C "$new/$1" \
			--exclude='./usr/share/[dlm]o[cn]*' --exclude='./usr/share/man/*'
	done
	rm -r "$debs"
}

download_arm64() {
	local suite release
	local -a kernel headers programs packages

	mkdir -p "$new/apt/lists/partial" "$new/apt/archives/partial"
	for suite in trixie trixie-backports ${security:+trixie-security}; do
		[[ $suite != *-security ]] || main=$security
		echo "deb [arch=amd64,arm64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $main $suite main"
	done >"$new/apt/sources.list"
	packages_for arm64 apt-get update
	release=$(packages_for arm64 apt-cache search --names-only '^linux-(headers|image)-[0-9].*-arm64$' |
		sed -nE 's/^linux-(headers|image)-([0-9][^ ]*[0-9]-arm64) .*/\2/p' | sort -V | uniq -d | tail -n 1)
	[[ $release ]] || die "no arm64 kernel in the archive"
	echo "$release" >"$new/release"
	mapfile -t kernel < <(closure arm64 "linux-image-$release" | grep ^linux-)
	mapfile -t packages < <(closure arm64 "linux-headers-$release")
	mapfile -t headers < <(printf '%s\n' "${packages[@]}" | grep ^linux-headers)
	# programs of a build are those of this machine
	mapfile -t programs < <(printf '%s\n' "${packages[@]}" | grep ^linux-kbuild)
	# shellcheck disable=SC2046 # names
	mapfile -t packages < <(closure arm64 $(section arm64))
	unpack_packages root arm64 "${packages[@]}" "${kernel[@]}"
	unpack_packages over arm64 "${headers[@]}"
	unpack_packages over amd64 "${programs[@]}" qemu-system-arm
}

# The set-up that the scripts of packages do elsewhere.
prepare_arm64() {
	local release
	release=$(<"$new/release")
	# shellcheck disable=SC2016
	(enter "$new/root" mnt -- sh -euc '
		[ -e "/mnt/boot/vmlinuz-$1" ] || cp "/mnt/usr/lib/modules/$1/vmlinuz" "/mnt/boot/vmlinuz-$1"
		depmod -b /mnt "$1"
		mkdir -p /mnt/rashpa /mnt/rashpa-data /mnt/usr/share/misc
		echo root:x:0:0:root:/root:/bin/bash >/mnt/etc/passwd
		printf "root:x:0:\nrashpa:x:999:\n" >/mnt/etc/group' sh "$release")
	rm -r "$new/apt"
}

build_arm64() {
	local new=$ARM64.new.$$ main security

	find_archive
	# shellcheck disable=SC2064
	trap "${SUDO[*]} rm -rf --one-file-system '$new'" EXIT
	STEP_LOG=$ARM64.log
	: >"$STEP_LOG"
	say "making the arm64 guest in $ARM64 (log: $STEP_LOG)"
	mkdir "$new"
	step "packages" download_arm64
	step "kernel" prepare_arm64
	chmod 755 "$new"
	mv -T "$new" "$ARM64"
	trap - EXIT
	say "arm64 guest complete: $(du -sh "$ARM64" 2>/dev/null | cut -f1), ${SECONDS} s"
}

# Make the arm64 guest unless it exists; sets ARM64.
have_arm64() {
	FULL=yes
	have_root
	find_arm64
	make_once "$ARM64" build_arm64
}
