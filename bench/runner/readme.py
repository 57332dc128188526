# SPDX-License-Identifier: BSD-3-Clause
"""Puts the recorded goals into README.md, between two marks that stay there."""

import json
import os

from . import table

BEGIN, END = "<!-- bench: begin -->\n", "<!-- bench: end -->\n"


def _text(record):
    where = record["machine"]
    yield (f"{where['cores']} cores ({where['cpu']}), Linux {where['kernel']}, revision {where['revision']}; medians, "
           "loopback:\n\n")
    yield from (line + "\n" for line in table.markdown(record["goals"]))


def write(top, results):
    with open(os.path.join(results, "goals.json"), encoding="utf-8") as source:
        record = json.load(source)
    path = os.path.join(top, "README.md")
    with open(path, encoding="utf-8") as old:
        head, _, rest = old.read().partition(BEGIN)
    _, mark, tail = rest.partition(END)
    if not mark:
        raise ValueError(f"{path} has no marks for the results")
    with open(path, "w", encoding="utf-8") as new:
        new.write(head + BEGIN + "".join(_text(record)) + END + tail)
