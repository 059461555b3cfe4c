#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the guest: the suite with the module that counts, then what it counted.
# coverage-guest.sh FOLDER ARGUMENTS-OF-SUITE...
set -uo pipefail

cd "$(dirname "$0")/../.." || exit
out=$1
shift
export RASHPA_KERNEL=coverage # the modules' folder
selftests/suite.sh "$@"
status=$?
# The kernel keeps the counters of a module that has gone. They are no plain files: cat.
mkdir -p "$out"
while IFS= read -r counters; do
	cat "$counters" >"$out/${counters##*/}"
done < <(find /sys/kernel/debug/gcov -name 'rashpa_*.gcda')
exit "$status"
