# SPDX-License-Identifier: BSD-3-Clause
"""A call that was begun. Any thread can wait for its end, any number of times."""

from __future__ import annotations

import threading
import time
from typing import Callable, Optional

from .errors import ResultError
from .native import milliseconds

# The longest single wait in ms. A handler of a signal, for instance for Ctrl-C, runs between two
# waits.
_SLICE_MS = 500


class Pending:
    """A subclass defines how the call begins, and how to check whether it has ended."""

    def __init__(self) -> None:
        self._over = False
        self._error: Optional[Exception] = None
        # The thread that begins the call or waits for its end holds the lock; at first the thread
        # that made the object holds it.
        self._busy = threading.Lock()
        self._busy.acquire()

    def _look(self, ms: int) -> bool:
        """Wait for this time at most. Returns True if the call has ended. Raises the exception of a failed call."""
        raise NotImplementedError

    def _ended(self, failed: bool) -> None:
        """Called once, when the call has ended."""

    def _again(self) -> Exception:
        """The exception for a wait that has lasted too long."""
        raise NotImplementedError

    def _begin(self, start: Callable[[], None], *, whole: bool = False) -> None:
        """
        Begin the call. It is called once, by the thread that made the object. whole: start() itself waits for the end
        of the call.
        """
        try:
            start()
            if whole:
                self._end(None)
        except BaseException as error:
            self._end(error if isinstance(error, Exception) else RuntimeError("the call was interrupted"))
            raise
        finally:
            self._busy.release()

    def _end(self, error: Optional[Exception]) -> None:
        self._over, self._error = True, error
        self._ended(error is not None)

    def _wait(self, timeout: Optional[float]) -> None:
        ms = milliseconds(timeout)
        deadline = time.monotonic() + ms / 1000
        if not self._busy.acquire(timeout=-1 if timeout is None else ms / 1000):
            raise self._again()
        try:
            while not self._over:
                left = _SLICE_MS if timeout is None else milliseconds(max(0.0, deadline - time.monotonic()))
                self._step(min(left, _SLICE_MS))
                if not self._over and not left:
                    raise self._again()
        finally:
            self._busy.release()
        if self._error is not None:
            raise self._error

    def _step(self, ms: int) -> None:
        try:
            over = self._look(ms)
        except ResultError as error:
            return self._end(error)
        if over:
            self._end(None)

    def _has_failed(self) -> bool:
        """Wait for the end of the call without a limit. Closing the handle during the wait counts as a failure."""
        try:
            self._wait(None)
        except Exception:
            return True
        return False

    def done(self) -> bool:
        """Would wait() return, or raise the call's exception, without waiting?"""
        if self._busy.acquire(blocking=False):
            try:
                if not self._over:
                    self._step(0)
            finally:
                self._busy.release()
        return self._over
