# SPDX-License-Identifier: LGPL-2.1-or-later
"""Errors: an errno, and librashpa's sentence."""
import errno

from ._abi import ffi, lib, shown


class Error(OSError):
    """Something failed: errno says what kind of failure, strerror is a sentence."""


class Timeout(Error, TimeoutError):
    """Nothing came in time."""


class Busy(Error):
    """Somebody else has the role; the sentence names the process."""


class ProducerDied(Error):
    """The producer ended without a word; all that was complete has been taken."""


class Stopped(Error):
    """The producer's function was stopped; all that was complete has been taken."""


class Removed(Error):
    """The producer's function was removed; all that was complete has been taken."""


class Replaced(Error):
    """Another stream began before all of this one was taken."""


class Malformed(Error):
    """What stands in the buffer cannot be true."""


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
    """What a function of the library returned, as an exception; in the thread that called it."""
    sentence = shown(ffi.string(lib.rashpa_reason()))
    return _KINDS.get(-result, Error)(-result, sentence)


def check(result):
    if result < 0:
        raise error(result)
    return result
