#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=30
# The kernels of the engine cuda compile for each architecture from sm_80 to sm_120, without a warning: by
# nvcc and by clang, whichever is at hand. Features that a compiler lacks are skipped by name. No GPU is
# needed, and nothing is said of what a GPU makes of them. TAP.
# NVCC, CLANG, PTXAS: other programs.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
export PATH=$PATH:/usr/local/cuda/bin
nvcc=${NVCC:-nvcc} clang=${CLANG:-clang} ptxas=${PTXAS:-ptxas}
kernels=tools/processing/cuda.cu
# of GPUs that there are: NVIDIA's list
all="80 86 87 88 89 90 100 103 110 120"

# silent NAME COMMAND...: it succeeds, and says nothing
silent() {
	local status=0
	"${@:2}" >"$work/said" 2>&1 || status=1
	[[ ! -s $work/said ]] || status=1
	ok "$status" "$1" || head -n 20 "$work/said" | sed 's/^/# /'
}

# --- nvcc: code, and PTX of each

if command -v "$nvcc" >/dev/null; then
	echo "# $("$nvcc" --version | tail -n 1)"
	known=$("$nvcc" --list-gpu-arch)
	for a in $all; do
		if ! grep -qx "compute_$a" <<<"$known"; then
			skip "nvcc: sm_$a" "this nvcc does not know it"
			continue
		fi
		silent "nvcc: sm_$a" "$nvcc" -fatbin -std=c++17 -O3 -fmad=false -Werror all-warnings -Itools/processing \
			-gencode "arch=compute_$a,code=[sm_$a,compute_$a]" -o "$work/kernels.fatbin" "$kernels"
	done
	header=$(dirname "$(readlink -f "$(command -v "$nvcc")")")/../include
	if [[ -e $header/cuda.h ]]; then
		silent "declared-cuda-cuda: our declarations of CUDA match its cuda.h" "${CC:-cc}" -std=gnu17 -Wall -Wextra -Werror \
			-isystem "$header" -fsyntax-only tools/lib/tests/gpu-libraries/cuda-header.c
	else
		skip "declared-cuda-cuda: our declarations of CUDA match its cuda.h" "there is no $header/cuda.h"
	fi
else
	skip "nvcc: sm_80 to sm_120" "no $nvcc is at hand"
fi

# --- clang: PTX, of which the GPU's driver makes code

# ptx ARCH FILE: as tools/processing/meson.build has it
ptx() {
	"$clang" -x cuda "--cuda-gpu-arch=sm_$1" --cuda-device-only -nocudainc -nocudalib -Wno-unknown-cuda-version -O3 \
		-ffp-contract=off -Wall -Wextra -Werror -Itools/processing -S -o "$2" "$kernels"
}

if command -v "$clang" >/dev/null; then
	version=$("$clang" --version | grep -o 'version [0-9]*')
	echo "# clang, $version"
	for a in $all; do
		ptx "$a" "$work/$a.ptx" >"$work/said" 2>&1
		if grep -q 'unsupported CUDA gpu architecture' "$work/said"; then
			skip "clang: PTX of sm_$a" "clang, $version, does not know it; PTX of sm_80 is for it as well"
			continue
		fi
		silent "clang: PTX of sm_$a" ptx "$a" "$work/$a.ptx"
	done
	is "oldest-one-build: the oldest one is what the build takes" "$(grep -o '^\.target sm_80' "$work/80.ptx")" ".target sm_80"
	# the driver's compiler of PTX is this one
	codes=$("$ptxas" --help 2>/dev/null)
	for a in $all; do
		if ! command -v "$ptxas" >/dev/null; then
			skip "ptx-sm-80-becomes: PTX of sm_80 becomes code for sm_80 to sm_120" "no $ptxas is at hand"
			break
		elif ! grep -q "'sm_$a'" <<<"$codes"; then
			skip "ptx-sm-80-becomes/$a: PTX of sm_80 becomes code for sm_$a" "this ptxas does not know it"
		else
			silent "ptx-sm-80-becomes-code/$a: PTX of sm_80 becomes code for sm_$a" "$ptxas" --warning-as-error -arch "sm_$a" -o "$work/code" "$work/80.ptx"
		fi
	done
else
	skip "clang: PTX of sm_80 to sm_120" "no $clang is at hand"
fi
finish
