#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The software FPGA without verdicts, which the second implementation lacks.
# RASHPA_BUILD: the build folder.
exec "${RASHPA_BUILD:-build}/tools/rashpa-fpga" --without verdict "$@"
