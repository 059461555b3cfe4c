# SPDX-License-Identifier: LGPL-2.1-or-later
"""Errors: an errno, and librashpa's sentence."""
import errno

from ._abi import ffi, lib, shown


class Error(OSError):
    """Something failed: errno says what kind of failure, strerror is a sentence."""


class Timeout(Error, TimeoutError):
    """The time limit was exceeded."""


class Busy(Error):
    """Another process has the role; the sentence names it."""


class ProducerDied(Error):
    """The producer died; all complete stacks have been taken."""


class Stopped(Error):
    """The producer's function was stopped; all complete stacks have been taken."""


class Removed(Error):
    """The producer's function was removed; all complete stacks have been taken."""


class Replaced(Error):
    """Another stream began before this one was taken completely."""


class Malformed(Error):
    """The content of the buffer is invalid."""


class Released(ValueError):
    """The stack was released, or its stream was closed: its slot may hold another one."""


_KINDS = {
    errno.ETIMEDOUT: Timeout,
    errno.EBUSY: Busy,
    errno.EOWNERDEAD: ProducerDied,
    errno.ECONNABORTED: Stopped,
    errno.ENODEV: Removed,
    errno.ESTALE: Replaced,
    errno.EPROTO: Malformed,
}


def error(result):
    """Exception for a result of the library; call it in the thread of the library call."""
    sentence = shown(ffi.string(lib.rashpa_reason()))
    return _KINDS.get(-result, Error)(-result, sentence)


def check(result):
    if result < 0:
        raise error(result)
    return result
