#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
speed.py FILE.jsonl: prints the results of perftest in the guest (guest/verbs-speed.sh) as a table. Each number is the
time of a message as a multiple of the time over raw TCP in the same round (median of the rounds). Less is better.
"""

import json
import statistics
import sys

RAW = "raw TCP"
COLUMNS = ("rxe", "siw", "softrnic, TCP", "softrnic, TCP, no Acks", "softrnic, iWARP", "softrnic, rings")


def message_us(line):
    """The median time of a message in us, or the mean time if the program measures only rates."""
    return line.get("p50_us") or 1e6 / line["ops_s"]


def read(path):
    """{work: {column: the time of each round}}"""
    found = {}
    with open(path, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            work, column = line["row"].split(", ", 1)
            found.setdefault(work, {}).setdefault(column, []).append(message_us(line))
    return found


def cell(times, raw):
    """The median of the ratios; empty if this column was not measured in as many rounds as raw TCP."""
    if not times or len(times) != len(raw):
        return ""
    return f"{statistics.median(ours / theirs for ours, theirs in zip(times, raw)):.2f}"


def table(found):
    yield "| work | raw TCP, us | " + " | ".join(COLUMNS) + " |"
    yield "|---" * (len(COLUMNS) + 2) + "|"
    for work, columns in found.items():
        raw = columns.get(RAW, [])
        us = f"{statistics.median(raw):.1f}" if raw else ""
        yield f"| {work} | {us} | " + " | ".join(cell(columns.get(name), raw) for name in COLUMNS) + " |"


def main():
    print("\n".join(table(read(sys.argv[1]))))


if __name__ == "__main__":
    main()
