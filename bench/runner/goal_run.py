# SPDX-License-Identifier: BSD-3-Clause
"""Measures goals: their cases in rounds. A case that several goals use is measured once in a round."""

import statistics

from . import case as cases
from . import rounds
from .peer import find
from .place import Missing

class Plan:
    """The cases of several goals, without repetition, in the order of their first use."""

    def __init__(self, program, places, folder, **more):
        """
        folder: replaces {dir} in the words of a case. more: other folders by name, each a path or a place.Missing.
        """
        self.program = program
        self.places = places
        self.folders = {"dir": folder, **more}
        self.steps = {}

    def add(self, words, place, runner=None):
        """words: a text, or a case."""
        case = cases.parse(words.format(**self.folders)) if isinstance(words, str) else words
        missing = [path for name, path in self.folders.items() if f"{{{name}}}" in words and isinstance(path, Missing)]
        where = missing[0] if missing else self.places[place]
        step = rounds.Step(case, runner or self.program, where)
        return self.steps.setdefault(step.key, step)

    def add_goal(self, goal, place=None):
        for name, used in goal.used.items():
            words, where = used if isinstance(used, tuple) else (used, place or goal.place)
            goal.used[name] = self.add(words, where)

    def run(self, count, ms):
        rounds.run(list(self.steps.values()), count, ms)


def judge(goal):
    """The row of the table: the goal, the result, and whether the goal was met (None: not known)."""
    steps = list(goal.used.values())
    row = {"work": goal.work, "goal": goal.wanted(), "unit": goal.unit, "measured": None, "met": None}
    row["place"] = steps[0].place.link
    missing = [step for step in steps if step.why]
    if missing:
        row["why"] = missing[0].why
        return row
    values = rounds.values(steps, lambda number: goal.value(lambda name: goal.used[name].lines[number]))
    value = statistics.median(values)
    row["measured"] = round(value, 3)
    row["rounds"] = [round(each, 3) for each in values]
    row["why"] = goal.check(lambda name: goal.used[name].lines[-1]) if goal.check else None
    row["met"] = goal.met(value) if not row["why"] else False
    if goal.op is not None and not row["why"]:
        row["rounds_met"] = sum(goal.met(each) for each in values)
    row["cases"] = {name: step.key for name, step in goal.used.items()}
    return row


def measure(goals, plan, count, ms):
    for goal in goals:
        plan.add_goal(goal)
    plan.run(count, ms)
    return {"goals": [judge(goal) for goal in goals], "rows": [step.row() for step in plan.steps.values()]}


def peers_of(scripts, build_folder, place, suite):
    """(peer, case) for each case of this suite that a peer can measure at this place."""
    for peer in find(scripts, build_folder):
        for case in peer.list(place):
            if case.get("link", place.link) == place.link and suite in case.get("suites", "").split(","):
                yield peer, {name: value for name, value in case.items() if name not in ("suites", "link")}
