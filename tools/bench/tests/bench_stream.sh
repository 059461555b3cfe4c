#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check where=root seconds=25
# rashpa-bench stream and sizing, short: all stacks are accounted for, each part has a figure. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
bench=$PWD/${RASHPA_TOOLS:-build/tools}/rashpa-bench
is_true() { # NAME JQ
	jq -e "$2" "$work/json" >/dev/null
	ok $? "$1" || jq -c . "$work/json" | sed 's/^/# /'
}

good "stream: it ends well" "$bench" stream --repeat 2 --time 1 --rates 0.004,0.3,1000 --sizes 64K --folder "$work" --json="$work/json"
is_true "stream-calls: each number of places and of workers has three calls, with processor time" \
	'[.calls[] | select(.processor_ns > 0) | [.places, .workers, .call]] | unique | length == 27'
is_true "stream-counters: counters, or no counters on this machine" \
	'(.calls | all(.instructions > 0)) or (.left_out | any(.reason | test("no counters on this machine")))'
is_true "stream-taken: at each rate, with each hog, all that is sent is taken" \
	'(.rates | length == 8) and (.rates | all(.taken == .sent and .sent > 0))'
is_true "stream-due: each stack that was due is sent, or lost" \
	'.rates | all(.sent + .lost == (if .rate_gbyte_per_s < 0.1 then 61 else 4577 end))'
is_true "stream-lost: stacks are lost only if the backlog had no slot left" '.rates | all(.lost == 0 or .largest_backlog >= 31)'
is_true "stream-memory: a rate that this memory does not give is left out" '.left_out | any(.reason | test("^1000 GB/s"))'
good "sizing: it ends well" "$bench" sizing --repeat 1 --sizes 256K --json="$work/json"
is_true "sizing-parts: each part has a figure, which is the inverse of the rate" \
	'(.parts | length == 15) and (.parts | all(.processors_for_1_gbyte_per_s * .gbyte_per_s_of_a_processor | . > 0.999 and . < 1.001))'
is "no-file: no file is left" "$(find /dev/shm "$work" -name "rashpa-bench-*" -newer "$0" 2>/dev/null | wc -l)" 0
finish
