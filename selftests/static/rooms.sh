#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check seconds=1
# Files of the driver use only names of files that stand before them in Kbuild: there is no circle, and no
# arrow upwards. Runs inside the lab's root, on the objects of the module in MODDIR. TAP.
# shellcheck source-path=SCRIPTDIR source=../lib/shell.sh
. "$(dirname "$0")/../lib/shell.sh"
cd "${MODDIR:-build/modules/newest}" || exit 1
mapfile -t objects <rashpa.mod

# arrows OBJECT...: a line for each name that an object uses and a later one defines
arrows() {
	nm -A -g "$@" | awk -F '[: ]+' -v "order=$*" '
		BEGIN { n = split(order, o, " "); for (i = 1; i <= n; i++) at[o[i]] = i }
		$(NF - 1) == "U" { used[$1, $NF]; next }
		{ home[$NF] = $1 }
		END {
			for (u in used) {
				split(u, p, SUBSEP)
				if (at[home[p[2]]] > at[p[1]])
					print p[1] " uses " p[2] " of " home[p[2]] ", which stands after it in Kbuild"
			}
		}' | sort
}

up=$(arrows "${objects[@]}")
[[ ! $up && ${#objects[@]} -gt 1 ]]
ok $? "down: files of the driver use only what stands before them in Kbuild" || echo "# ${up//$'\n'/$'\n'# }"
# read backwards, nearly all arrows point up
mapfile -t back < <(printf '%s\n' "${objects[@]}" | tac)
[[ $(arrows "${back[@]}" | wc -l) -gt ${#objects[@]} ]]
ok $? "seen: arrows are found if the order is reversed"
finish
