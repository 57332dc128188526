# SPDX-License-Identifier: BSD-3-Clause
"""Calls of C that may last long, and Ctrl-C."""

from __future__ import annotations

import threading
from typing import Callable, Generic, Optional, TypeVar

T = TypeVar("T")


class _Call(Generic[T]):
    """One call, in a separate thread."""

    def __init__(self, call: Callable[[], T], give_back: Callable[[T], None]) -> None:
        self._call, self._give_back = call, give_back
        self._lock, self._over = threading.Lock(), threading.Event()
        self._abandoned = False
        self._value: Optional[T] = None
        self._error: Optional[Exception] = None

    def _run(self) -> None:
        try:
            self._value = self._call()
        except Exception as error:
            self._error = error
        with self._lock:
            self._over.set()
            self._drop()

    def _drop(self) -> None:
        if self._abandoned and self._value is not None:
            self._give_back(self._value)
            self._value = None

    def __call__(self) -> T:
        threading.Thread(target=self._run, name="rpma", daemon=True).start()
        try:
            self._over.wait()
        except BaseException:
            with self._lock:
                self._abandoned = True
                if self._over.is_set():
                    self._drop()
            raise
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]


def interruptible(call: Callable[[], T], give_back: Callable[[T], None] = lambda _: None) -> T:
    """
    Run call() in a separate thread, because handlers of signals run in the main thread, and only while it executes no
    call of C. If a handler raises, as for Ctrl-C, call() still returns later; give_back() then releases its result.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    return _Call(call, give_back)()
