# SPDX-License-Identifier: BSD-3-Clause
"""Ours beside other libraries, on the same work: what is wanted is to be ahead on every row."""

from . import goals
from .goal_run import Plan, judge, peers_of

OURS = ("write_flush", "write", "read", "atomic_write", "batch", "send")
SAME = ("work", "size", "depth", "every", "conns", "flush", "where", "ini", "tgt", "spin")
UCX_PUT_GOAL = 4
# Its puts and gets go to the mapped memory of the peer, without bounds or revocation: shown, no goal.
MAPS_THE_PEER = ("ucx-shm",)


def counterpart(case):
    """Our case for a peer's, or None where there is none. Peers poll, so do we, unless they say not."""
    if case["work"] not in OURS:
        return None
    ours = {"who": "ours", "spin": "200", **({"tgt": "poll"} if case["work"] == "send" else {})}
    ours.update({name: case[name] for name in SAME if name in case})
    return ours


def _value(by_rate):
    if by_rate:
        return lambda line: line("ours")["ops_s"] / line("peer")["ops_s"]
    return lambda line: line("peer").get("p50_us", line("peer").get("mean_us")) / line("ours")["p50_us"]


def _goal(case, place):
    by_rate = case["work"] == "write"
    limit = UCX_PUT_GOAL if case["who"] == "ucx-tcp" and by_rate and case.get("size", "64") == "64" else 1
    op = None if case["who"] in MAPS_THE_PEER and case["work"] != "send" else ">="
    words = " ".join(f"{name}={case[name]}" for name in ("work", "size", "depth", "every", "flush") if name in case)
    at = f", {place}" if place.startswith("veth") else ""
    return goals.Goal(f"{case['who']}{at}: {words}", op, limit, "x its rate" if by_rate else "x faster",
                      _value(by_rate), place=place)


def _pairs(plan, scripts, build_folder):
    for name, place in plan.places.items():
        for peer, case in peers_of(scripts, build_folder, place, "goals"):
            theirs = plan.add(case, name, peer)
            ours = counterpart(case)
            if not ours:
                continue
            goal = _goal(case, name)
            goal.used = {"peer": theirs, "ours": plan.add(ours, name)}
            yield goal


def _instructions(plan):
    """Instructions above the seam: ours and Debian's librpma, counted by the same script."""
    steps = {step.case["who"]: step for step in plan.steps.values() if step.case["work"] == "instructions"}
    if "ours" not in steps:
        return
    for who, step in steps.items():
        if who != "ours":
            goal = goals.Goal(f"instructions of librpma per write + flush + get_wc against {who}", "<=", 1, "x",
                              lambda line: line("ours")["instructions"] / line("peer")["instructions"])
            goal.used = {"ours": steps["ours"], "peer": step}
            yield goal


def measure(program, places, folder, scripts, count, ms):
    plan = Plan(program, places, folder)
    wanted = list(_pairs(plan, scripts, program.folder))
    wanted += _instructions(plan)
    plan.run(count, ms)
    return {"goals": [judge(goal) for goal in wanted], "rows": [step.row() for step in plan.steps.values()]}
