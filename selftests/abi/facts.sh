#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the lab's root: prints the facts of the driver's header, or of the public libraries in FOLDER and
# their headers, that compiled programs rely on, one a line.
# facts.sh HEADER [COMPILER [OPTION...]], facts.sh --libraries FOLDER
#
#	size STRUCT BYTES
#	field STRUCT.FIELD OFFSET BYTES TYPE
#	value NAME NUMBER			constants, flags, ioctl numbers, enums
#	function NAME@@VERSION TYPE (TYPE...)	of a library
#
# Layouts come from debug information, values from the compiler. It runs nothing, so it can also
# print the facts of another machine.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [[ $1 == --libraries ]]; then
	folder=$2
	headers=(tools/lib/rashpa*.h tools/processing/rashpa-processing.h)
	printf '#include <%s>\n' "${headers[@]##*/}" >"$work/all.c"
	set -- gcc -Iuapi -Itools/lib -Itools/processing
else
	headers=("$(readlink -f "$1")")
	shift
	(($#)) || set -- gcc
	# HEADER becomes <linux/rashpa.h>, whatever its name
	mkdir "$work/linux"
	cp "${headers[0]}" "$work/linux/rashpa.h"
	echo '#include <linux/rashpa.h>' >"$work/all.c"
fi
cp "$work/all.c" "$work/values.c"

# -g keeps only used types: use every struct
sed -nE 's/^struct (r[a-z]+_[a-z_0-9]+) \{$/struct \1 *use_\1;/p' "${headers[@]}" >>"$work/all.c"
"$@" -I"$work" -g -c -o "$work/all.o" "$work/all.c"
pahole "$work/all.o" >"$work/layout"
awk '
/^struct / { name = $2; next }
/^\t\/\* size: / { size = $3; sub(",", "", size); print "size", name, size; next }
/\/\* +[0-9]+ +[0-9]+ \*\/$/ {
	bytes = $(NF - 1); offset = $(NF - 2)
	declaration = $0
	sub(/;.*/, "", declaration)
	sub(/ *__attribute__.*/, "", declaration)
	field = declaration
	sub(/.*[ \t]/, "", field)
	type = declaration
	sub(/[ \t]+[^ \t]+$/, "", type)
	sub(/^[ \t]+/, "", type)
	sub(/\[.*/, "", field)
	print "field", name "." field, offset, bytes, type
}' "$work/layout" | sed 's/ struct rashpa_/ rashpa_/g'

# numbers: an assembler line each, as in the kernel's asm-offsets.h; in parts of 31 bits, since an
# operand has 32 with a sign
{
	echo '#define PART(x, n) "i" ((int)((unsigned long long)(x) >> (n) & 0x7fffffff))'
	echo 'void facts(void); void facts(void) {'
	sed -nE 's/^(#define|\t)[ \t]*(RASHPA_[A-Z0-9_]+)([ \t]+[^ \t"]| =|,).*/\2/p' "${headers[@]}" | sort -u | sed -E 's/.*/__asm__ volatile("\\n.ascii \\"->& %c0 %c1 %c2\\"" : : PART(&, 62), PART(&, 31), PART(&, 0));/'
	echo '}'
} >>"$work/values.c"
"$@" -I"$work" -S -o "$work/values.s" "$work/values.c"
sed -nE 's/.*"->(.*)"/\1/p' "$work/values.s" |
	while read -r name high middle low; do
		printf 'value %s %u\n' "$name" $((high << 62 | middle << 31 | low))
	done

[[ ${folder-} ]] || exit 0
for library in librashpa librashpa-processing; do
	nm -D --defined-only "$folder/$library.so.0" | awk '$2 == "T" { print $3 }' >"$work/symbols"
	pfunct --prototypes --no_parm_names "$folder/$library.so.0" | awk '
		NR == FNR { split($0, part, "@"); symbol[part[1]] = $0; next }
		match($0, /rashpa_[a-z0-9_]+\(/) {
			name = substr($0, RSTART, RLENGTH - 1)
			if (name in symbol && !/^inline/)
				print "function", symbol[name], substr($0, 1, RSTART - 1) substr($0, RSTART + RLENGTH - 1, length() - RSTART - RLENGTH + 1)
			}' "$work/symbols" - | sort -u
done
