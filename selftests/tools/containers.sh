#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=off seconds=15
# Buffers and boards as devices of containers: the file that rashpactl cdi writes, and its edits.
. "$(dirname "$0")/../lib/shell.sh"

rashpactl buffer create ring0 4M >/dev/null
rashpactl buffer create odd_ 64K >/dev/null
rashpactl cdi >"$work/cdi" 2>"$work/err"
ok $? "writes: it writes a file"
is "left-out: a name that no device may have is left out, and named" \
	"$(grep -c odd_ "$work/err") $(jq '.devices | map(select(.name == "odd_")) | length' "$work/cdi")" "1 0"
rashpactl buffer remove odd_

# as schema.json and defs.json of the interface
is "schema: it has all that the interface requires, and no other key" "$(jq -c '
	def edits: keys == ["deviceNodes", "mounts"] and
		(.deviceNodes | length > 0 and all(keys == ["path"] and (.path | startswith("/")))) and
		(.mounts | length > 0 and all(keys == ["containerPath", "hostPath", "options"] and all(.options[]; type == "string")));
	[keys == ["cdiVersion", "containerEdits", "devices", "kind"], (.cdiVersion | test("^[0-9]+[.][0-9]+[.][0-9]+$")),
	 (.kind | test("^[a-z][a-z0-9.-]*/[A-Za-z][A-Za-z0-9_-]*$")), (.containerEdits | edits),
	 (.devices | length > 0 and all(keys == ["containerEdits", "name"] and (.name | test("^[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?$")) and
		(.containerEdits | edits))), (.devices | map(.name) | unique | length) == (.devices | length)]' "$work/cdi")" \
	"[true,true,true,true,true,true]"
is "names: it has all buffers and boards" "$(jq -r '.devices[].name' "$work/cdi" | sort | xargs)" \
	"$({ rashpactl --json buffer list | jq -r '.[].name'; rashpactl --json list | jq -r '.devices[].node'; } | sort | xargs)"
missing=0
while read -r node; do
	[[ -c $node ]] || { echo "# $node"; missing=$((missing + 1)); }
done < <(jq -r '.. | objects | .path // .hostPath // empty' "$work/cdi")
is "nodes: each node is there" "$missing" 0

# contained DEVICE KINDS COMMAND...: in a folder with the edits of this device, as runtimes make them: mounts, then missing nodes
contained() {
	# shellcheck disable=SC2016 # the inner shell's
	unshare -m bash -c 'root=$1 device=$2 kinds=$3; shift 3
		set -e
		mount -t tmpfs none "$root"
		edits=$(jq -c --arg device "$device" ".containerEdits, (.devices[] | select(.name == \$device).containerEdits)" "$root.cdi")
		for path in $(jq -r "$kinds" <<<"$edits"); do
			mkdir -p "$root$(dirname "$path")"
			touch "$root$path"
			mount --bind "$path" "$root$path"
		done
		for path in $(jq -r ".deviceNodes[].path" <<<"$edits"); do
			mkdir -p "$root$(dirname "$path")"
			[[ -e $root$path ]] || mknod "$root$path" c $(stat -c "0x%t 0x%T" "$path")
		done
		RASHPA_DEV=$root/dev/rashpa exec "$@"' - "$work/root" "$@"
}
mkdir "$work/root"
cp "$work/cdi" "$work/root.cdi"
# the producer outside makes the table of places
good "outside: a producer outside streams" build/tools/examples/producer ring0 8
contained ring0 empty build/tools/examples/consumer ring0 >/dev/null 2>"$work/err"
is "other-node: with another node, a consumer inside is refused" "$? $(grep -c 'another node' "$work/err")" "1 1" ||
	sed 's/^/# /' "$work/err"
contained ring0 '.mounts[].hostPath' build/tools/examples/consumer ring0 >"$work/means" 2>"$work/err" &
inside=$!
good "outside-again: and does again, for a consumer inside" build/tools/examples/producer ring0 400
wait "$inside"
ok $? "inside: a consumer inside ends with the stream" || sed 's/^/# /' "$work/err"
seq 0 399 | sed 's/.*/& &.000/' | cmp - "$work/means" 2>&1 | sed 's/^/# /'
is "inside-frames: it had each frame, once" "${PIPESTATUS[2]}" 0
rashpactl buffer remove ring0
finish
