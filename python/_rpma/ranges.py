# SPDX-License-Identifier: BSD-3-Clause
"""A set of bytes, stored as ranges that neither overlap nor touch."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Iterable, List, Tuple

Pair = Tuple[int, int]  # offset, length


class Ranges:
    """The starts and ends of the ranges, in order. The object has no lock."""

    def __init__(self) -> None:
        self._starts: List[int] = []
        self._ends: List[int] = []

    def __bool__(self) -> bool:
        return bool(self._starts)

    def pairs(self) -> List[Pair]:
        return [(start, end - start) for start, end in zip(self._starts, self._ends)]

    def add(self, offset: int, length: int) -> None:
        if not length:
            return
        start, end = offset, offset + length
        first = bisect_left(self._ends, start)  # the first range that overlaps or touches
        behind = bisect_right(self._starts, end)
        if first < behind:
            start = min(start, self._starts[first])
            end = max(end, self._ends[behind - 1])
        self._starts[first:behind] = [start]
        self._ends[first:behind] = [end]

    def add_all(self, pairs: Iterable[Pair]) -> None:
        for offset, length in pairs:
            self.add(offset, length)

    def take(self, offset: int, length: int) -> List[Pair]:
        """Remove a range. Returns the parts of it that were present."""
        start, end = offset, offset + length
        first = bisect_right(self._ends, start)  # the first range that overlaps
        behind = bisect_left(self._starts, end)
        if first >= behind or not length:
            return []
        taken = list(zip(self._starts[first:behind], self._ends[first:behind]))
        left = [part for part in ((taken[0][0], start), (end, taken[-1][1])) if part[0] < part[1]]
        self._starts[first:behind] = [part[0] for part in left]
        self._ends[first:behind] = [part[1] for part in left]
        taken = [(max(a, start), min(b, end)) for a, b in taken]
        return [(a, b - a) for a, b in taken]

    def take_all(self) -> List[Pair]:
        taken = self.pairs()
        self._starts, self._ends = [], []
        return taken
