#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=45
# Runs inside the lab's root: processing compared with other programs. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
tools=$PWD/${RASHPA_TOOLS:-build/tools}
export PYTHONPATH=$tools/python PYTHONDONTWRITEBYTECODE=1
export RASHPA_LIBRARY=$tools/librashpa.so.0 RASHPA_PROCESSING_LIBRARY=$tools/librashpa-processing.so.0
export MPLCONFIGDIR=$work XDG_CACHE_HOME=$work POCL_CACHE_DIR=$work OPENBLAS_NUM_THREADS=1

# check SCRIPT ARGUMENT...: lines "ok NAME", "not ok NAME", "skip NAME # REASON", and "end"
check() {
	local line last='' name
	name=$(basename "$1" .py)
	while IFS= read -r line; do
		case $line in
		"ok "*) ok 0 "$name/${line#ok }" ;;
		"not ok "*) ok 1 "$name/${line#not ok }" ;;
		"skip "*) line=${line#skip }; skip "$name/${line%% # *}" "${line##* # }" ;;
		*) echo "# ${line#\# }" ;;
		esac
		last=$line
	done < <(python3 "$@" 2>&1)
	is "$name/end: all was checked" "$last" end
}

check tools/processing/tests/pipeline.py
check tools/processing/tests/dataset.py
check tools/processing/tests/integrate.py
check tools/processing/tests/peaks.py
check tools/processing/tests/nexus.py
check tools/processing/tests/publish.py
RASHPA_LIBRARY=$tools/librashpa-fake.so check tools/processing/tests/opencl.py
finish
