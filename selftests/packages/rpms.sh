#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the lab's root after "make rpm": the RPMs can be installed into an empty database,
# where files verify. They contain the same files as Debian's packages. A shell can parse their
# scripts. No machine with RPMs runs them. TAP.
# shellcheck source-path=SCRIPTDIR source=../lib/shell.sh
. "$(dirname "$0")/../lib/shell.sh"
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
# the lab's root is read-only, so the RPMs cannot add users
printf '%%%s\n' "_tmppath $work" "__systemd_sysusers /bin/true" >"$work/.rpmmacros"
export HOME=$work
query() { rpm --dbpath "$work/db" -qp "$@"; }
mapfile -t rpms < <(find build/rpm/RPMS -name "*-$version-*.rpm" | sort)

is "one-part: one RPM for each part" "$(for rpm in "${rpms[@]}"; do query --qf '%{NAME}\n' "$rpm"; done | grep -v -e -debug | sort | xargs)" \
	"$(sed -nE 's/^%package -n +(.*)/\1/p; s/^%package +([^-].*)/rashpa-\1/p' tools/packaging/rashpa.spec | sort | xargs)"
root=$work/root
mkdir "$root"
good "empty-database-takes: an empty database takes them" sh -c 'root=$1; shift
	rpm --root "$root" --initdb && rpm --root "$root" --nodeps --noscripts --install "$@"' sh "$root" "${rpms[@]}"
# owners are numbers, as an empty root has no names of users
mapfile -t names < <(rpm --root "$root" -qa | sort)
good "file-packed: installed files match the packages" rpm --root "$root" --verify --nodeps --noscripts --nouser --nogroup "${names[@]}"
! grep -q . "$work/log"
ok $? "rpm-v-nothing: rpm -V prints nothing" || sed 's/^/# /' "$work/log"
rpm --root "$root" -qal | grep -v debug >"$work/files"
if compgen -G "build/deb/*.deb" >/dev/null; then
	of() { grep -oE "/(usr/bin|usr/share/man/man[13]|usr/lib/systemd/system|usr/include/.*|etc/security/limits.d)/[^/]+$" |
		sed 's/\.gz$//' | sort -u; }
	is "programs-units-manuals: programs, units, manuals and headers match Debian's packages" \
		"$(diff <(of <"$work/files") <(for deb in build/deb/*.deb; do
			[[ $deb != */rashpa-doc_* ]] || continue	# no RPM has the site and its pages of headers
			dpkg-deb --fsys-tarfile "$deb" | tar -t | sed 's/^\.//'
		done | of) | grep '^[<>]' | xargs)" ""
else
	skip "same-debian-packages: files match Debian's packages" "no packages: make deb"
fi
for rpm in "${rpms[@]}"; do
	name=$(query --qf '%{NAME}' "$rpm")
	query --scripts "$rpm" | sed '/scriptlet (using/d; /program: /d' >"$work/scripts"
	[[ -s $work/scripts ]] || continue
	good "shell-read-scripts: a shell can parse the scripts of $name" sh -n "$work/scripts"
done
scripts() { query --scripts "$(printf '%s\n' "${rpms[@]}" | grep "/rashpa-$1-")"; }
[[ $(scripts dkms) == *"dkms add"*"dkms remove -m rashpa -v $version --all"* ]]
ok $? "driver-given-dkms: scripts add the driver to DKMS and remove it"
[[ $(scripts tools) == *systemd-sysusers*"udevadm control"* ]]
ok $? "group-before-rule: the group exists before the rule that names it"
finish
