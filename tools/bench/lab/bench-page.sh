#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What viewers of rashpa-web cost, on this machine: bench-page.sh [IGNORED [ROUNDS [SECONDS]]]. Writes build/bench/page.json.
set -euo pipefail

top=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$top"
shift || true
mkdir -p build/bench
selftests/lab/lab exec --full -- sh -ec '
	make -s tools
	export PATH=$PWD/build/tools:$PATH PYTHONPATH=build/tools/python RASHPA_LIBRARY=build/tools/librashpa.so.0
	exec python3 -B tools/bench/lab/bench_page.py build/bench/page.json "$@"' \
	bench "$@"
