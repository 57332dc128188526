# SPDX-License-Identifier: BSD-3-Clause
"""Puts the recorded goals into README.md, between two marks that stay there."""

import json
import os

from . import table

BEGIN, END = "<!-- bench: begin -->\n", "<!-- bench: end -->\n"


def _read(results, suite):
    try:
        with open(os.path.join(results, f"{suite}.json"), encoding="utf-8") as source:
            return json.load(source)
    except FileNotFoundError:
        return None


def _text(records):
    where = records[0]["machine"]
    rows = [row for record in records for row in record["goals"] if row["goal"] != table.NO_GOAL]
    yield (f"{where['cores']} cores ({where['cpu']}), Linux {where['kernel']}, revision {where['revision']}; medians, "
           "loopback:\n\n")
    yield from (line + "\n" for line in table.markdown(rows))


def write(top, results):
    records = [record for record in (_read(results, suite) for suite in ("goals", "rpmem", "mirror", "peers")) if record]
    if not records:
        raise FileNotFoundError(f"{results}: no goals were recorded")
    path = os.path.join(top, "README.md")
    with open(path, encoding="utf-8") as old:
        head, _, rest = old.read().partition(BEGIN)
    _, mark, tail = rest.partition(END)
    if not mark:
        raise ValueError(f"{path} has no marks for the results")
    with open(path, "w", encoding="utf-8") as new:
        new.write(head + BEGIN + "".join(_text(records)) + END + tail)
