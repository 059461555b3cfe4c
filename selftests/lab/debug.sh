# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2034
# The debug kernel, series "debug": made once from the root's Linux source with the detectors
# of debug.config, outside the checkout. $DEBUG contains:
#   release, vmlinuz, config, lost (lines of debug.config that this source does not support)
#   modules/             /usr/lib/modules/RELEASE in the root and in guests
#   modules/build/       headers and programs that build modules out of the tree

DEBUG_VERSION=1	# raise it when the steps below change the result

# Versions of the kernel's source and of its compiler in the root.
debug_tools() {
	awk '/^Package: / { wanted = $2 ~ /^(linux-source-[0-9.]+|gcc-[0-9]+|binutils)$/; name = $2 }
		/^Version: / && wanted { print name, $2 }' "$ROOT/var/lib/dpkg/status"
}

# Sets DEBUG, whether it exists or not.
find_debug() {
	local hash
	hash=$({ echo "$DEBUG_VERSION"; debug_tools; cat "$LAB/debug.config"; } | sha256sum)
	DEBUG=$CACHE/debug-${hash:0:12}
}

# The root is read-only in use, so the mount point must exist before.
debug_mount_point() {
	local dir
	dir=$ROOT/usr/lib/modules/$(<"$DEBUG/release")
	[[ -d $dir ]] || "${SUDO[@]}" mkdir "$dir"
}

# in_source FOLDER COMMAND...: in FOLDER/linux, with the root's programs.
in_source() {
	local folder=$1
	shift
	enter "$folder" mnt -- env -i -C /mnt/linux HOME=/root LANG=C.UTF-8 \
		PATH=/usr/sbin:/usr/bin:/sbin:/bin KBUILD_BUILD_USER=rashpa KBUILD_BUILD_HOST=lab \
		nice "$@"
}

# Print the lines of the fragment that are not true of this configuration. A newer kernel may lack
# the symbol, or have other dependencies. The build goes on with the rest, and defects.sh reports
# defects that are not noticed then.
check_config() { # folder of the source
	local line name

	while IFS= read -r line; do
		case $line in
		"# CONFIG_"*" is not set")
			name=${line#\# }
			name=${name%% *}
			grep -q "^$name=" "$1/.config" || continue
			;;
		CONFIG_*)
			name=${line%%=*}
			! grep -qxF "$line" "$1/.config" || continue
			;;
		*) continue ;;
		esac
		if ! grep -rqxE "[[:space:]]*(menu)?config ${name#CONFIG_}" --include='Kconfig*' "$1"; then
			echo "gone: $line (no symbol of this source)"
			continue
		fi
		echo "lost: $line (now: $(grep -w "$name" "$1/.config" || echo "a dependency is missing"))"
	done <"$LAB/debug.config"
}

configure_debug() { # folder
	(in_source "$1" make -s tinyconfig)
	"${SUDO[@]}" tee -a "$1/linux/.config" <"$LAB/debug.config" >/dev/null
	(in_source "$1" make -s olddefconfig)
	check_config "$1/linux" | "${SUDO[@]}" tee "$1/lost"
}

install_debug() { # folder
	# shellcheck disable=SC2016 # variables of the inner shell, and of make
	(in_source "$1" sh -euc '
		release=$(make -s kernelrelease)
		echo "$release" >/mnt/release
		cp arch/x86/boot/bzImage /mnt/vmlinuz
		cp .config /mnt/config
		make -s modules_install INSTALL_MOD_PATH=/mnt/installed INSTALL_MOD_STRIP=1
		mv "/mnt/installed/lib/modules/$release" /mnt/modules
		rm -rf /mnt/modules/build /mnt/installed
		make -s run-command KBUILD_RUN_COMMAND='\''
			$(srctree)/scripts/package/install-extmod-build /mnt/modules/build'\''
		cp .config System.map /mnt/modules/build/
		chmod -R a+rX /mnt/modules /mnt/vmlinuz')
	"${SUDO[@]}" rm -rf --one-file-system "$1/linux"
}

unpack_source() { # folder
	# shellcheck disable=SC2016
	(enter "$1" mnt -- sh -euc '
		mkdir /mnt/linux
		tar -xf /usr/src/linux-source-*.tar.xz -C /mnt/linux --strip-components=1')
}

build_debug() {
	local new=$DEBUG.new.$$ line

	# shellcheck disable=SC2064
	trap "${SUDO[*]} rm -rf --one-file-system '$new'" EXIT
	STEP_LOG=$DEBUG.log
	: >"$STEP_LOG"
	say "making the debug kernel in $DEBUG, about 15 minutes on two processors (log: $STEP_LOG)"
	mkdir "$new"
	step "source" unpack_source "$new"
	step "configuration" configure_debug "$new"
	sed -n 's/^lost: /not in the debug kernel: /p' "$new/lost" | while IFS= read -r line; do
		say "$line"
	done
	step "kernel and modules" in_source "$new" make -s "-j$(($(nproc) + 1))" bzImage modules
	step "install" install_debug "$new"
	chmod 755 "$new"
	mv -T "$new" "$DEBUG"
	trap - EXIT
	say "debug kernel complete: $(du -sh "$DEBUG" 2>/dev/null | cut -f1), ${SECONDS} s"
}

# Make the debug kernel unless it exists; sets DEBUG.
have_debug() {
	FULL=yes
	have_root
	find_debug
	make_once "$DEBUG" build_debug
	debug_mount_point
}

cmd_debug() {
	have_debug
	echo "$DEBUG"
}
