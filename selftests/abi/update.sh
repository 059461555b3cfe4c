#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs inside the lab's root (make abi): write down what uapi/linux/rashpa.h promises now.
# Refuses where a promise would be broken: structs and lists may only grow at the end. Until
# a version is released, "update.sh --broken" takes back what nobody has used yet.
set -euo pipefail

cd "$(dirname "$0")/../.."
# shellcheck source-path=SCRIPTDIR source=rules.sh
. selftests/abi/rules.sh
new=$(mktemp)
trap 'rm -f "$new"' EXIT
selftests/abi/facts.sh uapi/linux/rashpa.h >"$new"
lost=$(broken "$GOLDEN" "$new")
if [[ $lost && ${1-} != --broken ]]; then
	echo "abi: programs rely on these, and they are gone or not the same:" >&2
	echo "$lost" >&2
	exit 1
fi
diff -u "$GOLDEN" "$new" || true
cat "$new" >"$GOLDEN"
