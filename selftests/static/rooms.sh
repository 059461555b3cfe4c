#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check seconds=1
# Runs inside the lab's root, on the objects of the module: a file of the driver uses only names of
# files that stand before it in Kbuild. So there is no circle, and no arrow upwards. TAP.
cd "$(dirname "$0")/../.." || exit 1
folder=${1:-build/modules/newest}
mapfile -t objects <"$folder/rashpa.mod"

# arrows OBJECT...: a line for each name that an object uses and a later one defines
arrows() {
	(cd "$folder" && nm -A -g "$@") | awk -F '[: ]+' -v "order=$*" '
		BEGIN { n = split(order, o, " "); for (i = 1; i <= n; i++) at[o[i]] = i }
		$(NF - 1) == "U" { used[$1, $NF]; next }
		{ home[$NF] = $1 }
		END {
			for (u in used) {
				split(u, p, SUBSEP)
				if (at[home[p[2]]] > at[p[1]])
					print "# " p[1] " uses " p[2] " of " home[p[2]] ", which stands after it in Kbuild"
			}
		}' | sort
}

echo 1..2
up=$(arrows "${objects[@]}")
[[ ! $up && ${#objects[@]} -gt 1 ]] && echo -n "ok 1" || { echo "$up"; echo -n "not ok 1"; }
echo " - down: files of the driver use only what stands before them in Kbuild"
# read backwards, nearly all arrows point up
mapfile -t back < <(printf '%s\n' "${objects[@]}" | tac)
[[ $(arrows "${back[@]}" | wc -l) -gt ${#objects[@]} ]] && echo -n "ok 2" || { up=unseen; echo -n "not ok 2"; }
echo " - seen: arrows are found, if the order is turned round"
[[ ! $up ]]
