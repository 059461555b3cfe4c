#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=100
# Runs inside the lab's root: tools, software FPGA and tests with the address and the
# undefined behaviour sanitizer, and the fuzzers, in build/sanitize; then what needs no kernel
# of ours. TAP. Tests with needs=sanitized run in a guest.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../lib/shell.sh
. "$(dirname "$0")/../lib/shell.sh"
out=$PWD/build/sanitize
flags="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
MAKEFLAGS=-j$(nproc)
export MAKEFLAGS
mkdir -p "$out"

good "tools and software FPGA are built with sanitizers" \
	make -s -C tools O="$out/tools" EXTRA_CFLAGS="$flags"
good "tests are built with sanitizers" \
	make -s -C selftests O="$out/selftests" EXTRA_CFLAGS="$flags"
good "software FPGA: nothing to say of its self-test" "$out/tools/rashpa-fpga-selftest" --all
good "conformance: nothing to say of the program" \
	env RASHPA_TOOLS=build/sanitize/tools selftests/conformance/boards.sh
good "frames: nothing to say of the programs" \
	env RASHPA_TOOLS=build/sanitize/tools tools/frames/tests/inject.sh
good "usage: nothing to say of what needs no driver" \
	env RASHPA_TOOLS=build/sanitize/tools tools/tests/usage.sh
good "tools: nothing to say of their self-test" "$out/tools/tools-selftest" tools/profiles
good "streams: nothing to say of their self-test" "$out/tools/stream-selftest"
good "network: nothing to say of its self-test" "$out/tools/network-selftest"
good "processing: nothing to say of its self-test" "$out/tools/processing-selftest"
# takes minutes: most of it is a compiler that is not ours
[[ ! ${RASHPA_LONG-} ]] || good "processing on a GPU: nothing to say of its self-test" \
	env VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.json "$out/tools/processing-selftest" vulkan
good "builder: nothing to say of its self-test" "$out/tools/builder-selftest"
good "links: nothing to say of their self-test" "$out/tools/wire-selftest"
good "telegrams: nothing to say of daemons" \
	env RASHPA_TOOLS=build/sanitize/tools tools/telegram/tests/telegrams.sh

# clang's OpenMP tells the thread sanitizer what threads wait for (libarcher), gcc's does not
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
good "a race is built" clang -fopenmp $threads -o "$out/race" "$out/race.c"
raced "$out/race"
is "the thread sanitizer sees it" $? 66
good "engines are built for the thread sanitizer" make -s -C tools O="$out/threads" CC=clang EXTRA_CFLAGS="$threads" \
	"$out/threads/processing-selftest"
raced "$out/threads/processing-selftest"
ok $? "engines: no race in their self-test" || grep -A 12 -m 3 -e "^WARNING" -e "^not ok" "$out/threads.log" | sed 's/^/# /'

good "builder's self-test is built for the thread sanitizer" make -s -C tools O="$out/threads" CC=clang \
	EXTRA_CFLAGS="$threads" "$out/threads/builder-selftest"
# a library of MPI starts a thread before main(), which is not in processes that are forked
tsan=report_thread_leaks=0 raced "$out/threads/builder-selftest"
ok $? "builder: no race in its self-test" || grep -A 12 -m 3 -e "^WARNING" -e "^not ok" "$out/threads.log" | sed 's/^/# /'

good "fuzzers are built" make -s -C selftests/fuzz O="$out/fuzz" host
# the second input begins with a board that knows nothing of the first
printf '%s\n' $'\x08stuck on' "dead link" "flood max 0" >"$out/told"
good "fuzzer of control: what one input told has ended" \
	"$out/fuzz/control_fuzz" "$out/told" "$out/told"
for name in vfu control stream share text telegram; do
	good "fuzzer of $name: a thousand inputs" "$out/fuzz/${name}_fuzz" -runs=1000 -seed=1 \
		-dict=selftests/fuzz/words.dict
done
rm -rf "$out/seeds"
mkdir -p "$out/seeds/"{frame,link}
good "frames for a fuzzer are made" python3 -B tools/frames/tests/oracle.py seeds "$out/seeds/frame"
good "messages for a fuzzer are made" "$out/tools/network-selftest" "$out/seeds/link"
for name in frame link; do
	good "fuzzer of $name: a thousand inputs" "$out/fuzz/${name}_fuzz" -runs=1000 -seed=1 \
		"$out/seeds/$name"
done
finish
