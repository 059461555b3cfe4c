#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""python3 -m rashpa.web: rashpa-web."""
import sys

from rashpa.web.server import main

sys.exit(main())
