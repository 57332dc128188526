# SPDX-License-Identifier: BSD-3-Clause
"""Plots by gnuplot, each as SVG and PNG: lines for the limit, ours, and others."""

import os
import subprocess
import tempfile

FORMATS = {"svg": "svg size 900,640 dynamic background 'white' font 'sans,14'",
           "png": "pngcairo size 900,640 background 'white' font 'sans,12'"}
POWERS = "set logscale x 2\nset format x '%.0b%B'\nset logscale y 10\nset yrange [*:*] noextend\n"
LINEAR = "set logscale x 2\nset format x '%.0f'\nset yrange [0:*]\n"
# The rarer, the further to the right: how many there are for each one that takes so long.
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


# The rows' plot: the file's name, title, axes, the points of a row.
PLOTS = {
    "latency": ("latency-over-size", "one operation at a time, both ends poll", "bytes", "us, median", POWERS, _time),
    "bandwidth": ("bandwidth-over-size", "several at a time: 16, from 64 KiB on 4", "bytes", "GB/s", POWERS,
                  _bandwidth),
    "persistent": ("persistent-over-size", "flush to persistence, one at a time", "bytes", "us, median", POWERS, _time),
    "rate": ("rate-over-depth", "operations of 64 B", "units of work at a time", "million/s", LINEAR, _rate),
    "distribution": ("distribution", "64 B, how long the slowest take", "percent of the operations", "us", TAIL, _tail),
    "connections": ("cost-over-connections", "write 64 B + flush, one at a time on each connection", "connections",
                    "us per operation", LINEAR, _cost),
}


def _series(rows, points_of):
    """Each line's points, in the order of its first row."""
    series = {}
    for row in rows:
        if "why" not in row:
            series.setdefault(row["line"], []).extend(points_of(row))
    return {line: sorted(points) for line, points in series.items() if points}


def _gnuplot(commands):
    subprocess.run(["gnuplot"], input=commands, text=True, check=True, stderr=subprocess.DEVNULL)


def _write_data(path, points):
    with open(path, "w", encoding="ascii") as out:
        out.writelines(f"{x} {y}\n" for x, y in points)


def _draw(path, settings, series, folder):
    parts = []
    for number, (line, points) in enumerate(series.items()):
        data = os.path.join(folder, f"{number}")
        _write_data(data, points)
        # A line through two points would say something about what lies between them.
        style = "linespoints" if len(points) > 2 else "points pointsize 1.5"
        parts.append(f"'{data}' with {style} linewidth 2 linetype {number % 8 + 1} dashtype {number // 8 + 1} "
                     f"pointtype {number % 10 + 4} title \"{line}\" noenhanced")
    for ending, terminal in FORMATS.items():
        _gnuplot(f"set terminal {terminal}\nset output '{path}.{ending}'\nset grid\n"
                 f"set key bmargin center horizontal\n{settings}\nplot {', '.join(parts)}\n")


def draw(rows, out):
    """The plots that the rows belong to, into the folder out; returns their names."""
    drawn = []
    for plot, (name, title, x, y, axis, points_of) in PLOTS.items():
        series = _series([row for row in rows if row["plot"] == plot], points_of)
        settings = f'set title "{title}"\nset xlabel "{x}"\nset ylabel "{y}"\n{axis}'
        if series:
            with tempfile.TemporaryDirectory() as folder:
                _draw(os.path.join(out, name), settings, series, folder)
            drawn.append(name)
    return drawn
