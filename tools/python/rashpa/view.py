# SPDX-License-Identifier: LGPL-2.1-or-later
"""python3 -m rashpa.view [BUFFER]: open the page of rashpa-web in a browser."""
import sys

from .web.server import main

if __name__ == "__main__":
    sys.exit(main(["--browser", "--listen", "127.0.0.1:0", *sys.argv[1:]]))
