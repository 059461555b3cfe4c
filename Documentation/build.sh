#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the lab's root: the reference of all ioctls from the comments of the header,
# by the kernel's kernel-doc, as build/docs/uapi-reference.rst (for Sphinx's C domain).
set -euo pipefail

cd "$(dirname "$0")/.."
header=uapi/linux/rashpa.h
out=build/docs
kernel_doc=$(ls /usr/lib/linux-kbuild-6.12*/scripts/kernel-doc | tail -n 1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One part for each section of the header: its name is the first line. kernel-doc sees
# a comment of one line only as that of a struct's member: flags get three.
awk -v work="$work" '
	BEGIN { part = sprintf("%s/%02d", work, 0); print "Rules" >part }
	/^\/\* -+ .* -+ \*\/$/ {
		close(part)
		part = sprintf("%s/%02d", work, ++n)
		gsub(/^\/\* -+ | -+ \*\/$/, "")
		print toupper(substr($0, 1, 1)) substr($0, 2) >part
		next
	}
	{ print >part }' "$header"
sed -Ei 's,^/\*\* (RASHPA_[A-Z0-9_]+ - .*) \*/$,/**\n * \1\n */,' "$work"/[0-9]*

mkdir -p "$out"
{
	printf '.. Made of %s by Documentation/build.sh.\n\n' "$header"
	printf '================\nioctl reference\n================\n\n'
	for part in "$work"/[0-9]*; do
		title=$(head -n 1 "$part")
		grep -q '^/\*\*' "$part" || continue
		printf '%s\n%s\n\n' "$title" "${title//?/=}"
		# the first line is not C: hide it
		sed '1s,.*,,' "$part" >"$part.h"
		perl "$kernel_doc" -rst -sphinx-version 3.0.0 "$part.h"
	done
	printf 'Numbers\n=======\n\n::\n\n'
	sed -n '/^\/\* -* numbers -/,/^#endif/{/numbers -\|^#endif/d;s/^/  /;p}' "$header"
} >"$out/uapi-reference.rst"
echo "docs: $out/uapi-reference.rst ($(grep -c '^\.\. c:' "$out/uapi-reference.rst") entries)"
