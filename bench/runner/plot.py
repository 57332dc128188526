# SPDX-License-Identifier: BSD-3-Clause
"""Plots by gnuplot, each as SVG and PNG: lines for the limit, ours, and others."""

import os
import subprocess
import tempfile

FORMATS = {"svg": "svg size 900,600 dynamic background 'white' font 'sans,14'",
           "png": "pngcairo size 900,600 background 'white' font 'sans,12'"}


class Plot:
    """value(row) is what is plotted of a row, or None to leave it out."""

    def __init__(self, name, sweep, title, x, y, value):
        self.name = name
        self.sweep = sweep
        self.title = title
        self.x = x
        self.y = y
        self.value = value


BULK = ("bulk", "raw TCP stream", "two copies")


def _time(row):
    return None if row["line"].startswith(BULK) else row.get("p50_us", row.get("mean_us"))


def _bandwidth(row):
    theirs = row["case"]["who"] not in ("ours", "limit")
    return row["bytes_s"] / 1e9 if "bytes_s" in row and (theirs or row["line"].startswith(BULK)) else None


def _per_operation(row):
    return 1e6 / row["ops_s"] if "ops_s" in row else None


PLOTS = (
    Plot("latency-over-size", "size", "write + flush, one at a time", "bytes", "us, median",
         _time),
    Plot("bandwidth-over-size", "size", "write + flush, 16 (from 64 KiB on: 4) at a time", "bytes", "GB/s",
         _bandwidth),
    Plot("rate-over-depth", "depth", "operations of 64 B", "units of work at a time", "million/s",
         lambda row: row["ops_s"] / 1e6 if "ops_s" in row else None),
    Plot("cost-over-connections", "conns", "write 64 B + flush, one at a time on each connection", "connections",
         "us per operation", _per_operation),
)


def _series(plot, rows):
    """Each line's points, in the order of its first one."""
    series = {}
    for row in rows:
        value = plot.value(row) if "why" not in row else None
        if value:
            series.setdefault(row["line"], []).append((row["at"], value))
    return series


def _tail(rows):
    """How rare (1 / (1 - share)) against how long, for the distribution."""
    return {row["line"]: [(1 / (1 - percent / 100), us) for percent, us in row["dist"] if percent < 100]
            for row in rows if "dist" in row}


def _gnuplot(commands):
    subprocess.run(["gnuplot"], input=commands, text=True, check=True, stderr=subprocess.DEVNULL)


def _draw(path, settings, series, folder):
    parts = []
    for number, (line, points) in enumerate(series.items()):
        data = os.path.join(folder, f"{os.path.basename(path)}.{number}")
        with open(data, "w", encoding="ascii") as out:
            out.writelines(f"{x} {y}\n" for x, y in sorted(points))
        parts.append(f"'{data}' with linespoints linewidth 2 pointtype {number + 4} title \"{line}\"")
    for ending, terminal in FORMATS.items():
        _gnuplot(f"set terminal {terminal}\nset output '{path}.{ending}'\nset grid\nset key below\n"
                 f"{settings}\nplot {', '.join(parts)}\n")


def _axes(plot):
    return (f'set title "{plot.title}"\nset xlabel "{plot.x}"\nset ylabel "{plot.y}"\nset logscale y 10\n'
            f"set logscale x 2\nset format x '%.0b%B'\nset yrange [*:*] noextend\n")


TAIL = ('set title "write 64 B + flush, how long the slowest take"\nset xlabel "percent of the operations"\n'
        'set ylabel "us"\nset logscale xy\nset xtics ("0" 1, "50" 2, "90" 10, "99" 100, "99.9" 1000, '
        '"99.99" 10000, "99.999" 100000)\n')


def draw(sweep, rows, out):
    """The plots of a sweep's rows, into the folder out; returns their names."""
    drawn = []
    wanted = [(plot.name, _axes(plot), _series(plot, rows)) for plot in PLOTS if plot.sweep == sweep]
    if sweep == "dist":
        wanted.append(("distribution", TAIL, _tail(rows)))
    with tempfile.TemporaryDirectory() as folder:
        for name, settings, series in wanted:
            if series:
                _draw(os.path.join(out, name), settings, series, folder)
                drawn.append(name)
    return drawn
