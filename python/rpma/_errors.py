# SPDX-License-Identifier: BSD-3-Clause
"""The results of librpmafile as exceptions."""

from __future__ import annotations

from typing import ClassVar, Dict, Type

from _rpma.errors import ResultError, error_of

from ._library import lib


class Error(ResultError):
    """A call has failed: `code` is its result in C, and the text has the reason and advice."""

    _by_code: ClassVar[Dict[int, Type[ResultError]]] = {}


class UnknownError(Error, code=-100000):
    """No reason was reported."""


class NotSupportedError(Error, code=-100001):
    """This end or the server does not support the call, or the server cannot persist the region."""


class ProviderError(Error, code=-100002):
    """This machine's device, file or system failed."""


class NoMemoryError(Error, MemoryError, code=-100003):
    """Out of memory."""


class InvalidError(Error, ValueError, code=-100004):
    """An argument is wrong."""


class AgainError(Error, TimeoutError, code=-100007):
    """The call has not ended within the time limit: wait again."""


class UnreachedError(Error, ConnectionError, code=-300001):
    """No server answers at the address."""


class RefusedError(Error, code=-300002):
    """The server refuses the client because of the region, the secret, another writer or a limit."""


class LostError(Error, ConnectionError, code=-300003):
    """The connection has ended: File.undecided() returns the ranges that may be lost, File.reopen() connects again."""


class MediumError(Error, code=-300004):
    """The server could not write back bytes that were written; they may be lost."""


class GoneError(Error, code=-300005):
    """The region's file was removed, replaced or truncated."""


class DiffersError(Error, code=-300006):
    """The server's medium has other bytes."""


class TakenError(Error, code=-300007):
    """Another writer has claimed the range while the connection was lost: open the file again and read it first."""


def check(code: int) -> None:
    """Raise the exception for a call that has just failed in this thread."""
    if code:
        text = b"" if code == AgainError.code else lib.rpma_file_errormsg()
        raise error_of(Error, code, (text or lib.rpma_file_err_2str(code)).decode(errors="replace"))
