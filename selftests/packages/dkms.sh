#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the lab's root, which it may write to ("lab exec --scratch"): installs the
# driver with DKMS, raises its version, adds a kernel later, and removes everything. TAP. Keeps
# the installed files in build/dkms for dkms-guest.sh.
# shellcheck disable=SC2031 # "work" is set in shell.sh, not in the subshell that reads dkms.conf
# shellcheck source-path=SCRIPTDIR source=../lib/shell.sh
. "$(dirname "$0")/../lib/shell.sh"

release() { awk -v s="$1" '$1 == s { print $2 }' /etc/lab-kernels; }
first=$(release newest) second=$(release 6.12) later=$(release 6.1)
source=$PWD
out=$PWD/build/dkms
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
rm -rf "$out"
mkdir -p "$out"
trap 'chown -R --reference="$source" "$out"; rm -rf "$work"' EXIT

# from a copy as users have it: without build and .git
mkdir "$work/src"
tar -c --exclude=./build --exclude=./.git . | tar -x -C "$work/src"
cd "$work/src" || exit 1

# quietly COMMAND...: print its output only if it fails
quietly() {
	"$@" >"$work/said" 2>&1 </dev/null && return
	sed 's/^/# /' "$work/said"
	return 1
}

installed() { # RELEASE: its version, from the file that modprobe would load
	modinfo -k "$1" -F version rashpa 2>/dev/null
}

# all our files in the folders that DKMS or make may use
ours() {
	find /usr/src/rashpa* /var/lib/dkms/rashpa /lib/modules/*/updates \
		/lib/modules/*/extra /usr/local /etc/udev/rules.d \( -name '*rashpa*' -o -name 'remu*' \
		-o -name 'romulu*' \) 2>/dev/null | grep -v '^/usr/src/rashpa-[0-9.]*/.'
}

( # dkms.conf agrees with the sources
	. ./dkms.conf
	is "dkms-conf-name: dkms.conf has the name, and the version of the driver" "$PACKAGE_NAME/$PACKAGE_VERSION" \
		"rashpa/$(sed -n 's/^MODULE_VERSION("\(.*\)");$/\1/p' drivers/main.c)"
	is "names-one-module: it names one module, built for each new kernel" \
		"${BUILT_MODULE_NAME[*]} ${DEST_MODULE_LOCATION[*]} $AUTOINSTALL" "rashpa /updates/dkms yes"
	for kernel in "$first" "$second" "$later" 7.10.1+deb14-amd64 10.0.0-1-amd64; do
		[[ $kernel =~ $BUILD_EXCLUSIVE_KERNEL ]]
		ok $? "for/$kernel: it is for $kernel"
	done
	[[ 5.10.0-30-amd64 =~ $BUILD_EXCLUSIVE_KERNEL || 6.0.0-6-amd64 =~ $BUILD_EXCLUSIVE_KERNEL ]]
	ok $((! $?)) "not-5-10-6: it is not for 5.10 and 6.0"
	exit $((n + 100 * bad))
)
status=$?
n=$((status % 100)) bad=$((status / 100))

# A guest tries the unsigned module; with openssl, DKMS would make a key, and sign it.
echo 'sign_file="/nonexistent"' >/etc/dkms/framework.conf.d/unsigned.conf

is "nothing-before: none of our files exist before" "$(ours)" ""
# a kernel that is installed later
mkdir "$work/later"
mv "/lib/modules/$later/build" "$work/later/"

quietly make install-dkms KREL="$first"
ok $? "install-dkms: make install-dkms succeeds for $first"
is "module: the module of $first is installed" "$(installed "$first")" "$version"
[[ $(modinfo -k "$first" -n rashpa) == /lib/modules/$first/updates/dkms/rashpa.ko* ]]
ok $? "dkms-conf: it is in the folder of dkms.conf"
quietly dkms install -m rashpa -v "$version" -k "$second"
ok $? "dkms-install: dkms install succeeds for $second"
is "dkms/module: the module of $second is installed" "$(installed "$second")" "$version"
is "dkms-status: dkms status lists both" "$(dkms status -m rashpa | sed 's/ (.*//' | sort)" \
	"$(printf "rashpa/$version, %s, x86_64: installed\n" "$second" "$first" | sort)"

# files for the guest, in which modprobe must find the module
tar -C / -cf "$out/installed.tar" "lib/modules/$first/updates" \
	"usr/lib/modules/$first/"modules.{dep,alias,symbols,softdep,devname}{,.bin} 2>/dev/null
tar -tf "$out/installed.tar" | grep -q 'updates/dkms/rashpa.ko'
ok $? "module-kept-guest: the module is kept for the guest"

new=99.0.1
grep -rl --include=Makefile --include=dkms.conf --include='*.c' --include='*.h' -F "$version" . |
	xargs sed -i "s/${version//./\\.}/$new/"
quietly make install-dkms KREL="$first"
ok $? "upgrade: an upgrade to $new succeeds"
for kernel in "$first" "$second"; do
	is "new-module/$kernel: the module of $kernel is the new one" "$(installed "$kernel")" "$new"
done
is "old-version: the old version is removed" "$(dkms status -m rashpa -v "$version" 2>/dev/null)$(ls -d /usr/src/rashpa-"$version" \
	/var/lib/dkms/rashpa/"$version" 2>/dev/null)" ""

mv "$work/later/build" "/lib/modules/$later/"
quietly dkms autoinstall -k "$later"
ok $? "dkms-autoinstall-kernel: dkms autoinstall succeeds for a later kernel, $later"
is "module-2: its module is installed" "$(installed "$later")" "$new"

quietly make uninstall
ok $? "uninstall: make uninstall succeeds"
is "nothing-left: none of our files are left" "$(ours)" ""
is "dkms-knows-nothing: dkms lists no module of ours" "$(dkms status -m rashpa)" ""
for kernel in "$first" "$second" "$later"; do
	is "modprobe-not-find/$kernel: modprobe does not find it on $kernel" "$(installed "$kernel")" ""
done
find /lib/modules/*/updates -name 'rashpa*' 2>/dev/null | grep .
ok $((! $?)) "no-module-file: no module file is left"

# --- installation of the tools by a user and by a packager ---
cd "$source" || exit 1
quietly make install-tools
ok $? "install-tools: make install-tools succeeds"
for tool in rashpactl remu romulu rashpa-{bench,fpga-conformance,inject,capture-check}; do
	[[ $("$tool" --version 2>&1) == *"$version"* ]]
	ok $? "runs-installed/$tool: the installed $tool runs"
done
is "python-finds-package: Python finds the package, and that finds the library" \
	"$(python3 -c 'import rashpa; print(rashpa.__version__)' 2>&1)" "$version"
# packages that the README lists
packages=$(sed -n '/^    apt install/ { :more; /\\$/ { N; b more }; p }' README.md | tr '\134' ' ' |
	sed 's/#.*//; s/apt install//; s/linux-headers-[^)]*)//')
# shellcheck disable=SC2086 # words
quietly dpkg -s $packages
ok $? "packages-readme-names: the packages that the README names are installed"
tar -C / -cf "$out/tools.tar" usr/local etc/udev/rules.d
ok $? "tools-kept-guest: the tools are kept for the guest"
# programs of a user, with the installed library
cp -r tools/examples "$work/examples"
quietly make -C "$work/examples"
ok $? "examples-compile-pkg-config: examples compile with make and pkg-config"
quietly cmake -S "$work/examples" -B "$work/examples/cmake" && quietly cmake --build "$work/examples/cmake"
ok $? "examples-compile-cmake: examples compile with CMake"
for example in "$work/examples/consumer" "$work/examples/cmake/consumer"; do
	[[ $(ldd "$example") == *"librashpa.so.0 => /usr/local/lib/librashpa.so.0"* ]]
	ok $? "runs-library-installed: ${example#"$work/"} runs with the installed library"
done
quietly make uninstall
ok $? "runs/uninstall: make uninstall succeeds again"
is "no-tool-header: no tool, header, rule or manual is left" "$(find /usr/local /etc/udev -newer "$work/src/dkms.conf" -type f)$(ours)" ""
before=$(find / -xdev -newer "$work/said" -type f \( -name '*rashpa*' \) -not -path '/tmp/*' 2>/dev/null)
quietly make install DESTDIR="$work/package" PREFIX=/usr
ok $? "install-destdir-package: make install DESTDIR= succeeds"
is "writes-nowhere-else: it writes nowhere else" "$(ours)$before" ""
for file in usr/bin/rashpactl usr/lib/librashpa.so.0 usr/include/linux/rashpa.h \
	etc/udev/rules.d/70-rashpa.rules usr/src/rashpa-"$version"/dkms.conf \
	usr/share/man/man1/rashpa-{bench,fpga-conformance,inject,capture-check}.1 \
	usr/lib/python3/dist-packages/rashpa/__init__.py; do
	[[ -s $work/package/$file ]]
	ok $? "package: the package has $file"
done
quietly make uninstall DESTDIR="$work/package" PREFIX=/usr
ok $? "uninstall-destdir: make uninstall DESTDIR= succeeds"
is "leaves-no-file: it leaves no file, and no folder of ours" "$(find "$work/package" -not -type d -o -name rashpa)" ""
finish
