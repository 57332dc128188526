# SPDX-License-Identifier: BSD-3-Clause
"""A flush that was begun."""

from __future__ import annotations

from ctypes import byref, c_uint64
from typing import TYPE_CHECKING, List, Optional, Sequence

from _rpma.pending import Pending
from _rpma.ranges import Pair

from . import _library as c
from ._errors import AgainError, check, last_error
from ._results import Result

if TYPE_CHECKING:
    from ._mapping import Mapping


class Ticket(Pending):
    """A flush that Mapping.flush_start() has begun. Any thread can wait for it, any number of times."""

    def __init__(self, mapping: "Mapping", taken: List[Pair]) -> None:
        super().__init__()
        self._mapping = mapping
        self._taken = taken  # remembered ranges of this flush; they are remembered again if the flush fails
        self._numbers: List[int] = []  # the numbers of the library's tickets whose end is still to be awaited
        self._result = Result(0, 0, 0, 0)

    def wait(self, timeout: Optional[float] = None) -> Result:
        """
        Wait for the end of the flush, and return its result. Raises AgainError, a TimeoutError, if the flush still runs
        after `timeout` seconds.
        """
        self._wait(timeout)
        return self._result

    def _start(self, pairs: Sequence[Pair]) -> None:
        """Begin the flush, in parts of as many ranges as the library accepts."""
        for first in range(0, max(len(pairs), 1), c.RANGES_MAX):
            part = self._mapping._array(pairs[first : first + c.RANGES_MAX])
            number = c_uint64()
            with self._mapping._handle as m:
                check(c.lib.rpmirror_flush_start(m, part, len(part), 0, byref(number)))
            self._numbers.append(number.value)

    def _look(self, ms: int) -> bool:
        raw = c.FlushResult()
        with self._mapping._handle as m:
            code = c.lib.rpmirror_flush_wait(m, self._numbers[0], ms, byref(raw))
        if code == AgainError.code:
            return False
        result = Result._from(raw)
        if code:
            raise last_error(code, result)
        self._result = self._result._and(result)
        self._numbers.pop(0)
        return not self._numbers

    def _ended(self, failed: bool) -> None:
        self._mapping._settle(self, self._taken, failed)

    def _again(self) -> Exception:
        return AgainError("the flush still runs")
