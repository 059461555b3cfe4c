#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The recorder of romulu compared with fio, on the disk of build/bench: bench-record.sh [IGNORED [ROUNDS]]. Writes
# build/bench/record.json.
set -euo pipefail

top=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$top"
shift || true
mkdir -p build/bench
selftests/lab/lab exec -- sh -ec '
	make -s tools TARGETS="all tests"
	export PYTHONPATH=build/tools/python RASHPA_LIBRARY=build/tools/librashpa-fake.so
	exec python3 -B tools/bench/lab/bench_record.py build/bench/record.json build/bench "$@"' \
	bench "$@"
