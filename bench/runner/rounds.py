# SPDX-License-Identifier: BSD-3-Clause
"""Rounds: each round measures all cases in turn, so that noise affects all cases alike."""

import statistics
import sys
import time

from . import case as cases

NUMBERS = ("p50_us", "p90_us", "p99_us", "p999_us", "min_us", "max_us", "mean_us", "ops_s", "bytes_s", "calm_p99_us",
           "instructions",
           # These numbers are results of scale.py.
           "per_s", "initiator_us", "target_us", "allocated", "anonymous", "socket_buffers", "cpu_percent_per_1000",
           "waits_per_s", "alone_ns", "beside_ns", "after_ns", "alone_p99_ns", "beside_p99_ns", "after_p99_ns")
# The main number of a line is the first of these numbers that the line has. The record also has
# its values in all rounds.
MAIN = ("p50_us", "mean_us", "ops_s", "per_s", "cpu_percent_per_1000", "beside_ns")
# The record has these values of the last round.
LAST = ("dist", "count", "durability", "writebacks", "local_writebacks", "disk_bytes", "note")


class Step:
    """A case, its runner, its place, and the results."""

    def __init__(self, case, runner, place):
        self.case = case
        self.runner = runner
        self.place = place
        self.key = cases.key({**case, "link": place.link})
        self.lines = []
        self.why = None  # the reason why the case was not measured
        # Counts are the same in each round, and counting is slow.
        self.once = case["work"] == "instructions"

    def measure(self, ms):
        if self.why or (self.once and self.lines):
            return
        try:
            self.lines.append(self.runner.run(self.case, self.place, ms))
        except cases.Skipped as reason:
            self.why = str(reason)
        except (cases.Failed, OSError, ValueError) as reason:
            self.why = f"failed: {reason}"

    def row(self):
        """The medians of the rounds, and each round's value of the main number."""
        if not self.lines:
            return {"case": {**self.case, "link": self.place.link}, "why": self.why}
        row = {"case": {**self.case, "link": self.place.link}}
        for name in NUMBERS:
            values = [line[name] for line in self.lines if name in line]
            if values:
                row[name] = round(statistics.median(values), 3)
        main = next((name for name in MAIN if name in row), None)
        row["rounds"] = [line.get(main) for line in self.lines]
        row.update({name: self.lines[-1][name] for name in LAST if name in self.lines[-1]})
        return row


_end = [None]  # a round that would end after this time is not begun


def end_after(minutes):
    """After the first round, begin no round that would end later than `minutes` from now; None: no limit."""
    _end[0] = None if minutes is None else time.monotonic() + 60 * minutes


def _fits(begun):
    now = time.monotonic()
    return _end[0] is None or now + (now - begun) <= _end[0]


def run(steps, rounds, ms):
    """Measure each step once per round."""
    begun = time.monotonic()
    for number in range(rounds):
        if number > 0 and not _fits(begun):
            print(f"no time for more than {number} of {rounds} rounds", file=sys.stderr, flush=True)
            break
        begun = time.monotonic()
        for index, step in enumerate(steps):
            if sys.stderr.isatty():
                print(f"\r\033[Kround {number + 1}/{rounds}, {index + 1}/{len(steps)}: {step.key[:90]}",
                      end="", file=sys.stderr, flush=True)
            step.measure(ms)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def values(steps, value):
    """value(round number) of each round; None if a step was not measured."""
    if any(step.why or not step.lines for step in steps):
        return None
    return [value(number) for number in range(min(len(step.lines) for step in steps))]


def ratio(steps, value):
    """The median of values(); None if a step was not measured."""
    found = values(steps, value)
    return None if found is None else statistics.median(found)
