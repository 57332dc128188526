# SPDX-License-Identifier: BSD-3-Clause
"""Plots by gnuplot, each as SVG and PNG. A plot shows one result with at most three lines."""

import dataclasses
import os
import subprocess
import tempfile
from typing import Callable

FORMATS = {"svg": "svg size 800,520 dynamic background 'white' font 'sans,14'",
           "png": "pngcairo size 800,520 background 'white' font 'sans,12'"}
COLOURS = ("#777777", "#0b5fad", "#c8501e")  # the limit has the first colour
POWERS = "set logscale x 2\nset format x '%.0b%B'\nset logscale y 10\nset yrange [*:*] noextend\n"
LINEAR = "set logscale x 2\nset format x '%.0f'\nset yrange [0:*]\n"
# The scale for rare values: a value that one of N operations reaches is at position N.
TAIL = ('set logscale xy 10\nset xtics ("0" 1, "50" 2, "90" 10, "99" 100, "99.9" 1000, "99.99" 10000, '
        '"99.999" 100000)\n')


def _time(row):
    return [(row["at"], row.get("p50_us", row.get("mean_us")))]


def _bandwidth(row):
    return [(row["at"], row["bytes_s"] / 1e9)]


def _rate(row):
    return [(row["at"], row["ops_s"] / 1e6)]


def _cost(row):
    return [(row["at"], 1e6 / row["ops_s"])]


def _tail(row):
    return [(1 / (1 - percent / 100), us) for percent, us in row.get("dist", []) if percent < 100]


LOWER, HIGHER = "lower is better", "higher is better"


@dataclasses.dataclass
class Plot:
    """A plot: at most three lines of the record, each with its name in the plot."""

    name: str  # name of the file
    title: str
    better: str
    x: str
    y: str
    axis: str
    points_of: Callable
    lines: dict


# The plots by their names in the record (points.py). A line that is not listed here is recorded,
# but not drawn.
PLOTS = {
    "persistent": Plot(
        "persistent-over-size", "A durable write: to this machine's disk, and to another machine's", LOWER,
        "bytes", "us, median", POWERS, _time,
        {"pwrite + fdatasync, local": "local disk: pwrite + fdatasync",
         "write + persistent flush, file on a disk": "other machine's disk: write + persistent flush",
         "write + flush to visibility": "other machine's memory, not durable: write + flush"}),
    "latency": Plot(
        "latency-over-size", "A write that is visible at the other end, compared with its transport", LOWER,
        "bytes", "us, median", POWERS, _time,
        {"raw TCP, there and back": "plain TCP, there and back", "write + flush, TCP": "write + flush over TCP",
         "write + flush, shm": "write + flush within one host"}),
    "bandwidth": Plot(
        "bandwidth-over-size", "Bulk data over TCP, compared with plain TCP", HIGHER, "bytes", "GB/s", POWERS, _bandwidth,
        {"raw TCP stream": "plain TCP stream", "write + flush, TCP": "writes + flushes",
         "write + flush, TCP, CRC": "the same with CRC"}),
    "rate": Plot(
        "rate-over-depth", "More at a time: operations of 64 B over TCP", HIGHER, "units of work at a time",
        "million/s", LINEAR, _rate,
        {"write + flush, TCP": "write + flush", "read, TCP": "read", "16 writes + flush, TCP": "16 writes + flush"}),
    "distribution": Plot(
        "distribution", "The slowest of many: 64 B, both ends poll", LOWER, "percent of the operations", "us", TAIL,
        _tail,
        {"raw TCP, both poll": "plain TCP, there and back", "write + flush, TCP, both poll": "write + flush over TCP",
         "write + flush, shm, both poll": "write + flush within one host"}),
    "connections": Plot(
        "cost-over-connections", "One connection more: write 64 B + flush, one at a time on each", LOWER,
        "connections", "us per operation", LINEAR, _cost,
        {"write + flush, TCP": "over TCP"}),
}


def _series(rows, shown):
    """The points of each line, in the order of the plot's lines."""
    series = {label: [] for label in shown.lines.values()}
    for row in rows:
        if "why" not in row and row["line"] in shown.lines:
            series[shown.lines[row["line"]]].extend(shown.points_of(row))
    return {label: sorted(points) for label, points in series.items() if points}


def _gnuplot(commands):
    subprocess.run(["gnuplot"], input=commands, text=True, check=True, stderr=subprocess.DEVNULL)


def _write_data(path, points):
    with open(path, "w", encoding="ascii") as out:
        out.writelines(f"{x} {y}\n" for x, y in points)


def _draw(path, settings, series, folder):
    parts = []
    for number, (label, points) in enumerate(series.items()):
        data = os.path.join(folder, f"{number}")
        _write_data(data, points)
        # A line through two points would suggest values between them.
        style = "linespoints" if len(points) > 2 else "points pointsize 1.5"
        parts.append(f"'{data}' with {style} linewidth 3 linecolor rgb '{COLOURS[number]}' pointtype {number + 5} "
                     f"title \"{label}\" noenhanced")
    for ending, terminal in FORMATS.items():
        _gnuplot(f"set terminal {terminal}\nset output '{path}.{ending}'\nset grid\n"
                 f"set bmargin {len(series) + 5}\nset key at screen 0.1,0.02 left bottom vertical reverse Left\n{settings}\nplot {', '.join(parts)}\n")


def draw_bars(bars, path, title, axis):
    """bars: (name, value, is it a row of this project?); the first bar is at the top."""
    height = len(bars)
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "bars")
        with open(data, "w", encoding="utf-8") as out:
            out.writelines(f'{value} {height - at} {int(ours)} "{value:.2f}" "{name}"\n'
                           for at, (name, value, ours) in enumerate(bars))
        box = f"'{data}' using ($1/2):(($3=={{ours}})?$2:NaN):($1/2):(0.35) with boxxyerror fillstyle solid noborder linecolor rgb '{{colour}}'"
        parts = [box.format(ours=0, colour=COLOURS[0]), box.format(ours=1, colour=COLOURS[1]),
                 f"'{data}' using 1:2:4 with labels left offset 0.5,0", f"'{data}' using (NaN):2:ytic(5)"]
        for ending, terminal in FORMATS.items():
            _gnuplot(f"set terminal {terminal}\nset output '{path}.{ending}'\nset title \"{title}\" noenhanced\n"
                     f'set xlabel "{axis}"\nset xrange [0:{1.15 * max(value for _, value, _ in bars)}]\n'
                     f"set yrange [0.4:{height + 0.6}]\nset ytics scale 0 noenhanced\nset grid x\nunset key\n"
                     f"plot {', '.join(parts)}\n")


def draw(rows, out):
    """Draw the plots of the rows into the folder `out`; returns their names."""
    drawn = []
    for key, shown in PLOTS.items():
        series = _series([row for row in rows if row["plot"] == key], shown)
        settings = (f'set title "{shown.title}\\n({shown.better})" noenhanced\nset xlabel "{shown.x}"\n'
                    f'set ylabel "{shown.y}"\n{shown.axis}')
        if series:
            with tempfile.TemporaryDirectory() as folder:
                _draw(os.path.join(out, shown.name), settings, series, folder)
            drawn.append(shown.name)
    return drawn
