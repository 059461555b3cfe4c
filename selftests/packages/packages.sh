#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages from an administrator's view: a plain Debian root gets the previous version, and DKMS
# builds the module for its kernel; guests boot from it. One guest upgrades while a stream runs,
# reboots, and removes all; in another the kernel requires signatures; the third has Secure Boot.
# packages.sh [12|13] [main|refused|signed]. TAP. Slow: part of "make check-packages".
# RASHPA_BEFORE: a folder with packages of an earlier version; default: the same packages, renamed
# to 0.1.9.
set -uo pipefail

TOP=$(cd "$(dirname "$0")/../.." && pwd)
cd "$TOP" || exit 1
# shellcheck source-path=SCRIPTDIR source=../lab/common.sh
. selftests/lab/common.sh
# shellcheck source-path=SCRIPTDIR source=../lab/root.sh
. selftests/lab/root.sh
# shellcheck source-path=SCRIPTDIR source=../lab/run.sh
. selftests/lab/run.sh
# shellcheck source-path=SCRIPTDIR source=../lab/plain.sh
. selftests/lab/plain.sh
debian=${1-13}
boots=("${@:2}")
((${#boots[@]})) || boots=(main refused signed)
suite_of_debian "$debian" >/dev/null || exit
out=build/packages/$debian
image=$TOP/$out/image
here=(exec) new=build/deb before=build/deb-before
# the lab's root makes packages for the lab's Debian
[[ $debian == 13 ]] || here+=(--debian "$debian") new+=-$debian before+=-$debian

mkdir -p "$out"
have_root
compgen -G "$new/*.deb" >/dev/null ||
	"$LAB/lab" "${here[@]}" -- env DEB_BUILD_OPTIONS=nocheck tools/packaging/deb.sh --out "$new" >"$out/deb.log" 2>&1 ||
	{ tail -n 20 "$out/deb.log" >&2; die "no packages: $out/deb.log"; }
# Packages of another version, which differ only in its number; both have the same length.
renamed() {
	# shellcheck disable=SC2016 # expanded there
	"$LAB/lab" exec -- bash -euc '
		rm -rf "$2" && mkdir -p "$2"
		version=$(sed -n "s/^PACKAGE_VERSION=\"\(.*\)\"/\1/p" dkms.conf)
		for deb in "$1"/*.deb; do
			[[ $deb != *-dbgsym_* && $deb != *-doc_* ]] || continue
			dpkg-deb --raw-extract "$deb" "$2/tree"
			rm -f "$2/tree/DEBIAN/md5sums"
			find "$2/tree" -type f -exec sed -i "s/${version//./\\.}/0.1.9/g" {} +
			[[ ! -d $2/tree/usr/src/rashpa-$version ]] || mv "$2/tree/usr/src/rashpa-"{"$version",0.1.9}
			dpkg-deb --root-owner-group -Znone --build "$2/tree" "$2" >/dev/null
			rm -rf "$2/tree"
		done' bash "$new" "$before"
}
if [[ ${RASHPA_BEFORE-} ]]; then
	before=$RASHPA_BEFORE
else
	renamed || die "no packages of a previous version: $before"
fi

# dependencies of the packages, except for each other
depends() {
	# shellcheck disable=SC2016 # expanded there
	"$LAB/lab" exec -- bash -c 'for deb in "$@"; do dpkg-deb -f "$deb" Depends Pre-Depends; done' sh "$new"/*.deb "$before"/*.deb |
		sed -E 's/^(Pre-)?Depends: //' | tr ',' '\n' | sed 's/^ *//; s/ *$//' |
		grep -vE '^((lib)?rashpa|python3-rashpa|$)' | sort -u | paste -sd,
}
have_plain "$debian" "$(depends)"

in_image "$PLAIN" "$image" 6G bash "$TOP/selftests/packages/packages-install.sh" "$TOP" "$(readlink -f "$before")" "$(readlink -f "$new")" "$TOP/$out/key.der" \
	>"$out/install.log" 2>&1 ||
	{ tail -n 30 "$out/install.log" >&2; die "packages do not install: $out/install.log"; }

"$LAB/lab" exec -- make -s tools >"$out/tools.log" 2>&1 || die "no software FPGA: $out/tools.log"

# variables of firmware with two keys: the signer of the kernel, and DKMS
# shellcheck disable=SC2016 # expanded there
"$LAB/lab" exec -- sh -euc '
	cd "$1"
	rm -f *.pem
	owner=2d70f1d4-7b67-4d3b-a8e9-4b7f7f4f5d5a
	openssl x509 -inform DER -in key.der -out key.pem
	pe-listsigs --extract image.vmlinuz
	virt-fw-vars --input /usr/share/OVMF/OVMF_VARS_4M.fd --output variables --secure-boot --enroll-generate owner \
		--no-microsoft --add-db "$owner" key.pem --add-db "$owner" Debian*.pem' sh "$out" >"$out/variables.log" 2>&1 ||
	{ cat "$out/variables.log" >&2; die "no variables of UEFI"; }

status=0
for boot in "${boots[@]}"; do
	case $boot in
	main) options=("") ;;
	refused) options=("packages.stage=refused module.sig_enforce=1") ;;
	signed) options=("packages.stage=signed intel_iommu=on" "$out/variables") ;;
	*) die "no boot \"$boot\": main, refused, signed" ;;
	esac
	boot_image "$image" 3000 "$out/$boot.log" "${options[@]}" | sed -u 's,\r$,,' | tee "$out/$boot.tap"
	((PIPESTATUS[0] == 0)) && grep -q '^1\.\.' "$out/$boot.tap" && ! grep -q '^not ok' "$out/$boot.tap" || status=1
done
rm -f "$image" "$image".*
exit "$status"
