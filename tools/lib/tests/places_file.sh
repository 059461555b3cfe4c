#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: where=root seconds=60
# As selftests/tools/places.sh, of a stream in a file: each consumer is killed 20 times, workers 60 times. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
tools=$PWD/${RASHPA_TOOLS:-build/tools}
export PATH=$tools:$PATH PYTHONPATH=$tools/python RASHPA_LIBRARY=$tools/librashpa.so.0 OPENBLAS_NUM_THREADS=1
shm=$(mktemp -d /dev/shm/rashpa-places-XXXXXX)
python3 -B selftests/tools/places.py "" "$shm"
ok $? "file: all consumers of a stream in a file have done what they should"
rm -r "$shm"
finish
