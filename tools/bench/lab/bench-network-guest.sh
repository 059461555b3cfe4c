#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Guest part of bench-network.sh.
# bench-network-guest.sh FOLDER [OPTION...]: options of sweep.py.
set -euo pipefail

cd "$(dirname "$0")/../../.."
export PATH=$PWD/${RASHPA_TOOLS:-build/tools}:$PATH
. selftests/lib/rxe-pair.sh
out=$1
shift

rxe_pair
echo 64 >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
echo "== $(uname -sr)"
python3 -B tools/bench/paper/sweep.py --address 10.1.0.2 --sink-at "ip netns exec b" --sink-device rxb \
	--writer-at "ip netns exec a" --writer-device rxa --json="$out/network.json" "$@"
