# SPDX-License-Identifier: BSD-3-Clause
"""A handle for an object of a library. It counts the calls on the object, and releases it when no call is under way."""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any, Callable, Optional


class Handle:
    """
    Each call is made in `with handle as pointer:`. release(pointer) is called once, when no other call is under way,
    and never in a forked child.
    """

    def __init__(self, what: str, pointer: ctypes.c_void_p, release: Callable[[ctypes.c_void_p], None]) -> None:
        self._what = what
        self._pointer = pointer
        self._release = release
        self._process = os.getpid()
        self._state = threading.Condition(threading.Lock())
        self._calls = 0
        self.closed = False

    def __enter__(self) -> ctypes.c_void_p:
        if os.getpid() != self._process:
            raise ValueError(f"{self._what} belongs to the process that made it, and not to a child")
        with self._state:
            if self.closed:
                raise ValueError(f"{self._what} is closed")
            self._calls += 1
        return self._pointer

    def __exit__(self, *_: Any) -> Optional[bool]:
        with self._state:
            self._calls -= 1
            if self.closed and not self._calls:
                self._state.notify_all()
        return None

    def close(self, before: Optional[Callable[[], None]] = None) -> None:
        """
        Refuse further calls, wait for the calls that are under way, call before(), and release the object. A second
        close() does nothing.
        """
        if os.getpid() != self._process:
            return
        with self._state:
            if self.closed:
                return
            self.closed = True
            while self._calls:
                self._state.wait()
        if before:
            before()
        self._release(self._pointer)
