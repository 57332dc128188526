# SPDX-License-Identifier: BSD-3-Clause
"""
perftest on the software RNIC, as a user of verbs runs it, beside a plain TCP connection of this machine.

The goals are for plain queue pairs with Acks, the default of `softrnic run`. Beside each goal are the results of the
same work without Acks, and with an iWARP device and rdma_cm.
"""

import os

from . import case as cases
from . import table
from .goal_run import Plan, judge
from .goals import HEADER, NO_GOAL, Goal, pingpong, rates, times
from .peer import Peer

# The time in ms that a stream needs to reach its speed.
BULK_MS = 250
KINDS = (("", "identity=roce ack=on"), ("without Acks", "identity=roce ack=off"),
         ("iWARP, rdma_cm", "identity=iwarp ack=off"))
# For each program: its raw counterpart; and if that has another structure, a program of the same
# structure. Both programs of ib_write_lat spin on their memory, which another thread fills, and
# the target's program of ib_read_lat sleeps.
LATENCIES = (("ib_write_lat", pingpong(64 + HEADER, 64 + HEADER), f"who=limit work=watch size={64 + HEADER} back={HEADER}"),
             ("ib_send_lat", pingpong(64 + HEADER, 64 + HEADER), None),
             ("ib_read_lat", pingpong(HEADER, 64 + HEADER), pingpong(HEADER, 64 + HEADER, "ini=poll tgt=wait")))
STRUCTURE = "  beside a program of the same structure"
BANDWIDTHS = ("ib_write_bw", "ib_send_bw", "ib_read_bw")
RATES = ("ib_write_bw", "ib_send_bw")
LINKS = (("loopback", "TCP"), ("shm", "rings"))


def _stream(size):
    return f"who=limit work=stream size={size} ms={BULK_MS}"


def _works():
    """(program, size in words, size, the goal's op, bound and unit, the ratio, the raw case, the same structure)"""
    for program, raw, same in LATENCIES:
        yield program, "64 B", 64, ("<=", 1.3, "x ping-pong, both poll"), times("ours", "raw"), raw, same
    for program in BANDWIDTHS:
        yield program, "64 KiB", 65536, (">=", 0.9, "x stream"), rates("ours", "raw", "bytes_s"), _stream(65536), None
    for program in RATES:
        yield program, "8 B", 8, (">=", 0.9, "x send() of 8 B each"), rates("ours", "raw"), _stream(8), None


def _case(program, size, words):
    return cases.parse(f"who=softrnic work={program} size={size} {words}" + (f" ms={BULK_MS}" if size != 64 else ""))


def _cost(op):
    """The time with Acks as a multiple of the time without. Ratios of rates are inverted, so that more is worse."""
    return times("ours", "plain") if op == "<=" else rates("plain", "ours")


def _goals(plan, peer):
    """
    For each work and link four rows: the goal, the same work in two other ways, and the cost of the Ack. If a program
    of the same structure is measured, it has a fifth row.
    """
    for link, link_name in LINKS:
        for program, size_name, size, (op, bound, unit), value, raw, same in _works():
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
            if same:
                goal = Goal(STRUCTURE, None, 0, "x its time", times("ours", "same"), place=link)
                goal.used = {"ours": steps[0], "same": plan.add(same, "loopback")}
                yield goal


def measure(program, places, folder, scripts, count, ms):
    peer = Peer(os.path.join(scripts, "perftest.sh"), program.folder)
    plan = Plan(program, places, folder)
    wanted = list(_goals(plan, peer))
    plan.run(count, ms)
    return {"goals": [judge(goal) for goal in wanted], "rows": [step.row() for step in plan.steps.values()]}


def _works_of(rows):
    """For each work the list of its rows; the first row is the goal."""
    works = []
    for row in rows:
        if row["goal"] != NO_GOAL:
            works.append([])
        works[-1].append(row)
    return works


def markdown(rows):
    """The lines of the table, one line for all rows of a work."""
    yield "| work | goal | median | rounds | | without Acks | iWARP, rdma_cm | cost of the Ack | x the same structure |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for first, *others in _works_of(rows):
        shown = list(table.markdown([first]))[-1]
        numbers = [table.number(row["measured"]) for row in others]
        numbers += [""] * (len(KINDS) + 1 - len(numbers))
        yield f"{shown} {' | '.join(numbers)} |"
