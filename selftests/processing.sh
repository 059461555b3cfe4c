#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the lab's root: processing beside others' programs. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=lib/shell.sh
. "$(dirname "$0")/lib/shell.sh"
tools=$PWD/${RASHPA_TOOLS:-build/tools}
export PYTHONPATH=$PWD/tools/python PYTHONDONTWRITEBYTECODE=1
export RASHPA_LIBRARY=$tools/librashpa.so.0 RASHPA_PROCESSING_LIBRARY=$tools/librashpa-processing.so.0
export MPLCONFIGDIR=$work XDG_CACHE_HOME=$work POCL_CACHE_DIR=$work OPENBLAS_NUM_THREADS=1

# check SCRIPT ARGUMENT...: lines "ok NAME", "not ok NAME", "skip NAME: REASON", and "end"
check() {
	local line last=
	while IFS= read -r line; do
		case $line in
		"ok "*) ok 0 "${line#ok }" ;;
		"not ok "*) ok 1 "${line#not ok }" ;;
		"skip "*) line=${line#skip }; skip "${line%: *}" "${line##*: }" ;;
		*) echo "# ${line#\# }" ;;
		esac
		last=$line
	done < <(python3 "$@" 2>&1)
	is "all of $(basename "$1") was checked" "$last" end
}

check selftests/python/pipeline.py
check selftests/python/dataset.py
check selftests/python/integrate.py
check selftests/python/peaks.py
check selftests/python/nexus.py
check selftests/python/publish.py
RASHPA_LIBRARY=$tools/librashpa-fake.so check selftests/python/opencl.py
finish
