# SPDX-License-Identifier: BSD-3-Clause
"""This project beside other libraries with the same work. The goal is to be faster in every row."""

from . import goals
from .goal_run import Plan, judge, peers_of

OURS = ("write_flush", "write", "read", "atomic_write", "batch", "send")
SAME = ("work", "size", "depth", "every", "conns", "flush", "where", "ini", "tgt", "spin")
UCX_PUT_GOAL = 4
# The goal is to be faster than these peers in every row; the other peers are only shown.
AHEAD_OF = ("ucx-tcp", "libfabric-tcp", "libfabric-shm")
# Puts and gets of ucx-shm access the peer's mapped memory, without checks of bounds and without
# revocation. So only its messages are comparable.
AHEAD_OF_MESSAGES = ("ucx-shm",)


def counterpart(case):
    """
    This project's case for the same work as a peer's case, or None. Both ends of peers poll, so this case spins and
    polls, too, unless the peer's case names `ini`, `tgt` or `spin`.
    """
    if case["work"] not in OURS:
        return None
    ours = {"who": "ours", "spin": "200", **({"tgt": "poll"} if case["work"] == "send" else {})}
    ours.update({name: case[name] for name in SAME if name in case})
    return ours


def _value(by_rate):
    if by_rate:
        return lambda line: line("ours")["ops_s"] / line("peer")["ops_s"]
    return lambda line: _time(line("peer"), line("ours")) / _time(line("ours"), line("peer"))


def _time(of, beside):
    """The median if both lines have it, otherwise the mean, because some programs print only the mean."""
    number = "p50_us" if "p50_us" in of and "p50_us" in beside else "mean_us"
    return of[number]


def _goal(case, place):
    by_rate = case["work"] == "write"
    fourfold = case["who"] == "ucx-tcp" and by_rate and case.get("size", "64") == "64"
    op, bound = (">=", UCX_PUT_GOAL) if fourfold else (">", 1)
    compared = case["who"] in AHEAD_OF or (case["who"] in AHEAD_OF_MESSAGES and case["work"] == "send")
    words = " ".join(f"{name}={case[name]}" for name in ("work", "size", "depth", "every") if name in case)
    if case.get("flush") == "persistent" and case.get("where", "memory") == "memory":
        words += ", commit completion of memory that no end makes persistent"
        compared = False
    at = f", {place}" if place.startswith("veth") else ""
    unit = "x its rate" if by_rate else "x faster"
    return goals.Goal(f"{case['who']}{at}: {words}", op if compared else None, bound, unit, _value(by_rate),
                      place=place)


def _pairs(plan, kind, scripts, build_folder):
    for name, place in plan.places.items():
        for peer, case in peers_of(scripts, build_folder, place, "goals"):
            theirs = plan.add(case, name, peer)
            ours = counterpart(case)
            if not ours:
                continue
            goal = _goal(case, name)
            goal.used = {"peer": theirs, "ours": plan.add(ours, name)}
            # The start of a case takes as long for a row that is only shown as for a goal, so a
            # quick run measures such a row once.
            theirs.once = kind == "quick" and goal.op is None
            yield goal


def _instructions(plan):
    """
    Instructions of librpma itself: one script counts them for the same program on this project's librpma and on
    Debian's.
    """
    steps = {step.case["who"]: step for step in plan.steps.values() if step.case["work"] == "instructions"}
    ours = steps.pop("ours", None)
    for who, step in steps.items() if ours else ():
        goal = goals.Goal(f"instructions per write + flush + get_wc, against {who}", "<", 1, "x",
                          lambda line: line("ours")["instructions"] / line("peer")["instructions"])
        goal.used = {"ours": ours, "peer": step}
        yield goal


def measure(kind, program, places, folder, scripts, count, ms):
    plan = Plan(program, places, folder)
    wanted = list(_pairs(plan, kind, scripts, program.folder))
    wanted += _instructions(plan)
    plan.run(count, ms)
    return {"goals": [judge(goal) for goal in wanted], "rows": [step.row() for step in plan.steps.values()]}
