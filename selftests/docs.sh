#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs inside the lab's root: kernel-doc has no complaint about any comment, and the
# reference that is made of the header is complete. TAP.
set -uo pipefail

cd "$(dirname "$0")/.." || exit 1
kernel_doc=$(ls /usr/lib/linux-kbuild-6.12*/scripts/kernel-doc | tail -n 1)
n=0 bad=0

verdict() { # STATUS NAME
	n=$((n + 1))
	if (($1)); then
		bad=1
		echo "not ok $n - $2"
	else
		echo "ok $n - $2"
	fi
}

for file in uapi/linux/rashpa.h drivers/*.[ch] tools/lib/rashpa.h; do
	said=$(perl "$kernel_doc" -none -Wall "$file" 2>&1)
	clean=$?
	[[ $said ]] && { sed 's/^/# /' <<<"$said"; clean=1; }
	verdict "$clean" "kernel-doc is content with $file"
done

Documentation/build.sh >/dev/null
verdict $? "the reference can be made"
reference=build/docs/uapi-reference.rst
while read -r name; do
	grep -qE "^\.\. c:[a-z]+:: .*\b$name\b" "$reference" || echo "$name"
done < <(sed -nE 's/^(struct|enum) (rashpa_[a-z_]+) \{$/\2/p
	s/^#define (RASHPA_[A-Z0-9_]+)\t+_BITUL.*/\1/p' uapi/linux/rashpa.h) >/tmp/missing
sed 's/^/# missing: /' /tmp/missing
[[ ! -s /tmp/missing ]]
verdict $? "it has every struct, enum and flag of the header"
echo "1..$n"
exit "$bad"
