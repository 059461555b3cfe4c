#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=90
# Three consumers that are waited for, workers and observers of one stream of a board: each gets each frame,
# although all of them are killed again and again.
. "$(dirname "$0")/../lib/shell.sh"

[[ ${RASHPA_TIER-} != nightly ]] || export RASHPA_LONG=1
have_fpga || { skip "places: places" "no software FPGA in this guest"; finish; }
export PYTHONPATH=$PWD/build/tools/python PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
export RASHPA_LIBRARY=$PWD/${RASHPA_TOOLS:-build/tools}/librashpa.so.0
python3 -c "import numpy, rashpa" 2>/dev/null || { skip "places: places" "no Python package here"; finish; }
rashpactl buffer create places 4M >/dev/null
ok $? "buffer: a buffer"
mkdir "$work/images"
good "killed: all frames in all places" timeout 300 python3 -B selftests/tools/places.py "$fpga" "$work/images"
sed 's/^/# /' "$work/log"
rashpactl buffer remove places
ok $? "buffer-free: no process holds the buffer"
finish
