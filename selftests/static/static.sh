#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check seconds=240
# Runs inside the lab's root: static checks of the sources. No finding stays open; lists in
# selftests/static/ name exceptions and reasons. TAP, and the seconds of processor time of each
# tool. static.sh [--files LIST] [TOOL...]: only these tools; tools that check file by file
# (checkpatch, codespell, ids, pyflakes, shellcheck, shown, licence) check only the files that the file
# LIST names. In the tier check: only quick tools that are installed.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
export scripts=/usr/src/linux-scripts/scripts
out=build/static
jobs=$(nproc)
n=0 bad=0
list=
# a separate folder, as a run of all files may go on
[[ ${1-} != --files ]] || { list=$(realpath "$2"); out=$out-changed; shift 2; }
only=" $* "
if [[ ${RASHPA_TIER-} == check && $only == "  " ]]; then
	only=" licence ids shown "
	! command -v shellcheck >/dev/null || only+="checkpatch codespell pyflakes shellcheck " # not in a small root
fi
rm -rf "$out"
mkdir -p "$out"

# the lines of a list without the reasons, which follow '#'
entries() { sed -E 's/[[:space:]]*#.*//; /^$/d' "selftests/static/$1"; }

# tool NAME TITLE FUNCTION: a test passes if the function succeeds and prints nothing.
tool() {
	local log=$out/${1// /-} used
	[[ $only == "  " || $only == *" ${1%% *} "* ]] || return 0
	n=$((n + 1))
	TIMEFORMAT='%U %S'
	used=$({ time "$3" "$1" >"$log" 2>&1 || echo "# ended with an error" >>"$log"; } 2>&1)
	used=$(awk '{ printf "%.0f", $1 + $2 }' <<<"$used")
	if [[ -s $log ]]; then
		head -n 200 "$log" | sed 's/^/# /'
		bad=1
		echo "not ok $n - ${1// /-}: $2 ($used s)"
	else
		echo "ok $n - ${1// /-}: $2 ($used s)"
	fi
}

# wanted [PREFIX]: prints the names of its input that LIST contains, each with PREFIX before it.
wanted() { if [[ $list ]]; then grep -xFf <(sed "s,^,${1-}," "$list") || (($? == 1)); else cat; fi; }
sources() { find "$@" -name '*.[ch]' | sort; }
shell_scripts() { grep -rlE '^#!.*sh$|^# shellcheck shell=' selftests Documentation tools | sort | wanted; }

# Without the balance of locks: sparse does not follow guards, which unlock at the end of a scope. Lockdep
# checks it on the debug kernel.
run_sparse() { # "sparse SERIES"
	local release dir=$PWD/$out/module-${1#* }
	release=$(printf '%s\n' /lib/modules/"${1#* }".*-amd64 | sort -V | tail -n 1)
	make -s modules KREL="${release##*/}" MODDIR="$dir" W=1 KFLAGS="C=2 CF=-Wno-context" >"$dir.log" 2>&1 ||
		cat "$dir.log"
	grep 'warning:\|error:' "$dir.log" || true
}

# remembered INPUTS COMMAND...: repeats the output of an earlier success with the same inputs.
remembered() {
	local memo said
	memo=/var/cache/rashpa/checked/$(sha256sum <<<"$*" | cut -c-40)
	shift
	if ! cat "$memo" 2>/dev/null; then
		said=$(mktemp "$memo.XXXXXX") || return
		if "$@" >"$said" 2>&1; then
			mv "$said" "$memo"
			cat "$memo"
		else
			cat "$said"
			rm "$said"
			return 1
		fi
	fi
}
export -f remembered

# FILE...: repeats the earlier output for an unchanged file.
run_checkpatch_on() {
	local file rules
	local -a files=()
	local -a check=("$scripts/checkpatch.pl" --strict --no-tree --no-summary --quiet --terse
		--show-types --max-line-length=100)

	rules=$(cat "$scripts/checkpatch.pl" "$scripts/spelling.txt" <(echo "${check[@]}") | sha256sum)
	checked() { echo "/var/cache/rashpa/checked/$( (echo "$rules$1"; cat "$1") | sha256sum | cut -c-40)"; }
	for file; do
		cat "$(checked "$file")" 2>/dev/null || files+=("$file")
	done
	((${#files[@]})) || return 0
	perl "${check[@]}" -f "${files[@]}" | tee "checkpatch.$$"
	for file in "${files[@]}"; do
		grep -F "$file:" "checkpatch.$$" >"said.$$"
		mv "said.$$" "$(checked "$file")"
	done
}
export -f run_checkpatch_on

run_checkpatch() {
	local top=$PWD
	cd "$out" || return # it leaves a file in its folder
	# plant an error: a broken checkpatch would look like clean sources
	printf 'int f(void)\n{\n        return(0);\n}\n' >planted.c
	[[ $(run_checkpatch_on planted.c 2>&1) == *RETURN_PARENTHESES* ]] ||
		echo "checkpatch finds nothing"
	sources "$top/drivers" "$top/uapi" | wanted "$top/" |
		xargs -r -P "$jobs" -n 8 bash -c 'run_checkpatch_on "$@"' checkpatch 2>checkpatch.err |
		sed "s,^$top/,," >checkpatch.all
	# two messages that it always prints without a kernel tree
	grep -v "uninitialized value \$root\|^find: ./include.: No such file" checkpatch.err
	cd "$top" || return
	grep -vEf <(entries checkpatch) "$out/checkpatch.all"
	return 0
}

# one rule a process; messages about the rule itself do not concern our sources
cocci_rule() {
	local options
	options=$(sed -n 's,^// Options:,,p' "$1" | paste -sd' ')
	# shellcheck disable=SC2086 # options
	remembered "$2 $(sha256sum <"$1")" timeout 600 spatch -D report --very-quiet $options -I uapi -I drivers \
		--cocci-file "$1" --dir drivers || echo "${1##*/}: status $?"
}
export -f cocci_rule

run_coccinelle() {
	local inputs
	inputs=$(spatch --version; find drivers uapi/linux -type f -exec cat {} +)
	find "$scripts/coccinelle" -name '*.cocci' | sort |
		grep -vFf <(entries coccinelle) |
		xargs -P "$jobs" -I '{}' bash -c 'cocci_rule "$@"' rule '{}' "$(sha256sum <<<"$inputs")" |
		grep -v '^warning: line .* should .* be a metavariable'
	return 0
}

# the folder has the findings of unchanged files
run_cppcheck() {
	mkdir -p build/cppcheck
	cppcheck -q -j "$jobs" --cppcheck-build-dir=build/cppcheck --enable=warning,portability,performance --inline-suppr \
		--suppressions-list=selftests/static/cppcheck \
		--template='{file}:{line}: {id}: {message}' -UTAP_WHY -Iuapi -Itools -Itools/lib -Itools/processing \
		-iselftests/modules -iselftests/units -iselftests/abi tools selftests
}

# FILE FLAG...
analyze() {
	local inputs
	inputs=$(clang --version; clang -E "${@:2}" "$1") || return
	remembered "analyzer $*$(sha256sum <<<"$inputs")" clang --analyze -Xclang -analyzer-config \
		-Xclang mode=shallow -fno-caret-diagnostics -o /dev/null "${@:2}" "$1"
}
export -f analyze

# Checks code that reads untrusted input: files, packets, telegrams, requests of a socket,
# registers. Shallow mode takes a sixth of the time, and trusts results of functions in other files.
run_analyzer() {
	local flags good=0
	flags=$(pkg-config --cflags gnutls hdf5 hwloc json-c libibverbs libpci libudev libxml-2.0 libzstd) || return
	# shellcheck disable=SC2046,SC2086 # patterns, flags
	printf '%s\n' $(entries foreign) |
		xargs -P "$jobs" -I '{}' bash -c 'analyze "$@"' analyze '{}' -std=gnu17 -D_GNU_SOURCE \
			-DRASHPA_VERSION='""' -DPROFILE_DIR='""' -DROMULU_NO_XDP='""' -DTELEGRAM_SCHEMA='""' -DPROFILE_SCHEMA='""' \
			-Iuapi -Itools{,/lib,/processing} $flags \
			>"$out/analyzer.all" 2>&1 || good=1
	grep -vE '^[0-9]+ warnings? generated\.$' "$out/analyzer.all" |
		grep -vEf <(entries analyzer)
	return "$good"
}

# -isystem: the kernel's header is a system header once it is installed
run_c++() {
	local compiler

	for compiler in "g++ -std=c++11" "clang++ -std=c++20"; do
		$compiler -Wall -Wextra -Wpedantic -Werror -isystem uapi \
			-Itools/{,lib,processing} -c -o "$out/headers.o" selftests/static/headers.cpp || return
	done
}

# Each function of the arithmetic compiles as a shader and as a CUDA kernel.
run_arithmetic() {
	local header=tools/processing/arithmetic.h file name
	while read -r name; do
		for file in selftests/static/arithmetic.{comp,cu}; do
			grep -q "\\<$name(" "$file" || echo "$file: $name is not compiled"
		done
	done < <(sed -nE 's/^RPU_FUNCTION [a-z_]+ (rpu_[a-z0-9_]+)\(.*/\1/p' "$header")
	glslangValidator --target-env vulkan1.1 -Itools/processing -o "$out/arithmetic.spv" \
		selftests/static/arithmetic.comp | grep -v '\.comp$'
	clang -x cuda --cuda-gpu-arch=sm_80 --cuda-device-only -nocudainc -nocudalib -Wall -Wextra \
		-Werror -Itools/processing -S -emit-llvm -o "$out/arithmetic.ll" selftests/static/arithmetic.cu
}

run_codespell() {
	find drivers uapi tools selftests Documentation README.md Makefile Kbuild dkms.conf -type f | wanted |
		xargs -r codespell -L "$(entries codespell | paste -sd,)"
}

run_shown() { find tools -name '*.c' | wanted | xargs -r python3 -B selftests/static/shown.py; }

run_pyflakes() {
	[[ $(echo "import planted" | python3 -m pyflakes 2>&1) == *"'planted' imported"* ]] ||
		echo "pyflakes finds nothing"
	{ find selftests tools Documentation -name '*.py'; grep -rl '^#!.*python3$' selftests tools; } | sort -u |
		wanted | xargs -r python3 -m pyflakes
}

# sourced files count as inputs, too
run_shellcheck() {
	local rules
	rules=$(cat .shellcheckrc selftests/lib/*.sh selftests/lab/*.sh selftests/*/rules.sh | sha256sum)
	shell_scripts | xargs -r -P "$jobs" -I '{}' bash -c \
		'remembered "$1 $(cat "$1" | sha256sum) $2" shellcheck -x -f gcc "$1"' shellcheck '{}' "$rules"
}

run_ids() {
	{ shell_scripts | xargs grep -l 'lib/shell\.sh"$'; ls tools/*/tests/*.py tools/*/tests/*selftest.c; } | wanted |
		xargs -r python3 -B selftests/static/ids.py
}

# Code of the kernel is GPL-2.0-only; all else is LGPL, to be linked with any program.
run_licence() {
	local file want
	find . -path ./build -prune -o -path ./.git -prune -o -path ./LICENSES -prune -o \
		-name __pycache__ -prune -o -type f -print | sort | wanted ./ | while read -r file; do
		case $file in
		./uapi/* | ./selftests/abi/0.* | ./selftests/modules/rashpa_bare.h)
			want="GPL-2\.0-only WITH Linux-syscall-note"
			;;
		./drivers/* | ./Documentation/patches/* | ./Kbuild | ./dkms.conf | ./selftests/modules/*) want="GPL-2\.0-only$" ;;
		./tools/packaging/debian/rules | ./tools/packaging/debian/*.post*) want="LGPL-2\.1-or-later" ;;
		./tools/packaging/debian/*) continue ;; # the file copyright states it
		./README.md | ./Documentation/*.png | ./Documentation/ABI/* | *.json | ./selftests/abi/*.abi | *.const) continue ;;
		./selftests/lab/debug.config | ./.git) continue ;;
		*) want="LGPL-2\.1-or-later" ;;
		esac
		head -n 4 "$file" | sed 's, *\*/$,,; s, *-->$,,' |
			grep -q "SPDX-License-Identifier: $want" || echo "$file: no line of $want"
	done
}

# reuse does not know which files git ignores: check a copy without them.
run_reuse() {
	local copy=/tmp/reuse
	rm -rf "$copy"
	mkdir "$copy"
	tar -c --exclude=./build --exclude=./.git --exclude=__pycache__ . | tar -x -C "$copy"
	(cd "$copy" && reuse lint --quiet)
}

tool licence "each file names its licence" run_licence
tool reuse "REUSE finds all licences" run_reuse
tool "sparse 6.1" "sparse is clean on 6.1" run_sparse
tool "sparse 6.12" "sparse is clean on 6.12" run_sparse
if [[ $only == "  " || $only == *" sparse "* ]]; then
	n=$((n + 1))
	echo "ok $n - sparse-newest: sparse on the newest # SKIP sparse 0.6.4 does not parse the headers of this kernel"
fi
tool checkpatch "checkpatch --strict finds nothing" run_checkpatch
tool coccinelle "the kernel's coccinelle rules find nothing" run_coccinelle
tool cppcheck "cppcheck finds nothing in tools and tests" run_cppcheck
tool analyzer "clang's analyzer finds nothing where tools read untrusted input" run_analyzer
tool c++ "programs in C++ can include the library's headers" run_c++
tool arithmetic "the arithmetic of pixels is a shader and a CUDA kernel, too" run_arithmetic
tool codespell "codespell finds no mistyped word" run_codespell
tool ids "each verdict has a unique id" run_ids
tool shown "texts of others are not printed as they are" run_shown
tool pyflakes "pyflakes finds nothing" run_pyflakes
tool shellcheck "shellcheck finds nothing" run_shellcheck
echo "1..$n"
exit "$bad"
