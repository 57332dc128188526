# SPDX-License-Identifier: BSD-3-Clause
"""A call that was begun, and is waited for later: by any thread, and as often as it likes."""

from __future__ import annotations

import threading
import time
from typing import Callable, Optional

from .errors import ResultError
from .library import milliseconds

# Handlers of signals, and so Ctrl-C, run between two waits of this length.
_SLICE_MS = 500


class Pending:
    """A subclass says how it begins and how one looks whether it has ended."""

    def __init__(self) -> None:
        self._over = False
        self._error: Optional[Exception] = None
        # Held by the thread that begins the call or waits for its end; at first by the one that made the object.
        self._busy = threading.Lock()
        self._busy.acquire()

    def _look(self, ms: int) -> bool:
        """Wait so long at most. True: it has ended. Raises what it failed with."""
        raise NotImplementedError

    def _ended(self, failed: bool) -> None:
        """Called once, when the call has ended."""

    def _again(self) -> Exception:
        """What a wait ends with that has lasted too long."""
        raise NotImplementedError

    def _begin(self, start: Callable[[], None], *, whole: bool = False) -> None:
        """Called once, by the thread that made the object. whole: start() returns when the call has ended."""
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
        """Wait for the end without a limit. A handle that was closed meanwhile counts as a failure."""
        try:
            self._wait(None)
        except Exception:
            return True
        return False

    def done(self) -> bool:
        """Whether wait() returns, or raises what the call failed with, at once."""
        if self._busy.acquire(blocking=False):
            try:
                if not self._over:
                    self._step(0)
            finally:
                self._busy.release()
        return self._over
