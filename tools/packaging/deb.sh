#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes the Debian packages, in build/deb or FOLDER, from a copy of the sources.
# deb.sh [--out FOLDER] [OPTION OF dpkg-buildpackage...]
# debian/control lists the required packages.
set -euo pipefail

cd "$(dirname "$0")/../.."
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
out=build/deb
[[ ${1-} != --out ]] || { out=$2; shift 2; }
tree=$out/rashpa-$version

rm -rf "$out"
mkdir -p "$tree"
# sources only, without built files
tar -c --exclude-vcs --exclude=./build --exclude=__pycache__ . | tar -x -C "$tree"
cp -r tools/packaging/debian "$tree/debian"
# kernel-doc is in a package whose name has the kernel's version
owner=$(dpkg -S '/usr/lib/linux-kbuild-6.1*/scripts/kernel-doc' 2>/dev/null | tail -n 1 | cut -d: -f1)
sed -i "s/@KERNEL_DOC@/${owner:-linux-headers-amd64}/" "$tree/debian/control"
cd "$tree"
# do not pass on the settings of the caller's make
unset MAKEFLAGS MAKELEVEL WERROR
exec dpkg-buildpackage --build=binary --unsigned-changes --unsigned-buildinfo "$@"
