#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The work of rashpactl list does not grow with the number of named buffers (a user may have a thousand).
# test: tier=all iommu=any seconds=50
. "$(dirname "$0")/../lib/shell.sh"

names=20
command -v strace >/dev/null || { skip "list: with many names" "no strace here"; finish; }

# system calls of rashpactl list
calls() {
	strace -f -qq -o "$work/trace" rashpactl list >/dev/null 2>&1
	wc -l <"$work/trace"
}

few=$(calls)
for ((i = 0; i < names; i++)); do
	rashpactl buffer create "names-$i" 4K >/dev/null || break
done
is "made: as many buffers as are needed" "$i" "$names"
many=$(calls)
echo "# $few system calls without names, $many with $names"
holds "list: it does not check each buffer for each function" "$many - $few < 10 * $names"
for ((i = 0; i < names; i++)); do
	rashpactl buffer remove "names-$i"
done
finish
