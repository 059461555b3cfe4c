#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=15
# Runs inside the lab's root: do the tests work as a target of the kernel's selftests? A few are
# built with its kselftest.h and installed by its lib.mk; its readers of KTAP read their output.
# KSRC: a source other than Debian's package. Needs no driver. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../lib/shell.sh
. "$(dirname "$0")/../lib/shell.sh"
flow=$PWD/build/selftests/kselftest
installed=$work/installed

if [[ ! ${KSRC-} ]] && ! compgen -G "/usr/src/linux-source-*.tar.xz" >/dev/null; then
	skip "kselftest: the kernel's Makefile builds the tests" "no source of Linux here (linux-source, or KSRC)"
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
refused "no-source: a folder without a source is reported" "no source of Linux" "$work"
mkdir -p "$work/old/tools/testing/selftests"
touch "$work"/old/tools/testing/selftests/{lib.mk,kselftest.h}
refused "old: a source that is too old is reported" "too old" "$work/old"

is "break-machine-not: tests that break the machine are not in the list" "$("$installed/run_kselftest.sh" -l | paste -sd' ')" \
	"rashpa:map_test rashpa:ring_test"
is "settings-configure: they are installed, with settings and configuration" "$(cd "$installed/rashpa" && echo *)" \
	"config lockdown_test map_test ring_test settings"

# The newest kernel here, which the tests run on, has all options of the file "config".
config=$(printf '%s\n' /boot/config-* | sort -V | tail -n 1)
if [[ -r $config ]]; then
	is "configure: $(basename "$config") has the needed options" \
		"$(grep '^CONFIG_' selftests/kselftest/config | sed 's/=m$/=[ym]/' | while read -r line; do
			grep -qx "$line" "$config" || echo "$line"
		done)" ""
else
	skip "kernel-configure: a kernel has the needed options" "no configuration in /boot"
fi

# Without a module, all tests are skipped; the kernel's header prints SKIP.
if [[ -e /dev/rashpa/memory ]]; then
	skip "kernel-runner: the kernel's runner reads their verdicts" "the module is loaded here"
else
	"$installed/run_kselftest.sh" -c rashpa 2>&1 | cat >"$work/run"
	is "kernel/kernel-runner: the kernel's runner reads their verdicts" "$(grep -E '^(TAP|1\.\.|ok|not ok)' "$work/run")" \
		"TAP version 13
1..2
ok 1 selftests: rashpa: map_test # SKIP
ok 2 selftests: rashpa: ring_test # SKIP"
	is "long-take: the kernel's runner uses their time limit" "$(grep -c '^# timeout set to 450$' "$work/run")" 2
fi

# One program with a test for each result.
cat >"$work/ends.c" <<'END'
#include "tap.h"

TEST(good, "good") { tap_fork((void (*)(void *))tap_note, "a child"); }
TEST(bad, "bad") { CHECK(getpid() < 0, "a pid is %d", 2); }
TEST(skipped, "skipped") { SKIP_IF(true, "there is no %s", "moon"); }
TEST(crash, "crash") { abort(); }
END
gcc -D_GNU_SOURCE -Iselftests/lib -o "$work/ends" "$work/ends.c" "$flow/rashpa/obj/tap.o" ||
	{ ok 1 "program-tap-o: a program with tap.o compiles"; finish; }

# ends TESTS STATUS COUNTS: its exit status, and the counts of kunit.py
ends() {
	local status=0
	# shellcheck disable=SC2086 # words
	"$work/ends" $1 >"$work/said" 2>&1 || status=$?
	is "ends: \"$1\": the exit status, and the counts of the kernel's reader of KTAP" \
		"$status $(python3 -B "$source/tools/testing/kunit/kunit.py" parse <"$work/said" 2>&1 |
			sed -n 's/.*Testing complete. //p')" "$2 $3"
}
ends good 0 "Ran 1 tests: passed: 1"
ends skipped 4 "Ran 1 tests: skipped: 1"
ends "good skip*" 0 "Ran 2 tests: passed: 1, skipped: 1"
ends "" 1 "Ran 4 tests: passed: 1, failed: 2, skipped: 1"
is "words-kernel-header: the kernel's header prints the totals" "$(tail -n 1 "$work/said")" \
	"# Totals: pass:1 fail:2 xfail:0 xpass:0 skip:1 error:0"
is "list: -l lists all tests" "$("$work/ends" -l | paste -sd' ')" \
	"good: good bad: bad skipped: skipped crash: crash"
finish
