# SPDX-License-Identifier: BSD-3-Clause
"""The table of all goals, including those that were missed or not measured."""

from .goals import NO_GOAL

BOLD, PLAIN = "\033[1m", "\033[0m"


def _verdict(row):
    if row["goal"] == NO_GOAL:
        return "" if row["measured"] is not None else "not measured"
    if row["measured"] is None:
        return "not measured"
    if 0 < row.get("rounds_met", 0) < len(row.get("rounds", ())):
        return f"met in {row['rounds_met']} of {len(row['rounds'])} rounds"
    return "met" if row["met"] else "NOT met"


def number(value):
    return "" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def _spread(row):
    """The range of the rounds, from the least to the greatest value."""
    found = row.get("rounds", ())
    return f"{number(min(found))} .. {number(max(found))}" if len(found) > 1 else ""


def _cells(row):
    measured = number(row["measured"])
    goal = row["goal"] if row["goal"] != NO_GOAL else row["unit"]
    return row["work"], goal, measured, _spread(row), _verdict(row), row.get("why") or ""


def lines(rows, bold=False):
    table = [("work", "goal", "median", "rounds", "", ""), *(_cells(row) for row in rows)]
    widths = [max(len(cells[column]) for cells in table) for column in range(5)]
    for cells in table:
        text = (f"{cells[0]:<{widths[0]}}  {cells[1]:<{widths[1]}}  {cells[2]:>{widths[2]}}  {cells[3]:<{widths[3]}}  "
                f"{cells[4]:<{widths[4]}}  {cells[5]}").rstrip()
        yield f"{BOLD}{text}{PLAIN}" if bold and cells[4] == "NOT met" else text


def summary(rows):
    verdicts = [_verdict(row) for row in rows if row["goal"] != NO_GOAL]
    count = {word: verdicts.count(word) for word in ("met", "NOT met", "not measured")}
    count = {"met": count.pop("met"), "met in some rounds": sum(word.startswith("met in") for word in verdicts), **count}
    return f"{len(verdicts)} goals: " + ", ".join(f"{many} {word}" for word, many in count.items())


def markdown(rows):
    yield "| work | goal | median | rounds | |"
    yield "|---|---|---|---|---|"
    for row in rows:
        work, goal, measured, spread, verdict, _ = _cells(row)
        yield f"| {work.strip()} | {goal} | {measured} | {spread} | {verdict} |"
