# SPDX-License-Identifier: BSD-3-Clause
"""The table of goals: all of them, also those that were missed or not measured."""

from .goals import NO_GOAL

BOLD, PLAIN = "\033[1m", "\033[0m"


def _verdict(row):
    if row["goal"] == NO_GOAL:
        return "" if row["measured"] is not None else "not measured"
    if row["measured"] is None:
        return "not measured"
    return "met" if row["met"] else "NOT met"


def _number(value):
    return "" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def _cells(row):
    measured = _number(row["measured"])
    goal = row["goal"] if row["goal"] != NO_GOAL else row["unit"]
    return row["work"], goal, measured, _verdict(row), row.get("why") or ""


def lines(rows, bold=False):
    table = [("work", "goal", "measured", "", ""), *(_cells(row) for row in rows)]
    widths = [max(len(cells[column]) for cells in table) for column in range(4)]
    for cells in table:
        text = (f"{cells[0]:<{widths[0]}}  {cells[1]:<{widths[1]}}  {cells[2]:>{widths[2]}}  "
                f"{cells[3]:<{widths[3]}}  {cells[4]}").rstrip()
        yield f"{BOLD}{text}{PLAIN}" if bold and cells[3] == "NOT met" else text


def summary(rows):
    goals = [row for row in rows if row["goal"] != NO_GOAL]
    count = {word: sum(_verdict(row) == word for row in goals) for word in ("met", "NOT met", "not measured")}
    return f"{len(goals)} goals: " + ", ".join(f"{number} {word}" for word, number in count.items())


def markdown(rows):
    yield "| work | goal | measured | |"
    yield "|---|---|---|---|"
    for row in rows:
        work, goal, measured, verdict, _ = _cells(row)
        yield f"| {work.strip()} | {goal} | {measured} | {verdict} |"
