# SPDX-License-Identifier: BSD-3-Clause
"""
The results of durable.py as text: lines for a terminal, tables for bench/README.md, a sentence and a plot for
README.md.
"""

from .durable import FIRST, FLOOR, ROWS, is_durable, waits_for_medium

PLOT = "durable-writes"  # the name of the plot's files
TITLE = "A durable write of 64 B, relative to a local one\\n(lower is better; all on one disk)"
UNITS = ((1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
NAIVE = "naive: send, pwrite, fdatasync, answer"
# The sentence in README.md: a row, and the row's words in that sentence.
SENTENCE = (("librpma over TCP", "{} x over TCP"),
            ("librpma over rings", "{} x over shared memory"),
            (NAIVE, "and {} x by a hand-written loop of `recv`, `pwrite`, `fdatasync`, `send` over TCP"))


def _size(size):
    factor, unit = next((factor, unit) for factor, unit in UNITS if size >= factor)
    return f"{size // factor} {unit}"


def cell_name(cell):
    size, depth, conns = cell
    clients = "one client" if conns == 1 else f"{conns} clients"
    return f"{_size(size)}, {depth} at a time, {clients}"


def _cells(rows):
    """The cells in the order in which they were measured."""
    return list(dict.fromkeys(tuple(row["cell"]) for row in rows))


def _of(rows, cell):
    return [row for row in rows if tuple(row["cell"]) == cell]


def _rate(row):
    return f"{row['ops_s']:,.0f}" if row["ops_s"] >= 10 else f"{row['ops_s']:.1f}"


def _ratio(value):
    return "" if value is None else f"{value:.2f}"


def _spread(row):
    found = row.get("ratios", ())
    return f"{_ratio(min(found))} .. {_ratio(max(found))}" if len(found) > 1 else ""


def _numbers(row):
    return f"{row['p50_us']:.0f}", f"{row['p99_us']:.0f}", _rate(row), _ratio(row.get("ratio")), _spread(row)


def lines(rows):
    for cell in _cells(rows):
        yield f"{cell_name(cell):<40}{'median us':>12}{'p99 us':>12}{'ops/s':>10}{'x local':>10}  rounds"
        for row in _of(rows, cell):
            if "why" in row:
                yield f"  {row['row']:<38}  not measured: {row['why']}"
                continue
            p50, p99, rate, ratio, spread = _numbers(row)
            yield f"  {row['row']:<38}{p50:>12}{p99:>12}{rate:>10}{ratio:>10}  {spread}"
        yield ""


def _seen(seen):
    """The calls that occurred once for each write, or why they are not known."""
    if "why" in seen:
        return f"not looked at: {seen['why']}"
    if not is_durable(seen):
        return f"**not durable**: {seen['calls']} for {seen['writes']} writes"
    return ", ".join(f"`{call}`" for call, count in sorted(waits_for_medium(seen).items())
                     if count >= 0.9 * seen["writes"])


def _bold(row, text):
    return f"**{text}**" if row["ours"] else text


def _first(record):
    yield f"| {cell_name(FIRST)} | place of the bytes at the acknowledgement | calls seen for each write | median us | p99 us | ops/s | x local | rounds |\n"
    yield "|---|---|---|---|---|---|---|---|\n"
    for row in _of(record["rows"], FIRST):
        seen = record["seen"].get(row["row"])
        if seen:
            yield (f"| {_bold(row, row['row'])} | {seen['guarantee']} | {_seen(seen)} | "
                   f"{' | '.join(_numbers(row))} |\n")
        else:
            yield f"| {_bold(row, row['row'])} | not measured: {row['why']} | | | | | | |\n"


def _names(record):
    """The names of all measured rows in their order. (The first cell does not have all rows.)"""
    measured = {row["row"] for row in record["rows"]}
    return [row.name for row in ROWS if row.name in measured]


def _value(row):
    return f"{_ratio(row['ratio'])} ({_rate(row)})" if row and "ratio" in row else ""


def _others(record):
    rows = record["rows"]
    cells = [cell for cell in _cells(rows) if cell != FIRST]
    yield "| x local (ops/s) | " + " | ".join(cell_name(cell) for cell in cells) + " |\n"
    yield "|---" * (1 + len(cells)) + "|\n"
    for name in _names(record):
        found = {tuple(row["cell"]): row for row in rows if row["row"] == name}
        yield (f"| {_bold(next(iter(found.values())), name)} | "
               + " | ".join(_value(found.get(cell)) for cell in cells) + " |\n")


def markdown(record, where):
    yield f"{where}; medians.\n\n"
    yield from _first(record)
    yield "\n"
    yield from _others(record)


def _first_ratios(record):
    return {row["row"]: row["ratio"] for row in _of(record["rows"], FIRST) if "ratio" in row}


def sentence(record, where):
    """A sentence about the rows that were measured."""
    found = _first_ratios(record)
    shown = [words.format(_ratio(found[name])) for name, words in SENTENCE if name in found]
    return ("The time of a durable write of 64 B to another process, as a multiple of the time of a local `pwrite` + "
            f"`fdatasync`, is {', '.join(shown)}. All were measured in the same minutes, on one disk ({where}). The picture "
            "also shows [other software](bench/README.md#durable-writes-beside-other-software).\n")


def bars(record):
    """(name, x local, is it a row of this project?) for writes to another process, the fastest first."""
    ours = {row["row"]: row["ours"] for row in record["rows"]}
    return sorted(((name, ratio, ours[name]) for name, ratio in _first_ratios(record).items()
                   if not name.startswith("local:") or name == FLOOR), key=lambda bar: bar[1])
