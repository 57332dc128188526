# SPDX-License-Identifier: BSD-3-Clause
"""
Many connections (scale.md): the cost of idle connections, the rate of connecting and disconnecting, the throughput of
active connections.
"""

import os

from . import case as cases
from .goal_run import Plan, measure as measure_goals
from .goals import Goal

CONNS = (1, 16, 256, 1024)
SIZES = ((64, "64 B"), (65536, "64 KiB"))
IDLE = 1000
BESIDE = {"quick": 1000, "full": 9900}
# Longer than the interval between two checks of an idle peer, which is half of
# SOFTRNIC_LIVENESS_MS, plus at most an eighth of this half.
IDLE_S = {"quick": 9, "full": 27}
# A single connection has several operations under way; otherwise only one operation would be under
# way in the whole program.
DEPTH_OF_ONE = 4
# The record has these values of the end where they are larger.
WORSE = ("allocated", "anonymous", "socket_buffers", "cpu_percent_per_1000", "waits_per_s")


class Scale:
    """The program `scale`; its arguments have no names."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "scale")

    def command(self, case, seconds):
        work = case["work"]
        if work == "connect":
            return [self.path, work, str(seconds), case["threads"]]
        rest = [case["size"], case["depth"]] if work == "rate" else []
        return [self.path, work, case["conns"], str(seconds), *rest]

    def run(self, case, _place, ms):
        seconds = int(case.get("seconds", max(1, ms // 1000)))
        lines = cases.run_program(self.command(case, seconds), dict(os.environ), 3000 * seconds)
        return {**lines[0], **{name: max(line[name] for line in lines) for name in WORSE if name in lines[0]}}


def _idle(kind):
    words = f"who=scale work=idle conns={IDLE} seconds={IDLE_S[kind]}"
    yield Goal("idle connection, memory allocated", "<=", 12, "KiB", lambda line: line("idle")["allocated"] / 1024,
               idle=words)
    yield Goal("idle connections, CPU", "<=", 0.1, "% per 1000", lambda line: line("idle")["cpu_percent_per_1000"],
               idle=words)


def _connects():
    for threads, name in ((1, "one after the other"), (4, "four at a time")):
        yield Goal(f"connects + disconnects, {name}", ">=", 5000, "a second", lambda line: line("connect")["per_s"],
                   connect=f"who=scale work=connect threads={threads}")


def _share(conns):
    return lambda line: line(f"c{conns}")["per_s"] / max(line(f"c{other}")["per_s"] for other in CONNS)


def _rates():
    for size, name in SIZES:
        used = {f"c{conns}": f"who=scale work=rate conns={conns} size={size} depth={DEPTH_OF_ONE if conns == 1 else 1}"
                for conns in CONNS}
        for conns in CONNS:
            yield Goal(f"write {name} + flush, {conns} active", ">=", 0.8, "x the most of 1 to 1024", _share(conns),
                       **used)


def _latency(kind):
    def value(line):
        found = line("latency")
        return 2 * found["beside_ns"] / (found["alone_ns"] + found["after_ns"])
    yield Goal(f"write 64 B + flush beside {BESIDE[kind]} idle", "<=", 1.1, "x alone", value,
               latency=f"who=scale work=latency conns={BESIDE[kind]}")


def all_goals(kind):
    return [*_idle(kind), *_connects(), *_rates(), *_latency(kind)]


def measure(kind, folder, place, count, ms):
    return measure_goals(all_goals(kind), Plan(Scale(folder), {"loopback": place}, folder), count, ms)
