#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes RPMs, in build/rpm/RPMS, from a copy of the sources. rpm.sh [OPTION OF rpmbuild...]
set -euo pipefail

cd "$(dirname "$0")/../.."
command -v rpmbuild >/dev/null || { echo "rpm.sh: rpmbuild is missing: install rpm-build (Debian: rpm)" >&2; exit 1; }
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
out=$PWD/build/rpm

rm -rf "$out"
mkdir -p "$out"/{SOURCES,tmp}
tar -c --exclude-vcs --exclude=./build --exclude=__pycache__ --transform "s,^\.,rashpa-$version," . |
	gzip -n >"$out/SOURCES/rashpa-$version.tar.gz"
unset MAKEFLAGS MAKELEVEL WERROR
# without an RPM database rpmbuild does not know the installed packages
[[ -s /var/lib/rpm/rpmdb.sqlite || ! -e /etc/debian_version ]] || set -- --nodeps "$@"
exec rpmbuild -bb --define "_topdir $out" --define "_tmppath $out/tmp" --define "version_ $version" "$@" tools/packaging/rashpa.spec
