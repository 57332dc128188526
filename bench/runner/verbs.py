# SPDX-License-Identifier: BSD-3-Clause
"""
perftest, as a user of verbs runs it, on the software RNIC beside a plain TCP connection of this machine.

The goals are for plain queue pairs with Acks, which are what `softrnic run` gives. Beside each: the same without Acks,
and with an iWARP device and rdma_cm.
"""

import os

from . import case as cases
from . import table
from .goal_run import Plan, judge
from .goals import HEADER, Goal, pingpong, rates, times
from .peer import Peer

# The time that bandwidth needs to reach its speed, in ms.
BULK_MS = 250
KINDS = (("", "identity=roce ack=on"), ("without Acks", "identity=roce ack=off"),
         ("iWARP, rdma_cm", "identity=iwarp ack=off"))
# The program, its size, the words in the table; the raw counterpart.
LATENCIES = (("ib_write_lat", pingpong(64 + HEADER, 64 + HEADER)), ("ib_send_lat", pingpong(64 + HEADER, 64 + HEADER)),
             ("ib_read_lat", pingpong(HEADER, 64 + HEADER)))
BANDWIDTHS = ("ib_write_bw", "ib_send_bw", "ib_read_bw")
RATES = ("ib_write_bw", "ib_send_bw")
LINKS = (("loopback", "TCP"), ("shm", "rings"))


def _stream(size):
    return f"who=limit work=stream size={size} ms={BULK_MS}"


def _works():
    """(the program, the size in words, its size, the goal's op, bound and unit, the ratio, the raw case)"""
    for program, raw in LATENCIES:
        yield program, "64 B", 64, ("<=", 1.3, "x ping-pong, both poll"), times("ours", "raw"), raw
    for program in BANDWIDTHS:
        yield program, "64 KiB", 65536, (">=", 0.9, "x stream"), rates("ours", "raw", "bytes_s"), _stream(65536)
    for program in RATES:
        yield program, "8 B", 8, (">=", 0.9, "x send() of 8 B each"), rates("ours", "raw"), _stream(8)


def _case(program, size, words):
    return cases.parse(f"who=softrnic work={program} size={size} {words}" + (f" ms={BULK_MS}" if size != 64 else ""))


def _cost(op):
    """A time with Acks as a multiple of that without. Rates are turned round, so that more is worse in both."""
    return times("ours", "plain") if op == "<=" else rates("plain", "ours")


def _goals(plan, peer):
    """For each work and link four rows: the goal, the same in two other ways, and the cost of the Ack."""
    for link, link_name in LINKS:
        for program, size_name, size, (op, bound, unit), value, raw in _works():
            raw_step = plan.add(raw, "loopback")
            steps = [plan.add(_case(program, size, words), link, peer) for _, words in KINDS]
            for (kind, _), step in zip(KINDS, steps):
                name = f"  the same, {kind}" if kind else f"{program}, {size_name}, {link_name}"
                goal = Goal(name, None if kind else op, bound, unit, value, place=link)
                goal.used = {"ours": step, "raw": raw_step}
                yield goal
            goal = Goal("  cost of the Ack", None, 0, "x the time without", _cost(op), place=link)
            goal.used = {"ours": steps[0], "plain": steps[1]}
            yield goal


def measure(program, places, folder, scripts, count, ms):
    peer = Peer(os.path.join(scripts, "perftest.sh"), program.folder)
    plan = Plan(program, places, folder)
    wanted = list(_goals(plan, peer))
    plan.run(count, ms)
    return {"goals": [judge(goal) for goal in wanted], "rows": [step.row() for step in plan.steps.values()]}


def markdown(rows):
    """One line for the four rows of a work."""
    yield "| work | goal | median | rounds | | without Acks | iWARP, rdma_cm | cost of the Ack |"
    yield "|---|---|---|---|---|---|---|---|"
    for first in range(0, len(rows), len(KINDS) + 1):
        shown = list(table.markdown(rows[first:first + 1]))[-1]
        others = (table.number(row["measured"]) for row in rows[first + 1:first + len(KINDS) + 1])
        yield f"{shown} {' | '.join(others)} |"
