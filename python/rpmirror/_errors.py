# SPDX-License-Identifier: BSD-3-Clause
"""The results of librpmirror as exceptions."""

from __future__ import annotations

from typing import ClassVar, Dict, Optional, Type

from _rpma.errors import ResultError, error_of

from ._library import lib
from ._results import Result


class Error(ResultError):
    """A call has failed: `code` is its result in C, and the text names the member and has advice."""

    _by_code: ClassVar[Dict[int, Type[ResultError]]] = {}
    # After a failed flush: the members on which the ranges are nevertheless durable.
    result: Optional[Result] = None


class UnknownError(Error, code=-200000):
    """No reason was reported."""


class NotSupportedError(Error, code=-200001):
    """This set or this mapping does not support the call."""


class ProviderError(Error, code=-200002):
    """This host's device, file or system failed."""


class NoMemoryError(Error, MemoryError, code=-200003):
    """Out of memory."""


class InvalidError(Error, ValueError, code=-200004):
    """An argument is wrong."""


class AgainError(Error, TimeoutError, code=-200005):
    """The call has not ended within the time limit: wait again."""


class NoEventError(Error, code=-200006):
    """No event, or no error, is pending."""


class DaemonError(Error, code=-200007):
    """This host's rpmirrord cannot be reached."""


class QuorumError(Error, code=-200010):
    """The register cannot be reached; waiting may help."""


class CopiesError(Error, code=-200011):
    """Fewer copies than min_copies; waiting may help."""


class BusyError(Error, code=-200012):
    """Another process maps the set; waiting may help."""


class FencedError(Error, code=-200013):
    """Another primary exists, or an operator demoted this one: close the mapping."""


class MediumError(Error, code=-200014):
    """The local copy has failed."""


class VerifyError(Error, code=-200015):
    """A copy differs from the flushed bytes; `result` has the members."""


class NotInSyncError(Error, code=-200016):
    """This host's copy lacks acknowledged data. A primary has to make it equal, or an operator has to decide."""


class SplitError(Error, code=-200017):
    """Copies have received different writes independently: an operator has to decide."""


class LeaseError(Error, code=-200018):
    """The lease has expired, so data that the program has read may be stale."""


def last_error(code: int, result: Optional[Result] = None) -> Error:
    """The exception for the call that has just failed in this thread."""
    text = b"" if code in (AgainError.code, NoEventError.code) else lib.rpmirror_errormsg()
    error = error_of(Error, code, (text or lib.rpmirror_err_2str(code)).decode(errors="replace"))
    error.result = result
    return error


def check(code: int) -> None:
    if code:
        raise last_error(code)
