# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps: the lines of the plots. A point has the medians of a case; a line is a list of points."""

from . import rounds
from .goal_run import Plan, peers_of
from .points import SWEEPS, peer_point, QUICK_PEER_SIZES

# The plot of rare values needs many samples.
LONGER = {"dist": 5}


def _peer_points(plan, name, kind, scripts, build_folder):
    """The start of a peer takes much longer than a short measurement, so a quick run has few of their cases, each once."""
    for place_name, place in plan.places.items():
        for peer, case in peers_of(scripts, build_folder, place, name):
            if kind == "quick" and name == "size" and int(case.get("size", 64)) not in QUICK_PEER_SIZES:
                continue
            step = plan.add(case, place_name, peer)
            step.once = kind == "quick"
            yield peer_point(name, case, place_name), step, None


def _row(point, step, limit):
    row = {"plot": point.plot, "line": point.line, "at": point.at, **step.row()}
    if limit:
        number = point.number
        value = rounds.ratio((step, limit), lambda n: step.lines[n][number] / limit.lines[n][number])
        row["ratio"] = value and round(value, 3)
        row["ratio_to"] = limit.key
    return row


def measure(name, kind, program, places, folder, scripts, count, ms):
    """The rows of the sweep, each with its plot, its line, its position on the axis, and the ratio to its limit."""
    plan = Plan(program, places, folder)
    points = []
    for point in SWEEPS[name](kind):
        limit = plan.add(point.limit, "loopback") if point.limit else None
        points.append((point, plan.add(point.words, point.place), limit))
    points += _peer_points(plan, name, kind, scripts, program.folder)
    plan.run(count, ms * LONGER.get(name, 1))
    return {"rows": [_row(*point) for point in points]}
