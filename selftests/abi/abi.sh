#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check seconds=6
# Runs inside the lab's root: headers and libraries keep their promises. Layouts and numbers of the driver's header are
# those of the first header and abi/rashpa.abi, on every machine and with every compiler. It compiles alone.
# Functions, layouts and numbers of the libraries are those of abi/libraries.abi ("make abi" adds new ones).
# The library orders a doorbell after writes to memory, also on arm64. TAP.
# shellcheck source-path=SCRIPTDIR source=../lib/shell.sh
. "$(dirname "$0")/../lib/shell.sh"
# shellcheck source-path=SCRIPTDIR source=rules.sh
. selftests/abi/rules.sh
header=uapi/linux/rashpa.h

# A test passes if FILE is empty.
silent() { # NAME FILE
	[[ ! -s $2 ]]
	ok $? "$1" || sed 's/^/# /' "$2"
}

facts() { selftests/abi/facts.sh "$@"; }

facts "$FIRST" >"$work/first" 2>"$work/out" || echo "the first header does not compile" >>"$work/out"
cat "$work/first" "$ADDED" >"$work/promised"
[[ ! -s $work/first ]] || broken "$work/promised" <(facts "$header") >"$work/out"
silent "first: all that $FIRST promised is still true" "$work/out"

for compiler in gcc i686-linux-gnu-gcc aarch64-linux-gnu-gcc clang \
	"clang -m32 -isystem /usr/i686-linux-gnu/include"; do
	command -v "${compiler%% *}" >/dev/null || { skip "layouts: $compiler" "it is not in this root"; continue; }
	# shellcheck disable=SC2086 # a compiler and its options
	if facts "$header" $compiler >"$work/now" 2>"$work/out"; then
		{
			broken "$work/promised" "$work/now"
			added "$work/first" "$work/now" | diff -U0 "$ADDED" -
		} | head -n 40 >"$work/out"
	else
		echo "does not compile" >>"$work/out"
	fi
	silent "layouts: $compiler: layouts and numbers match $FIRST and $ADDED" "$work/out"
done

unsound <(facts "$header") >"$work/out"
silent "padding: no struct has implicit padding, all types have a fixed width" "$work/out"

# Checks must notice a changed header: NAME SED-EXPRESSION FILTER WORD: word of the report
injected() {
	sed -E "$2" "$header" >"$work/rashpa.h"
	if ! cmp -s "$header" "$work/rashpa.h" && facts "$work/rashpa.h" >"$work/now" 2>"$work/out"; then
		"$3" "$work/now" >"$work/out"
	fi
	grep -q -- "$4" "$work/out"
	ok $? "$1" || sed 's/^/# /' "$work/out"
}
broken_now() { broken "$work/promised" "$1"; }

injected "noticed/moved: a moved field is noticed" \
	'/^struct rashpa_alloc \{/,/^\}/s/^\t__u32 node;/\t__u32 more;\n\t__u32 more2;\n&/' \
	broken_now "field rashpa_alloc.node 40 4 __u32"
injected "noticed/name: another name of a field is noticed" 's/^\t__u32 depth;/\t__u32 deep;/' \
	broken_now "field rashpa_channel_make.depth"
injected "noticed/type: another type is noticed" 's/^\t__s32 out_node;/\t__u32 out_node;/' \
	broken_now "field rashpa_info.out_node 48 4 __s32"
injected "noticed/number: another number of an ioctl is noticed" 's/(_IOC_PIN\t+.*)0x0/\10x7/' \
	broken_now "value RASHPA_IOC_PIN"
injected "noticed/value: another value of an enum is noticed" 's/(RASHPA_KIND_PINNED =) 4/\1 6/' \
	broken_now "value RASHPA_KIND_PINNED 4"
injected "noticed/shrank: a smaller struct is noticed" \
	'/^struct rashpa_quiesce \{/,/^\}/s/^\t__aligned_u64 .*//' \
	broken_now "size rashpa_quiesce"
injected "noticed/narrower: a narrower limit is noticed" 's/(RASHPA_MEMBERS_MAX\t)1024/\1512/' \
	broken_now "value RASHPA_MEMBERS_MAX"
injected "noticed/hole: a hole is noticed" '/^struct rashpa_pin \{/,/^\}/s/^\t__s32 out_fd;/&\n\t__aligned_u64 more;/' \
	unsound "rashpa_pin.more: a hole before it"
injected "noticed/padding: padding at the end is noticed" \
	'/^struct rashpa_pin \{/,/^\}/s/^\t__u32 out_segments;//' unsound "rashpa_pin: padding"
injected "noticed/type-everywhere: a type that depends on the machine is noticed" \
	'/^struct rashpa_pin \{/,/^\}/s/^\t__s32 out_fd;/\tint out_fd;/' \
	unsound "rashpa_pin.out_fd: the type int"
injected "noticed/pointer: a pointer is noticed" \
	'/^struct rashpa_pin \{/,/^\}/s/^\t__aligned_u64 address;/\tvoid *address;/' \
	unsound "rashpa_pin.*: the type void"

# --- the libraries
tools=build/tools version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
for library in librashpa librashpa-processing; do
	is "soname/$library: the SONAME of $library has the major version" \
		"$(objdump -p "$tools/$library.so" | awk '$1 == "SONAME" { print $2 }')" "$library.so.${version%%.*}"
done
while read -r node; do
	printf '%s\n' "${node##*_}" "${version%.*}" | sort -VC
	ok $? "symbols/$node: the version of symbols is not later than that of the libraries"
done < <(sed -nE 's/^function .*@@([^ ]*) .*/\1/p' "$LIBRARIES" | sort -u)
facts --libraries "$tools" >"$work/libraries" 2>"$work/out" || echo "facts of the libraries are missing" >>"$work/out"
broken "$LIBRARIES" "$work/libraries" >>"$work/out"
silent "libraries: they have all functions, layouts and numbers of $LIBRARIES" "$work/out"
diff -U0 "$LIBRARIES" "$work/libraries" >"$work/out"
silent "recorded: $LIBRARIES has all of them" "$work/out"

# Checks must notice a changed library: the record is changed instead. NAME SED-EXPRESSION WORD: word of the report
library_injected() {
	sed -E "$2" "$work/libraries" >"$work/old"
	cmp -s "$work/old" "$work/libraries" || broken "$work/old" "$work/libraries" >"$work/out"
	grep -q -- "$3" "$work/out"
	ok $? "$1" || sed 's/^/# /' "$work/out"
}
library_injected "noticed/removed: a function that is gone is noticed" 's/^function rashpa_reason@/function rashpa_why@/' rashpa_why@
library_injected "noticed/parameter: another type of a parameter is noticed" '/ rashpa_sync_begin@/s/\(int,/(long,/' rashpa_sync_begin@
library_injected "noticed/version: another version of a symbol is noticed" 's/^(function rashpa_open@@RASHPA_)[^ ]*/\10.1/' rashpa_open@
library_injected "noticed/struct: a changed struct of a library is noticed" 's/^(field rashpa_image.missing_lines [0-9]+ )4/\18/' \
	rashpa_image.missing_lines
sed '/^function rashpa_reason@/d; /^field rashpa_image.wrong /d; s/^size rashpa_image .*/size rashpa_image 44/' \
	"$work/libraries" >"$work/old"
! cmp -s "$work/old" "$work/libraries" && broken "$work/old" "$work/libraries" >"$work/out"
silent "added: a new function and a field at the end of a struct pass" "$work/out"

# Pedantic only for languages with the features that the kernel's headers use everywhere: an
# array without a length at the end of a struct (C99), a comma after the last enumerator (C99).
echo '#include <linux/rashpa.h>' >"$work/alone.c"
cp "$work/alone.c" "$work/alone.cc"
while read -r compiler; do
	command -v "${compiler%% *}" >/dev/null || { skip "alone: $compiler" "it is not in this root"; continue; }
	$compiler -Iuapi -Wall -Wextra -Werror -fsyntax-only \
		"$work/alone.$([[ $compiler == *++* ]] && echo cc || echo c)" >"$work/out" 2>&1
	silent "alone: the header compiles alone: $compiler" "$work/out"
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

command -v aarch64-linux-gnu-gcc >/dev/null || { skip "arm64-doorbell: arm64" "its compiler is not in this root"; finish; }
aarch64-linux-gnu-gcc -O2 -Iuapi -Itools -Itools/lib -c tools/lib/doorbell.c -o "$work/doorbell.o"
aarch64-linux-gnu-objdump -d "$work/doorbell.o" |
	awk '$3 == "dmb" { barrier = $4 } $3 == "str" && barrier == "osh" { good = 1 }
		END { if (!good) print "a store behind dmb " barrier }' >"$work/out" 2>&1
silent "arm64-doorbell: a doorbell is rung after a barrier that holds for functions" "$work/out"
finish
