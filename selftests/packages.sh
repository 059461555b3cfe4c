#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages as an administrator meets them: installed in a plain Debian root, for whose kernel DKMS builds the
# module; a guest boots from it, reboots, and removes them. packages.sh [13]. TAP. Slow: not in "make check".
set -uo pipefail

TOP=$(cd "$(dirname "$0")/.." && pwd)
cd "$TOP" || exit 1
# shellcheck source-path=SCRIPTDIR source=lab/common.sh
. selftests/lab/common.sh
# shellcheck source-path=SCRIPTDIR source=lab/root.sh
. selftests/lab/root.sh
# shellcheck source-path=SCRIPTDIR source=lab/run.sh
. selftests/lab/run.sh
# shellcheck source-path=SCRIPTDIR source=lab/plain.sh
. selftests/lab/plain.sh
debian=${1-13}
# packages are made for the Debian of the lab's root
[[ $debian == 13 ]] || die "packages of Debian $debian are not made here yet: packages.sh 13"
out=build/packages
image=$TOP/$out/$debian.image

mkdir -p "$out"
compgen -G "build/deb/*.deb" >/dev/null || "$LAB/lab" exec -- env DEB_BUILD_OPTIONS=nocheck make deb >"$out/deb.log" 2>&1 ||
	{ tail -n 20 "$out/deb.log" >&2; die "no packages: $out/deb.log"; }
have_root
# what they depend on, but for each other
depends() {
	# shellcheck disable=SC2016 # expanded there
	"$LAB/lab" exec -- bash -c 'for deb in build/deb/*.deb; do dpkg-deb -f "$deb" Depends Pre-Depends; done' |
		sed -E 's/^(Pre-)?Depends: //' | tr ',' '\n' | sed 's/^ *//; s/ *$//' |
		grep -vE '^((lib)?rashpa|python3-rashpa|$)' | sort -u | paste -sd,
}
have_plain "$debian" "$(depends)"

in_image "$PLAIN" "$image" 6G bash "$TOP/selftests/packages-install.sh" "$TOP" >"$out/$debian-install.log" 2>&1 ||
	{ tail -n 30 "$out/$debian-install.log" >&2; die "packages do not install: $out/$debian-install.log"; }
boot_image "$image" 2400 "$out/$debian.log" | sed -u 's,\r$,,' | tee "$out/$debian.tap"
status=${PIPESTATUS[0]}
rm -f "$image" "$image".*
grep -q '^1\.\.' "$out/$debian.tap" && ! grep -q '^not ok' "$out/$debian.tap" && ((status == 0))
