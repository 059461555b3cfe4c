#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the lab's root after "make rpm": the RPMs go into an empty database, are whole there, have what Debian's
# packages have, and scripts that a shell can read. No machine that has RPMs runs them. TAP.
# shellcheck source-path=SCRIPTDIR source=../lib/shell.sh
. "$(dirname "$0")/../lib/shell.sh"
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
# the lab's root is read-only, and users of what is installed here are nobody's
printf '%%%s\n' "_tmppath $work" "__systemd_sysusers /bin/true" >"$work/.rpmmacros"
export HOME=$work
query() { rpm --dbpath "$work/db" -qp "$@"; }
mapfile -t rpms < <(find build/rpm/RPMS -name "*-$version-*.rpm" | sort)

is "one-part: one for each part" "$(for rpm in "${rpms[@]}"; do query --qf '%{NAME}\n' "$rpm"; done | grep -v -e -debug | sort | xargs)" \
	"$(sed -nE 's/^%package -n +(.*)/\1/p; s/^%package +([^-].*)/rashpa-\1/p' tools/packaging/rashpa.spec | sort | xargs)"
root=$work/root
mkdir "$root"
good "empty-database-takes: an empty database takes them" sh -c 'root=$1; shift
	rpm --root "$root" --initdb && rpm --root "$root" --nodeps --noscripts --install "$@"' sh "$root" "${rpms[@]}"
# owners are numbers, as nobody has a name in an empty root
mapfile -t names < <(rpm --root "$root" -qa | sort)
good "file-packed: and each file of them is as it was packed" rpm --root "$root" --verify --nodeps --noscripts --nouser --nogroup "${names[@]}"
! grep -q . "$work/log"
ok $? "rpm-v-nothing: rpm -V has nothing to say" || sed 's/^/# /' "$work/log"
rpm --root "$root" -qal | grep -v debug >"$work/files"
if compgen -G "build/deb/*.deb" >/dev/null; then
	of() { grep -oE "/(usr/bin|usr/share/man/man[13]|usr/lib/systemd/system|usr/include/.*|etc/security/limits.d)/[^/]+$" |
		sed 's/\.gz$//' | sort -u; }
	is "programs-units-manuals: programs, units, manuals, headers are those of Debian's packages" \
		"$(diff <(of <"$work/files") <(for deb in build/deb/*.deb; do
			dpkg-deb --fsys-tarfile "$deb" | tar -t | sed 's/^\.//'
		done | of) | grep '^[<>]' | xargs)" ""
else
	skip "same-debian-packages: the same as in Debian's packages" "there are none: make deb"
fi
for rpm in "${rpms[@]}"; do
	name=$(query --qf '%{NAME}' "$rpm")
	query --scripts "$rpm" | sed '/scriptlet (using/d; /program: /d' >"$work/scripts"
	[[ -s $work/scripts ]] || continue
	good "shell-read-scripts: a shell can read the scripts of $name" sh -n "$work/scripts"
done
scripts() { query --scripts "$(printf '%s\n' "${rpms[@]}" | grep "/rashpa-$1-")"; }
[[ $(scripts dkms) == *"dkms add"*"dkms remove -m rashpa -v $version --all"* ]]
ok $? "driver-given-dkms: the driver is given to DKMS, and taken from it"
[[ $(scripts tools) == *systemd-sysusers*"udevadm control"* ]]
ok $? "group-before-rule: the group is there before the rule that names it"
finish
