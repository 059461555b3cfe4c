# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by the tests in selftests/tools and by others: TAP and common helpers.
# The former run in the guest, with the module loaded and the tools in PATH.

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
n=0 bad=0 told_at=$SECONDS
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
exec {silence}<> <(:)	# never readable

declare -A times=()	# how often an id was used

# entitle "ID: SENTENCE": sets title; a repeated id gets a number
entitle() {
	local id=${1%%: *}
	times[$id]=$((${times[$id]-0} + 1))
	((times[$id] == 1)) || id+=.${times[$id]}
	title="$id${1#"${1%%: *}"}"
}

# One test; returns its status: ok ... || say more
ok() { # CONDITION-STATUS "ID: SENTENCE"
	local title
	# list slow tests, as tap.c does
	((SECONDS - told_at < 5)) || echo "# $((SECONDS - told_at)) s: $2"
	told_at=$SECONDS
	entitle "$2"
	n=$((n + 1))
	if (($1)); then
		echo "not ok $n - $title"
		bad=1
	else
		echo "ok $n - $title"
	fi
	return "$1"
}

# is NAME ACTUAL EXPECTED
is() {
	local same=1
	[[ $2 == "$3" ]] && same=0
	((same)) && echo "# $1: got \"$2\", expected \"$3\""
	ok "$same" "$1"
}

# holds NAME EXPRESSION: bash arithmetic
holds() {
	local bad_=1
	(($2)) && bad_=0
	((bad_)) && echo "# $1: not $2"
	ok "$bad_" "$1"
}

# good NAME COMMAND...: tests its status, and prints its output if it fails
good() {
	local name=$1 status=0
	shift
	"$@" >"$work/log" 2>&1 || status=1
	((status == 0)) || { grep '^not ok' "$work/log"; grep -v '^ok \|^1\.\.' "$work/log" | tail -n 60; } | sed 's/^/# /'
	ok "$status" "$name"
}

# json FILTER COMMAND...: is FILTER true of its JSON?
json() {
	local filter=$1
	shift
	"$@" >"$work/json" && jq -e "$filter" "$work/json" >/dev/null && return
	sed 's/^/#   /' "$work/json"
	return 1
}

skip() { # "ID: SENTENCE" REASON
	local title
	entitle "$1"
	n=$((n + 1))
	echo "ok $n - $title # SKIP $2"
}

bound_functions() { (cd /sys/bus/pci/drivers/rashpa 2>/dev/null && compgen -G "0000:*"); }
bound_before=$(bound_functions)

# restores which functions are bound, for the next test
finish() {
	bound_functions | grep -vxF "$bound_before" | xargs -rn1 rashpactl unbind >/dev/null
	grep -vxF "$(bound_functions)" <<<"$bound_before" | xargs -rn1 rashpactl bind >/dev/null
	echo "1..$n"
	exit "$bad"
}

# have_fpga [NUMBER]: binds the first software FPGA on the bus (number 0 of the lab), or another
# one, with its profile. Sets fpga (N of fpgaN), which may differ from 0: other tests bind and
# unbind.
have_fpga() {
	local node
	bdf=$(lspci -D -d 1234:5250 | sed -n "${1:-1}p" | cut -d' ' -f1)
	[[ $bdf ]] || return 1
	rashpactl unbind "$bdf" >/dev/null 2>&1 # bound by a test, maybe without a profile
	node=$(rashpactl --json bind "$bdf" | jq -r .node)
	fpga=${node#fpga}
	# an unbound FPGA would skip its tests
	[[ $fpga ]] || { ok 1 "have-fpga: the software FPGA at $bdf is bound"; finish; }
}

# status FILTER: the FPGA's registers and counters
status() { rashpactl --json fpga status "fpga$fpga" | jq -r "$1"; }

# gone PROCESS: it has ended. kill -0 does not show that: the shell can miss the end of a child
# during "read -t", and the process exists until the shell waits for it.
gone() { [[ ! -e /proc/$1/exe ]]; }

# wait_for SECONDS COMMAND...: wait until it succeeds; for conditions without a file descriptor.
# Slow machines wait longer (RASHPA_SLOW, as in tap.c)
wait_for() {
	local end=$((SECONDS + $1 * ${RASHPA_SLOW:-1}))
	shift
	until "$@"; do
		((SECONDS < end)) || { echo "# waited in vain: $*"; return 1; }
		# polling without a pause would take the processor from the other process
		read -rt 0.01 -u "$silence" || :
	done
}
