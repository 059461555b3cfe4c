# SPDX-License-Identifier: LGPL-2.1-or-later
"""rashpa-web: the machine and its streams as a page for browsers."""
