#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the lab's root (make abi): record in selftests/abi/rashpa.abi the promises of
# uapi/linux/rashpa.h that the first header does not have, in libraries.abi those of the libraries.
# Refuses to break a promise: structs and lists may only grow at the end. "update.sh --anew VERSION" drops all
# promises, and makes this header the first one; for headers and libraries without users.
set -euo pipefail

cd "$(dirname "$0")/../.."
# shellcheck source-path=SCRIPTDIR source=rules.sh
. selftests/abi/rules.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ ${1-} == --anew ]]; then
	version=${2:?--anew VERSION}
	rm -rf "${FIRST%/linux/rashpa.h}"
	FIRST=selftests/abi/$version/linux/rashpa.h
	mkdir -p "${FIRST%/*}"
	# without comments
	python3 - uapi/linux/rashpa.h >"$FIRST" <<-'END'
		import re, sys
		first, text = open(sys.argv[1]).read().split("\n", 1)
		text = re.sub(r"[ \t]*/\*.*?\*/", "", text, flags=re.S)
		print(first, re.sub(r"\n\s*\n", "\n", text).strip(), sep="\n")
	END
	: >"$ADDED"
	: >"$LIBRARIES"
fi
selftests/abi/facts.sh "$FIRST" >"$work/first"
selftests/abi/facts.sh uapi/linux/rashpa.h >"$work/now"
make -s tools TARGETS="librashpa.so.0 librashpa-processing.so.0" >&2
selftests/abi/facts.sh --libraries build/tools >"$work/libraries"
lost=$(cat "$work/first" "$ADDED" | broken - "$work/now"; broken "$LIBRARIES" "$work/libraries")
if [[ $lost ]]; then
	echo "abi: programs rely on these facts, which were removed or changed:" >&2
	echo "$lost" >&2
	exit 1
fi
added "$work/first" "$work/now" >"$work/added" || : # none
diff -u "$ADDED" "$work/added" || true
cat "$work/added" >"$ADDED"
diff -u "$LIBRARIES" "$work/libraries" || true
cat "$work/libraries" >"$LIBRARIES"
