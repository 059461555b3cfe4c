#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The software FPGA without what the second implementation does not have: verdicts.
# RASHPA_BUILD: the build folder.
exec "${RASHPA_BUILD:-build}/tools/rashpa-fpga" --without verdict "$@"
