#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures suites of cases, writes results/NAME.json and plots, and prints the table of goals."""

import argparse
import contextlib
import json
import os
import shutil
import signal
import sys

from runner import case, disk_goals, durable, durable_table, goal_run, goals, loop_disks, machine, mirror_goals, peer_goals, \
    place, plot, points, readme, rounds, scale, sweep, table, verbs

HERE = os.path.dirname(os.path.abspath(__file__))
SUITES = ("goals", "disk", "rpmem", "mirror", "peers", "net", "size", "depth", "dist", "conns", "scale")
# Suites with goals need enough rounds to show how much the results vary. Suites that are only
# drawn need fewer rounds.
ROUNDS = {"quick": {"goals": 5, "disk": 5, "rpmem": 5, "mirror": 5, "peers": 5, "verbs": 3}, "full": {}}
ROUNDS_ELSE = {"quick": 2, "full": 5}
# Suites that run only if they are named, because they need other packages and take long.
NAMED = ("durable", "verbs")
DURABLE_ROUNDS = {"quick": 3, "full": 5}
DURABLE_MS = {"quick": 250, "full": 400}
FULL_MS = 400
FULL_MINUTES = 60
QUICK_MS = {"goals": 100, "disk": 100, "rpmem": 100, "mirror": 100, "peers": 60, "verbs": 100}
GOALS = {"goals": goals.all_goals, "rpmem": goals.replica_goals}
QUICK_MS_ELSE = 40
SCALE_MS = {"quick": 1000, "full": 3000}


def say(text):
    print(text, file=sys.stderr, flush=True)


def options():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="quick|full|SUITE",
                        help=f"the duration, and suites of {' '.join((*SUITES, *NAMED))} (default: quick, all but {' '.join(NAMED)})")
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--readme", action="store_true", help="measure nothing: draw the recorded results, and write them into README.md and bench/README.md")
    parser.add_argument("--results", default=os.path.join(HERE, "results"), help="the folder for the results (%(default)s)")
    parser.add_argument("--peers", default=os.path.join(HERE, "peers"), help=argparse.SUPPRESS)
    parser.add_argument("--dir", default="/var/tmp", help="a folder on a disk, for files (%(default)s)")
    parser.add_argument("--dir2", metavar="FOLDER", help="a folder on another disk, for the files of replicas (without it: loop devices)")
    parser.add_argument("--rounds", type=int, help="the number of measurements of each case")
    parser.add_argument("--ms", type=int, help="the duration of each measurement, in ms")
    parser.add_argument("--minutes", type=float,
                        help=f"begin no further round that would end after this time (full: {FULL_MINUTES})")
    parser.add_argument("--to", metavar="NAME", help="record as NAME.json instead of the suite's name")
    found = parser.parse_args()
    unknown = [word for word in found.words if word not in ("quick", "full", *SUITES, *NAMED)]
    if unknown:
        parser.error(f"there is no suite '{unknown[0]}'")
    found.kind = "full" if "full" in found.words else "quick"
    if found.kind == "full" and found.minutes is None:
        found.minutes = FULL_MINUTES
    found.suites = [word for word in (*SUITES, *NAMED) if word in found.words] or list(SUITES)
    return found


def _net(opts, program, count, ms):
    """Measures each MTU separately, so that the namespaces exist only while they are used."""
    outcome = {"goals": [], "rows": []}
    for mtu in (1500, 9000):
        shown = goals.net_goals()
        try:
            with place.Veth(mtu) as veth:
                plan = goal_run.Plan(program, {"loopback": veth}, opts.dir)
                part = goal_run.measure(shown, plan, count, ms)
        except OSError as reason:
            part = {"goals": [{"work": f"veth, MTU {mtu}", "goal": table.NO_GOAL, "unit": "", "measured": None,
                               "met": None, "why": str(reason)}], "rows": []}
        for row in part["goals"]:
            row["work"] = f"MTU {mtu}: {row['work'].strip()}"
        outcome["goals"] += part["goals"]
        outcome["rows"] += part["rows"]
    return outcome


def _peers(opts, program, places, count, ms):
    """Measures the peers. `full` also measures them between namespaces, if namespaces can be made."""
    with contextlib.ExitStack() as made:
        for mtu in (1500, 9000) if opts.kind == "full" else ():
            with contextlib.suppress(OSError):
                places[f"veth{mtu}"] = made.enter_context(place.Veth(mtu))
        return peer_goals.measure(opts.kind, program, places, opts.dir, opts.peers, count, ms)


def measure(suite, opts, program):
    count = opts.rounds or ROUNDS[opts.kind].get(suite, ROUNDS_ELSE[opts.kind])
    ms = opts.ms or (FULL_MS if opts.kind == "full" else QUICK_MS.get(suite, QUICK_MS_ELSE))
    if suite == "durable":
        return durable.measure(opts.kind, opts.programs, opts.dir, opts.rounds or DURABLE_ROUNDS[opts.kind],
                               opts.ms or DURABLE_MS[opts.kind])
    places = {"loopback": place.Loopback(), "shm": place.Loopback("shm")}
    if suite == "scale":
        return scale.measure(opts.kind, opts.programs, places["loopback"], count, opts.ms or SCALE_MS[opts.kind])
    if suite in GOALS:
        return goal_run.measure(GOALS[suite](), goal_run.Plan(program, places, opts.dir), count, ms)
    if suite == "disk":
        return disk_goals.measure(program, places, opts.dir, opts.dir2, count, ms)
    if suite == "mirror":
        return mirror_goals.measure(program, places, opts.dir, count, ms)
    if suite == "verbs":
        return verbs.measure(program, places, opts.dir, opts.peers, count, ms)
    if suite == "peers":
        return _peers(opts, program, places, count, ms)
    if suite == "net":
        return _net(opts, program, count, ms)
    return sweep.measure(suite, opts.kind, program, places, opts.dir, opts.peers, count, ms)


def record(path, suite, outcome, where):
    with open(path, "w", encoding="utf-8") as out:
        json.dump({"suite": suite, "machine": where, **outcome}, out, indent=1, ensure_ascii=False)
        out.write("\n")
    say(f"recorded in {os.path.relpath(path)}")


def draw(rows, out):
    if not shutil.which("gnuplot"):
        say("gnuplot is not installed: no plots")
        return
    for name in plot.draw(rows, out):
        say(f"drawn: {os.path.relpath(os.path.join(out, name))}.svg")


def draw_durable(record, out):
    if not shutil.which("gnuplot"):
        say("gnuplot is not installed: no plots")
        return
    name = os.path.join(out, durable_table.PLOT)
    plot.draw_bars(durable_table.bars(record), name, durable_table.TITLE, "x a local pwrite + fdatasync")
    say(f"drawn: {os.path.relpath(name)}.svg")


def _run_suite(suite, opts, program):
    where = machine.describe(HERE)
    outcome = measure(suite, opts, program)
    record(os.path.join(opts.results, f"{opts.to or suite}.json"), suite, outcome, where)
    if suite in points.SWEEPS:
        draw(outcome["rows"], opts.results)
    if suite == "durable":
        draw_durable(outcome, opts.results)
        print("\n".join(durable_table.lines(outcome["rows"])))
    return outcome.get("goals", [])


def show(rows):
    for line in table.lines(rows, sys.stdout.isatty()):
        print(line)
    if any(row["goal"] != table.NO_GOAL for row in rows):
        print(table.summary(rows))


def main():
    opts = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    os.makedirs(opts.results, exist_ok=True)
    if opts.readme:
        for suite in points.SWEEPS:
            draw(readme.read_rows(opts.results, suite), opts.results)
        recorded = readme.read(opts.results, "durable")
        if recorded:
            draw_durable(recorded, opts.results)
        readme.write(os.path.dirname(HERE), opts.results)
        return
    rounds.end_after(opts.minutes)
    place.remove_leftovers()
    loop_disks.remove_leftovers(opts.dir)
    warning = machine.warning(machine.describe(HERE))
    if warning:
        say(f"WARNING: {warning}")
    rows = []
    for suite in opts.suites:
        rows += _run_suite(suite, opts, case.Program(opts.programs))
    if rows:
        show(rows)
    if warning:
        say(f"WARNING: {warning}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
