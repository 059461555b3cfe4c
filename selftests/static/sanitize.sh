#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=160
# Runs inside the lab's root: self-tests of the tools and fuzzers with the address and the undefined
# behaviour sanitizer, engines and builder with the thread sanitizer, in build/sanitize. TAP.
# sanitize.sh build: only builds the tools, for tests that run them (lib/sanitized.sh).
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../lib/shell.sh
. "$(dirname "$0")/../lib/shell.sh"
out=$PWD/build/sanitize
MAKEFLAGS=-j$(nproc)
export MAKEFLAGS
mkdir -p "$out"
# one at a time
build() {
	CFLAGS="-fno-sanitize-recover=undefined -fno-omit-frame-pointer" flock "$out/lock" \
		make -s tools BUILD="$out" MESON=-Db_sanitize=address,undefined TARGETS="all tests"
}
[[ ${1-} != build ]] || { build >"$out/build.log" 2>&1 || { cat "$out/build.log"; exit 1; }; exit 0; }

good "tools-software-fpga: tools and software FPGA are built with sanitizers" build
good "software-fpga/nothing-self-test: software FPGA: its self-test passes" "$out/tools/rashpa-fpga-selftest" --all
good "tools: their self-test passes" "$out/tools/tools-selftest" tools/data/profiles
for name in stream network processing builder wire; do
	good "nothing-self-test: $name: its self-test passes" "$out/tools/$name-selftest"
done
# takes minutes, mostly for Mesa's compiler
[[ ! ${RASHPA_LONG-} ]] || good "processing-gpu/nothing-self-test: processing on a GPU: its self-test passes" \
	env VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.json "$out/tools/processing-selftest" vulkan

# clang's OpenMP reports waits of threads to the thread sanitizer (libarcher), gcc's does not
threads="-fsanitize=thread -O1 -g"
archer=$(readlink -f "$(clang -print-file-name=libarcher.so)")
raced() {
	env OMP_NUM_THREADS=3 OMP_TOOL_LIBRARIES="$archer" \
		TSAN_OPTIONS="ignore_noninstrumented_modules=1 exitcode=66 ${tsan-}" "$@" >"$out/threads.log" 2>&1
}
cat >"$out/race.c" <<-END
	int main(void)
	{
		static volatile int sum;

	#pragma omp parallel for
		for (int i = 0; i < 1000; i++)
			sum += i;
		return 0;
	}
END
# shellcheck disable=SC2086 # options
good "race-built: a race is built" clang -fopenmp $threads -o "$out/race" "$out/race.c"
raced "$out/race"
is "thread-sanitizer-sees: the thread sanitizer reports it" $? 66
for_threads() {
	CC=clang make -s tools BUILD="$out/threads" MESON="-Db_sanitize=thread -Db_lundef=false -Doptimization=1" TARGETS="$1"
}
good "engines-built-thread: engines are built for the thread sanitizer" for_threads processing-selftest
raced "$out/threads/tools/processing-selftest"
ok $? "engines: no race in their self-test" || grep -A 12 -m 3 -e "^WARNING" -e "^not ok" "$out/threads.log" | sed 's/^/# /'

good "places-built: places of streams are built for the thread sanitizer" for_threads places-selftest
raced "$out/threads/tools/places-selftest"
ok $? "places: no race of consumers that join, leave and die" || grep -A 12 -m 3 -e "^WARNING" -e "^not ok" "$out/threads.log" | sed 's/^/# /'

good "builder-self-test-built: builder's self-test is built for the thread sanitizer" for_threads builder-selftest
# a library of MPI starts a thread before main(), which forked processes lack
tsan=report_thread_leaks=0 raced "$out/threads/tools/builder-selftest"
ok $? "builder: no race in its self-test" || grep -A 12 -m 3 -e "^WARNING" -e "^not ok" "$out/threads.log" | sed 's/^/# /'

good "fuzzers-built: fuzzers are built" make -s -C selftests/fuzz O="$out/fuzz" host
# the second input starts with a board in its initial state
printf '%s\n' $'\x08stuck on' "dead link" "flood max 0" >"$out/told"
good "fuzzer-control/one-input-ended: fuzzer of control: effects of an input end with it" \
	"$out/fuzz/control_fuzz" "$out/told" "$out/told"
for name in vfu control stream share text telegram; do
	good "fuzzer/thousand-inputs: fuzzer of $name: a thousand inputs pass" "$out/fuzz/${name}_fuzz" -runs=1000 -seed=1 \
		-dict=selftests/fuzz/words.dict
done
rm -rf "$out/seeds"
mkdir -p "$out/seeds/"{frame,link}
good "frames-fuzzer: frames for a fuzzer are made" python3 -B tools/frames/tests/oracle.py seeds "$out/seeds/frame"
good "messages-fuzzer: messages for a fuzzer are made" "$out/tools/network-selftest" "$out/seeds/link"
for name in frame link; do
	good "fuzzer/thousand-inputs-2: fuzzer of $name: a thousand inputs pass" "$out/fuzz/${name}_fuzz" -runs=1000 -seed=1 \
		"$out/seeds/$name"
done
finish
