# SPDX-License-Identifier: LGPL-2.1-or-later
"""Descriptors, and who closes them."""
import os

from ._errors import check


class Opened:
    """Descriptors that are closed at the end of a block."""

    def __init__(self):
        self.fds = []

    def add(self, fd):
        self.fds.append(check(fd))
        return fd

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for fd in self.fds:
            os.close(fd)


class Owner:
    """The owner of a descriptor."""

    _fd = None

    def fileno(self):
        """The descriptor, for select() and poll()."""
        if self._fd is None:
            raise ValueError(f"the {type(self).__name__.lower()} was closed")
        return self._fd

    def close(self):
        """Close it."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()
