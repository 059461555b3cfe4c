#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Follows README.md as a stranger does: in a plain Debian root with only the packages of README, and
# on the machine that boots from it. stranger.sh [12|13]. TAP. Slow: part of "make check-packages".
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
out=build/stranger
image=$TOP/$out/$debian.image

mkdir -p "$out"
have_root
have_plain "$debian" ""
for where in root guest; do
	"$LAB/lab" exec -- python3 -B selftests/packages/readme.py script "$where" >"$out/$where.commands" ||
		{ cat "$out/$where.commands" >&2; die "readme.py does not list all commands of README.md"; }
done
"$LAB/lab" exec -- python3 -B selftests/packages/readme.py list
in_image "$PLAIN" "$image" 8G bash "$TOP/selftests/packages/stranger-install.sh" "$TOP" "$TOP/$out" >"$out/$debian-install.log" 2>&1
status=$?
if ((status)); then
	tail -n 30 "$out/$debian-install.log" | sed 's/^/# /'
	printf 'not ok 1 - the commands of README that install succeed\n1..1\n'
	exit 1
fi
echo "# log of the installation: $out/$debian-install.log"
"$LAB/lab" exec -- make -s tools >"$out/tools.log" 2>&1 || die "no software FPGA: $out/tools.log"
boot_image "$image" 2400 "$out/$debian.log" | sed -u 's,\r$,,' | tee "$out/$debian.tap"
status=${PIPESTATUS[0]}
rm -f "$image" "$image".*
((status == 0)) && grep -q '^1\.\.' "$out/$debian.tap" && ! grep -q '^not ok' "$out/$debian.tap"
