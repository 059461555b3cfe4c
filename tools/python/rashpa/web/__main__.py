# SPDX-License-Identifier: LGPL-2.1-or-later
"""python3 -m rashpa.web: the same as rashpa-web."""
import sys

from .server import main

sys.exit(main())
