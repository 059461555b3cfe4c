#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check seconds=10
# Runs inside the lab's root: the header keeps its promises. Layouts and numbers are those
# that are written down (abi/rashpa.abi; "make abi" adds what is new), on every machine and
# with every compiler; what the first header had is still there; the header stands alone. And the
# library's: a doorbell is ordered behind memory for a function, also on arm64. TAP.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=rules.sh
. selftests/abi/rules.sh
header=uapi/linux/rashpa.h
n=0 bad=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A test is good if it found nothing to say.
silent() { # NAME FILE
	n=$((n + 1))
	if [[ -s $2 ]]; then
		sed 's/^/# /' "$2"
		bad=1
		echo "not ok $n - $1"
	else
		echo "ok $n - $1"
	fi
}

# The other way round: a change that must not go unseen.
seen() { # NAME FILE WORD
	n=$((n + 1))
	if grep -q -- "$3" "$2"; then
		echo "ok $n - noticed: $1"
	else
		sed 's/^/# /' "$2"
		bad=1
		echo "not ok $n - noticed: $1"
	fi
}

facts() { selftests/abi/facts.sh "$@"; }

for compiler in gcc i686-linux-gnu-gcc aarch64-linux-gnu-gcc clang \
	"clang -m32 -isystem /usr/i686-linux-gnu/include"; do
	# shellcheck disable=SC2086 # a compiler and its options
	if facts "$header" $compiler >"$work/now" 2>"$work/out"; then
		diff -U0 "$GOLDEN" "$work/now" | head -n 40 >"$work/out"
	else
		echo "does not compile" >>"$work/out"
	fi
	silent "$compiler: layouts and numbers are those of $GOLDEN" "$work/out"
done

unsound "$GOLDEN" >"$work/out"
silent "no struct has implicit padding, all types have a fixed width" "$work/out"

if facts "$FIRST" >"$work/first" 2>"$work/out"; then
	broken "$work/first" "$GOLDEN" >"$work/out"
else
	echo "the first header does not compile" >>"$work/out"
fi
silent "what $FIRST promised is still true" "$work/out"

# NAME SED-EXPRESSION FILTER WORD: a changed header, and what is to be said of it
injected() {
	sed -E "$2" "$header" >"$work/rashpa.h"
	if ! cmp -s "$header" "$work/rashpa.h" && facts "$work/rashpa.h" >"$work/now" 2>"$work/out"; then
		"$3" "$work/now" >"$work/out"
	fi
	seen "$1" "$work/out" "$4"
}
broken_now() { broken "$GOLDEN" "$1"; }

injected "a field that moved" \
	'/^struct rashpa_alloc \{/,/^\}/s/^\t__u32 node;/\t__u32 more;\n\t__u32 more2;\n&/' \
	broken_now "field rashpa_alloc.node 40 4 __u32"
injected "a field with another name" 's/^\t__u32 depth;/\t__u32 deep;/' \
	broken_now "field rashpa_channel_make.depth"
injected "a field with another type" 's/^\t__s32 out_node;/\t__u32 out_node;/' \
	broken_now "field rashpa_info.out_node 48 4 __s32"
injected "an ioctl with another number" 's/(_IOC_PIN\t+.*)0x0/\10x7/' \
	broken_now "value RASHPA_IOC_PIN"
injected "an enum with another value" 's/(RASHPA_KIND_PINNED =) 4/\1 6/' \
	broken_now "value RASHPA_KIND_PINNED 4"
injected "a struct that shrank" \
	'/^struct rashpa_quiesce \{/,/^\}/s/^\t__aligned_u64 .*//' \
	broken_now "size rashpa_quiesce"
injected "a record of read() that grew" \
	'/^struct rashpa_event \{/,/^\}/s/^\t__aligned_u64 lost;/&\n\t__aligned_u64 more;/' \
	broken_now "size rashpa_event"
injected "a limit that became narrower" 's/(RASHPA_MEMBERS_MAX\t)1024/\1512/' \
	broken_now "value RASHPA_MEMBERS_MAX"
injected "a hole" '/^struct rashpa_pin \{/,/^\}/s/^\t__s32 out_fd;/&\n\t__aligned_u64 more;/' \
	unsound "rashpa_pin.more: a hole before it"
injected "padding at the end" \
	'/^struct rashpa_pin \{/,/^\}/s/^\t__u32 out_segments;//' unsound "rashpa_pin: padding"
injected "a type that is not the same everywhere" \
	'/^struct rashpa_pin \{/,/^\}/s/^\t__s32 out_fd;/\tint out_fd;/' \
	unsound "rashpa_pin.out_fd: the type int"
injected "a pointer" \
	'/^struct rashpa_pin \{/,/^\}/s/^\t__aligned_u64 address;/\tvoid *address;/' \
	unsound "rashpa_pin.*: the type void"

# Pedantic where the language has what the kernel's headers use everywhere: an array
# without a length at the end of a struct (C99), a comma after the last enumerator (C99).
echo '#include <linux/rashpa.h>' >"$work/alone.c"
cp "$work/alone.c" "$work/alone.cc"
while read -r compiler; do
	$compiler -Iuapi -Wall -Wextra -Werror -fsyntax-only \
		"$work/alone.$([[ $compiler == *++* ]] && echo cc || echo c)" >"$work/out" 2>&1
	silent "the header compiles alone: $compiler" "$work/out"
done <<END
gcc -std=c90
gcc -std=c11 -pedantic
g++ -std=c++17
clang -std=c90
clang -std=c11 -pedantic
clang++ -std=c++17 -pedantic -Wno-c99-extensions
i686-linux-gnu-gcc -std=c11 -pedantic
aarch64-linux-gnu-gcc -std=c11 -pedantic
END

aarch64-linux-gnu-gcc -O2 -Iuapi -c tools/lib/doorbell.c -o "$work/doorbell.o"
aarch64-linux-gnu-objdump -d "$work/doorbell.o" |
	awk '$3 == "dmb" { barrier = $4 } $3 == "str" && barrier == "osh" { good = 1 }
		END { if (!good) print "a store behind dmb " barrier }' >"$work/out" 2>&1
silent "arm64: a doorbell is rung behind a barrier that holds for functions" "$work/out"
echo "1..$n"
exit "$bad"
