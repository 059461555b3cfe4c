#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the lab's root, with the headers of all kernels ("lab exec --headers"): builds
# the module for each of them with gcc. Builds it with clang for the newest stock kernel of each
# series and suite. Builds tools and tests for arm64, and with clang. A warning is a failure. TAP;
# build/kernels contains results, and a table of the builds.
# kernels.sh [PATTERN]: only kernels whose release matches, as "7.*-arm64".
# RASHPA_CHECK_JOBS: builds at a time (default: as many as processors).
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
pattern=${1-*}
jobs=${RASHPA_CHECK_JOBS:-$(nproc)}
out=$PWD/build/kernels
n=0 bad=0
rm -rf "$out"
mkdir -p "$out"

# Messages that are allowed: another compiler, and missing BTF.
expected='the compiler differs|pahole version differs|The kernel was built with:|The kernel was built by:|You are using: |Skipping BTF generation'

# module RELEASE ARCHITECTURE gcc|clang MACHINE: one build, in a separate process
module() {
	local release=$1 dir=$out/$1-$3 log=$out/$1-$3.log cc want flags=-Werror
	local -a with=()

	[[ $2 == arm64 ]] && with=(ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-)
	if [[ $3 == clang ]]; then
		# W=1 makes clang complain of the kernel's own headers
		with+=(LLVM=1 CC="$PWD/selftests/static/clang-kernel")
	else
		# Debian's headers name the compiler of the kernel; another one suffices.
		cc=
		[[ $2 == arm64 ]] && cc=aarch64-linux-gnu-
		want=$cc$(grep -oE 'gcc-[0-9]+' "/usr/lib/modules/$release/build/.kernelvariables" | head -n 1)
		if ! command -v "$want" >/dev/null; then
			want=${cc}gcc
			# the kernel's headers use attributes that an older compiler does not know
			flags+=" -Wno-attributes"
		fi
		with+=(W=1 CC="$want")
	fi
	make -s modules KREL="$release" MODDIR="$dir" KFLAGS="KCFLAGS='$flags'" "${with[@]}" \
		>"$log" 2>&1 </dev/null || return
	if grep -vE "$expected" "$log" | grep -iE 'warning|error|undefined|missing'; then
		return 1
	fi
	# modpost has checked every symbol; vermagic names the kernel
	[[ $(modinfo -F vermagic "$dir/rashpa.ko") == "$release "* ]] ||
		{ echo "no rashpa.ko for $release" >>"$log"; return 1; }
	[[ $(readelf -h "$dir/rashpa.ko") == *Machine:*"$4"* ]] ||
		{ echo "rashpa.ko is not for $2" >>"$log"; return 1; }
	rm -rf "$dir"
}

# program NAME COMMAND...: a build without warnings
program() {
	local log=$out/$1.log

	shift
	"$@" >"$log" 2>&1 </dev/null && ! grep -i 'warning' "$log"
}

declare -A running=() begun=()
declare -A result=() # by release and compiler

reap() {
	local pid name status=0 seconds

	wait -n -p pid || status=$?
	name=${running[$pid]}
	seconds=$((SECONDS - begun[$pid]))
	unset "running[$pid]" "begun[$pid]"
	n=$((n + 1))
	result[$name]=yes
	if ((status)); then
		bad=1
		result[$name]=no
		echo "not ok $n - ${name// /-}: it compiles without a warning ($seconds s)"
		tail -n 25 "$out/${name// /-}.log" | sed 's/^/# /'
	else
		echo "ok $n - ${name// /-}: it compiles without a warning ($seconds s)"
	fi
}

start() { # NAME COMMAND...
	while ((${#running[@]} >= jobs)); do
		reap
	done
	"${@:2}" >/dev/null &
	running[$!]=$1 begun[$!]=$SECONDS
}

trap 'kill "${!running[@]}" 2>/dev/null; wait; exit 130' INT TERM

# The list is sorted: the last stock kernel of each suite and series is the newest.
stock=" $(awk '$1 !~ /-(rt|cloud)-|-16k$/ {
		split($1, number, ".")
		newest[$4 " " $2 " " number[1] "." number[2]] = $1
	}
	END { for (key in newest) printf "%s ", newest[key] }' /etc/lab-headers)"

# if the archive lacked a suite, the list would be shorter, and the run would pass
if [[ $pattern == '*' ]]; then
	for suite in bookworm trixie bookworm-backports trixie-backports sid; do
		for arch in amd64 arm64; do
			n=$((n + 1))
			if awk -v a="$arch" -v s="$suite" '$2 == a && $4 ~ s { found = 1 }
					END { exit !found }' /etc/lab-headers; then
				echo "ok $n - suites/$suite-$arch: the archive has kernels"
			else
				bad=1
				echo "not ok $n - suites/$suite-$arch: the archive has kernels"
			fi
		done
	done
fi

while read -r release arch _ suite; do
	# shellcheck disable=SC2053 # it is a pattern
	[[ $release == $pattern ]] || continue
	machine=X86-64
	[[ $arch == arm64 ]] && machine=AArch64
	for compiler in gcc clang; do
		[[ $compiler == gcc || $stock == *" $release "* ]] || continue
		start "$release $compiler" module "$release" "$arch" "$compiler" "$machine"
	done
done </etc/lab-headers

if [[ $pattern == '*' ]]; then
	# Headers of foreign libraries serve every architecture, the libraries themselves do not:
	# link programs without foreign libraries, and only compile the others.
	objects() {
		local tools=(make -s tools BUILD="$out/arm64" MESON="--cross-file selftests/lab/arm64.ini")

		"${tools[@]}" TARGETS=build.ninja &&
			"${tools[@]}" TARGETS="$(ninja -C "$out/arm64/tools" -t targets rule c_COMPILER | paste -sd' ') \
				librashpa.so.0 librashpa.a librashpa-processing.a librashpa-selftest"
	}
	start "tools arm64" program tools-arm64 objects
	while ((${#running[@]})); do
		reap
	done
	start "tests arm64" program tests-arm64 \
		make -s -C selftests O="$out/arm64-tests" LIBRASHPA="$out/arm64/tools/librashpa.a" CC=aarch64-linux-gnu-gcc \
		EXTRA_CFLAGS="-idirafter /usr/include -idirafter /usr/include/x86_64-linux-gnu" \
		MESON="--cross-file $PWD/selftests/lab/arm64.ini" objects
	start "tools clang" program tools-clang env CC=clang make -s tools BUILD="$out/clang"
	start "tests clang" program tests-clang make -s -C selftests O="$out/clang-tests" LIBRASHPA="$out/clang/tools/librashpa.a" CC=clang
fi
while ((${#running[@]})); do
	reap
done

{
	printf '%-32s %-20s %-5s %s\n' release suite gcc clang
	while read -r release _ _ suite; do
		printf '%-32s %-20s %-5s %s\n' "$release" "$suite" "${result[$release gcc]--}" \
			"${result[$release clang]--}"
	done </etc/lab-headers
} >"$out/table"
echo "1..$n"
exit "$bad"
