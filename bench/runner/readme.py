# SPDX-License-Identifier: BSD-3-Clause
"""
Writes recorded results into the documents, between two marks, which stay: five rows of times and a sentence about
durable writes into README.md; the goals, the table of durable writes and the table of perftest into bench/README.md.
"""

import json
import os

from . import durable_table, points, table, verbs
from .case import key
from .guards import GUARDS

SUITES = ("goals", "disk", "rpmem", "mirror", "peers")
# The rows in README.md: the work, the suite, the goal that has the cases, the measured case, the
# compared case, and the name of the compared case.
TIMES = (
    ("write 64 B, visible in the other machine's memory", "goals", "write 64 B + flush, initiator polls, target spins",
     "ours", "limit", "plain TCP, there and back"),
    ("read 4 KiB", "goals", "read 4 KiB", "ours", "limit", "plain TCP, there and back"),
    ("write 64 B, **durable on the other machine's disk**", "disk",
     "write 64 B + persistent flush, initiator polls", "ours", "disk",
     "`pwrite` + `fdatasync`, local"),
    ("flush 64 B of a mirrored file, durable on both hosts' disks", "disk", "flush 64 B, files on a disk", "mirror",
     "disk", "`pwrite` + `fdatasync`, local"),
    ("write 64 B to another process of the same host", "goals", "shm: write 64 B + flush, both spin", "ours", None, ""),
)


def read(results, suite):
    """The record of a suite, or None."""
    try:
        with open(os.path.join(results, f"{suite}.json"), encoding="utf-8") as source:
            return json.load(source)
    except FileNotFoundError:
        return None


def read_rows(results, suite):
    """The rows of a suite, or none if it was not recorded."""
    return (read(results, suite) or {"rows": []})["rows"]


def _where(record):
    machine = record["machine"]
    return (f"{machine['cores']} cores ({machine['cpu']}), Linux {machine['kernel']}, revision {machine['revision']}, "
            f"{machine['time'][:10]}")


def _guarded(row):
    return row["work"].strip() in GUARDS and row["met"] and row.get("rounds_met", 1) == len(row.get("rounds", (1,)))


def _goals(records, drawn):
    rows = [row for record in records.values() for row in record["goals"] if row["goal"] != table.NO_GOAL]
    yield f"{_where(records['goals'])}; medians, loopback.{drawn}\n\n"
    yield from (line + "\n" for line in table.markdown(row for row in rows if not _guarded(row)))
    guarded = [row for row in rows if _guarded(row)]
    if not guarded:
        return
    yield "\nEvery round met the following goals; the named test fails if the cost of the work grows:\n\n| work | goal | median | test |\n|---|---|---|---|\n"
    for row in guarded:
        yield f"| {row['work'].strip()} | {row['goal']} | {table.number(row['measured'])} | `{GUARDS[row['work'].strip()]}` |\n"


def _verbs(record):
    yield f"{_where(record)}; medians.\n\n"
    yield from (line + "\n" for line in verbs.markdown(record["goals"]))


def _time(record, goal, name):
    """The median of one case of a goal, in microseconds. Each case is recorded once; goals refer to cases by name."""
    case = next(row for row in record["goals"] if row["work"] == goal)["cases"][name]
    found = next(row for row in record["rows"] if key(row["case"]) == case)
    return f"{found['p50_us']:.1f}" if found["p50_us"] < 100 else f"{found['p50_us']:.0f}"


def _times(records):
    yield "| work | time, us | for comparison, us | compared work |\n|---|---|---|---|\n"
    for work, suite, goal, ours, beside, name in TIMES:
        other = _time(records[suite], goal, beside) if beside else ""
        yield f"| {work} | {_time(records[suite], goal, ours)} | {other} | {name} |\n"
    yield f"\nMedians between two processes of one machine: {_where(records['goals'])}.\n"


def _drawn(results):
    """The revisions of the plots."""
    found = {record["machine"]["revision"] for suite in points.SWEEPS if (record := read(results, suite))}
    return f" The plots are of revision {', '.join(sorted(found))}." if found else ""


def _replace(path, mark, text):
    begin, end = f"<!-- {mark}: begin -->\n", f"<!-- {mark}: end -->\n"
    with open(path, encoding="utf-8") as old:
        head, _, rest = old.read().partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise ValueError(f"{path} has no marks '{mark}' for the results")
    with open(path, "w", encoding="utf-8") as new:
        new.write(head + begin + "".join(text) + end + tail)


def write(top, results):
    records = {suite: record for suite in SUITES if (record := read(results, suite))}
    if "goals" not in records:
        raise FileNotFoundError(f"{results}: no goals were recorded")
    _replace(os.path.join(top, "bench/README.md"), "bench", _goals(records, _drawn(results)))
    durable = read(results, "durable")
    if durable:
        _replace(os.path.join(top, "bench/README.md"), "durable", durable_table.markdown(durable, _where(durable)))
        _replace(os.path.join(top, "README.md"), "durable", durable_table.sentence(durable, _where(durable)))
    perftest = read(results, "verbs")
    if perftest:
        _replace(os.path.join(top, "bench/README.md"), "verbs", _verbs(perftest))
    if all(suite in records for _, suite, *_ in TIMES):
        _replace(os.path.join(top, "README.md"), "times", _times(records))
