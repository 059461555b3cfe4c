#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=30
# Runs inside the lab's root: are our tests a target of the kernel's own? A few are built against its
# kselftest.h and installed by its lib.mk; its readers of KTAP judge what they say. KSRC: another
# source than Debian's package. Nothing needs a driver here. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../lib/shell.sh
. "$(dirname "$0")/../lib/shell.sh"
flow=$PWD/build/selftests/kselftest
installed=$work/installed

if [[ ! ${KSRC-} ]] && ! compgen -G "/usr/src/linux-source-*.tar.xz" >/dev/null; then
	skip "kselftest: kselftest" "no source of Linux here (linux-source, or KSRC)"
	finish
fi
good "kernel-makefile-builds: the kernel's Makefile builds and installs them" make -s -C selftests kselftest \
	KSELFTESTS="map_test lockdown_test ring_test" O="${flow%/*}" KSFT_INSTALL_PATH="$installed" ||
	finish
source=${KSRC:-$flow/source}

# refused NAME PATTERN FOLDER
refused() {
	local said
	said=$(make -s -C selftests kselftest O="$work/none" KSRC="$3" 2>&1)
	(($? == 2)) && [[ $said =~ $2 ]]
	ok $? "$1" || echo "# $said"
}
refused "no-source: what is no source is told" "no source of Linux" "$work"
mkdir -p "$work/old/tools/testing/selftests"
touch "$work"/old/tools/testing/selftests/{lib.mk,kselftest.h}
refused "old: and what is too old" "too old" "$work/old"

is "break-machine-not: those that break the machine are not in the list" "$("$installed/run_kselftest.sh" -l | paste -sd' ')" \
	"rashpa:map_test rashpa:ring_test"
is "settings-configure: but are there, with settings and what to configure" "$(cd "$installed/rashpa" && echo *)" \
	"config lockdown_test map_test ring_test settings"

# The newest kernel here, which the tests run on, has all that is asked for.
config=$(printf '%s\n' /boot/config-* | sort -V | tail -n 1)
if [[ -r $config ]]; then
	is "configure: $(basename "$config") has what to configure" \
		"$(grep '^CONFIG_' selftests/kselftest/config | sed 's/=m$/=[ym]/' | while read -r line; do
			grep -qx "$line" "$config" || echo "$line"
		done)" ""
else
	skip "kernel-configure: a kernel has what to configure" "no configuration in /boot"
fi

# Without a module, all is skipped; a word of the kernel's header tells whose it is.
if [[ -e /dev/rashpa/memory ]]; then
	skip "kernel-runner: what the kernel's runner says of them" "the module is loaded here"
else
	"$installed/run_kselftest.sh" -c rashpa 2>&1 | cat >"$work/run"
	is "kernel/kernel-runner: what the kernel's runner says of them" "$(grep -E '^(TAP|1\.\.|ok|not ok)' "$work/run")" \
		"TAP version 13
1..2
ok 1 selftests: rashpa: map_test # SKIP
ok 2 selftests: rashpa: ring_test # SKIP"
	is "long-take: and of how long they may take" "$(grep -c '^# timeout set to 450$' "$work/run")" 2
fi

# One program of each kind of end.
cat >"$work/ends.c" <<'END'
#include "tap.h"

TEST(good, "good") { tap_fork((void (*)(void *))tap_note, "a child"); }
TEST(bad, "bad") { CHECK(getpid() < 0, "a pid is %d", 2); }
TEST(skipped, "skipped") { SKIP_IF(true, "there is no %s", "moon"); }
TEST(crash, "crash") { abort(); }
END
gcc -D_GNU_SOURCE -Iselftests/lib -o "$work/ends" "$work/ends.c" "$flow/rashpa/obj/tap.o" ||
	{ ok 1 "program-tap-o: a program with tap.o"; finish; }

# ends TESTS STATUS COUNTS: its exit status, and what kunit.py reads in it
ends() {
	local status=0
	# shellcheck disable=SC2086 # words
	"$work/ends" $1 >"$work/said" 2>&1 || status=$?
	is "ends: \"$1\": the exit status, and what the kernel's reader of KTAP counts" \
		"$status $(python3 -B "$source/tools/testing/kunit/kunit.py" parse <"$work/said" 2>&1 |
			sed -n 's/.*Testing complete. //p')" "$2 $3"
}
ends good 0 "Ran 1 tests: passed: 1"
ends skipped 4 "Ran 1 tests: skipped: 1"
ends "good skip*" 0 "Ran 2 tests: passed: 1, skipped: 1"
ends "" 1 "Ran 4 tests: passed: 1, failed: 2, skipped: 1"
is "words-kernel-header: in the words of the kernel's header" "$(tail -n 1 "$work/said")" \
	"# Totals: pass:1 fail:2 xfail:0 xpass:0 skip:1 error:0"
is "list: -l lists what there is" "$("$work/ends" -l | paste -sd' ')" \
	"good: good bad: bad skipped: skipped crash: crash"
finish
