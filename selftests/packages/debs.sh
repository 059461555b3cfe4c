#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the lab's root, which it may write to ("lab exec --scratch"), after "make deb": checks
# the contents of the packages, lintian's verdict, installation and purge. debs.sh [FOLDER]:
# packages of another build, which must be the same. TAP.
# shellcheck source-path=SCRIPTDIR source=../lib/shell.sh
. "$(dirname "$0")/../lib/shell.sh"
debs=build/deb
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)

deb() { echo "$debs/$1_${version}"_*.deb; }
# names of a package's dependencies, except for our packages
needs() { dpkg-deb -f "$(deb "$1")" Depends | tr ',|' '\n' | awk '$1 !~ /rashpa/ { print $1 }' | sort -u; }
mapfile -t names < <(sed -n 's/^Package: //p' tools/packaging/debian/control)
# a build without the site (-Pnodoc) makes no package of it
[[ -d $debs/rashpa-$version/build/docs ]] || mapfile -t names < <(printf '%s\n' "${names[@]}" | grep -v -- -doc)
for name in "${names[@]}"; do
	[[ -s $(deb "$name") ]] || missing+=" $name"
done
is "all-packages: all packages are there" "${missing-}" ""

good "lintian: lintian succeeds" lintian --allow-root --fail-on error,warning "$debs/rashpa_${version}_amd64.changes"
! grep -q . "$work/log"
ok $? "nothing: lintian prints nothing" || sed 's/^/# /' "$work/log"

# each package depends on its own needs, and not on those of others
is "library-needs-libc: the library needs libc only" "$(needs librashpa0 | xargs)" libc6
is "driver-needs-dkms: the driver needs dkms only" "$(needs rashpa-dkms | xargs)" dkms
for name in rashpa-tools librashpa0 rashpa-network; do
	is "needs-no-mpi: $name needs no MPI, no messages, no XDP" "$(needs "$name" | grep -E 'mpi|pmix|zmq|cbor|xdp' | xargs)" ""
done
is "rashpactl-needs-no: rashpactl needs no files of images, no RDMA, no TLS" "$(needs rashpa-tools | grep -E 'hdf5|ibverbs|gnutls' | xargs)" ""
[[ $(needs rashpa-builder) == *mpi* && $(needs rashpa-network) == *ibverbs* ]]
ok $? "needs: the builder depends on MPI, network on ibverbs"
for name in "${names[@]}"; do
	if [[ $name == lib* ]]; then
		is "several-architectures-time: $name can be installed for several architectures" "$(dpkg-deb -f "$(deb "$name")" Multi-Arch)" same
	fi
done
is "libraries-architecture: libraries are in the folder of their architecture" "$(for name in "${names[@]}"; do
	dpkg-deb -c "$(deb "$name")"; done | grep -oE '[^ ]*/lib[a-z-]*rashpa[a-z-]*\.(so|a)[^ ]*' | grep -v '^./usr/lib/x86_64-linux-gnu/' | xargs)" ""
is "nothing-two-packages: no file is in two packages" "$(for name in "${names[@]}"; do
	dpkg-deb --fsys-tarfile "$(deb "$name")" | tar -t | grep -v '/$'; done | sort | uniq -d | xargs)" ""
# debhelper (dh_missing) checks that all installed files are in a package

if (($#)); then
	differ=
	for name in "${names[@]}"; do
		other=$(echo "$1/${name}_${version}"_*.deb)
		cmp -s "$(deb "$name")" "$other" || differ+=" $name"
	done
	is "another-build-same: another build makes identical packages" "$differ" ""
fi

# --- installation and purge; a dependency of "rashpa-doc" is missing here
before=$(find / -xdev \( -path /proc -o -path /sys -o -path /rashpa -o -path /tmp -o -path /var/cache \) -prune -o -print | sort)
install=()
for name in "${names[@]}"; do
	[[ $name == rashpa-doc ]] || install+=("$(deb "$name")")
done
echo 'sign_file="/nonexistent"' >/etc/dkms/framework.conf.d/unsigned.conf
good "dpkg-installs: dpkg installs them" dpkg -i "${install[@]}"
[[ $(rashpactl --version) == *"$version"* && $(romulu --version) == *"$version"* && $(remu --version) == *"$version"* ]]
ok $? "tools-run: tools run"
is "python-finds-package: Python finds the package, and that finds the library" "$(python3 -c 'import rashpa; print(rashpa.__version__)' 2>&1)" "$version"
# the lab's root omits documentation
cp -r tools/examples "$work/examples"
good "examples-compile-installed: examples compile with the installed packages" make -C "$work/examples"
[[ $(ldd "$work/examples/consumer") == *"librashpa.so.0 => /"*"lib/x86_64-linux-gnu/librashpa.so.0"* ]]
ok $? "find-library: examples find the library"
[[ $(dkms status rashpa) == "rashpa/$version,"*": installed"* ]]
ok $? "dkms-built-module: DKMS has built the module" || dkms status rashpa | sed 's/^/# /'
getent group rashpa >/dev/null
ok $? "group: the group exists"
[[ -L /etc/systemd/system/sysinit.target.wants/rashpa-apply.service && -d /etc/rashpa/buffers.d ]]
ok $? "boot-enabled: rashpa-apply is enabled at boot"
is "nothing-else: no other unit is enabled" "$(find /etc/systemd/system -name '*rashpa*' -o -name 'remu*' -o -name 'romulu*' | wc -l)" 1
echo '{ "buffers": [ ] }' >/etc/rashpa/buffers.d/mine.conf
good "upgrade: an upgrade succeeds" dpkg -i "$(deb rashpa-tools)" "$(deb rashpa-dkms)"
[[ -s /etc/rashpa/buffers.d/mine.conf && $(dkms status rashpa) == *": installed"* ]]
ok $? "keeps-written-module: it keeps configuration and module"
good "dpkg-purges: dpkg purges them" dpkg --purge "${names[@]}"
after=$(find / -xdev \( -path /proc -o -path /sys -o -path /rashpa -o -path /tmp -o -path /var/cache \) -prune -o -print | sort)
is "written-left-nothing: only written configuration is left" \
	"$(comm -13 <(echo "$before") <(echo "$after") | grep -E 'rashpa|remu|romulu' | xargs)" \
	"/etc/rashpa /etc/rashpa/buffers.d /etc/rashpa/buffers.d/mine.conf"
finish
