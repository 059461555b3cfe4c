# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced: rules for changes of a published header.

# shellcheck disable=SC2034 # for scripts that source this
# the header that is promised for ever, in a folder named as its version
FIRST=$(echo selftests/abi/*/linux/rashpa.h)
# the facts that later headers have added
ADDED=selftests/abi/rashpa.abi
# the facts of the public libraries
LIBRARIES=selftests/abi/libraries.abi

# added FIRST-FACTS FACTS: those that FIRST-FACTS does not have
added() { grep -vxFf "$1" "$2"; }

# broken OLD NEW: the facts of OLD that NEW removed or changed. Structs may grow. Limits may become
# more generous: _MAX greater, _MIN less. Reserved fields may be used.
broken() {
	awk 'NR == FNR {
		if ($1 == "size") size[$2] = $3
		else if ($1 == "value") value[$2] = $3
		have[$0]
		next
	}
	$0 in have { next }
	$1 == "size" && size[$2] + 0 >= $3 + 0 { next }
	$1 == "field" && $2 ~ /\.__reserved$/ { next }
	$1 == "value" && $2 ~ /_MAX$/ && $2 in value && value[$2] + 0 > $3 + 0 { next }
	$1 == "value" && $2 ~ /_MIN$/ && $2 in value && value[$2] + 0 < $3 + 0 { next }
	1' "$2" "$1"
}

# unsound FACTS: implicit padding, and types whose width or meaning is not the same
# everywhere. The fields of a struct follow each other without a hole, and fill it.
unsound() {
	awk '
	$1 == "size" {
		if (end[$2] != $3)
			print $2 ": padding after the last field"
		next
	}
	$1 == "field" {
		split($2, part, ".")
		if ($3 != end[part[1]] + 0)
			print $2 ": a hole before it"
		end[part[1]] = $3 + $4
		if ($5 !~ /^(__u8|__u16|__u32|__u64|__s32|__s64|char|rashpa_[a-z_]+)$/)
			print $2 ": the type " $5
	}' "$1"
}
