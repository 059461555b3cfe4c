#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=60
# Runs inside the lab's root: the documentation's site in a browser. TAP.
exec python3 -B "$(dirname "$0")/site.py"
