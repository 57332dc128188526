#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_line.py PROGRAM WORDS...: runs a benchmark's program, whose line must be as bench/README.md describes."""

import json
import subprocess
import sys

ORDER = ("min_us", "p50_us", "p90_us", "p99_us", "p999_us", "max_us")


def fail(why):
    sys.exit(f"{' '.join(sys.argv[1:])}: {why}")


def check_case(line):
    """The line must name the requested case."""
    for word in sys.argv[2:]:
        name, value = word.split("=", 1)
        if name != "ms" and str(line.get(name)) != value:
            fail(f"{name} is {line.get(name)}")


def check_times(line):
    times = [line[name] for name in ORDER]
    if times != sorted(times) or times[0] <= 0:
        fail(f"percentiles are not in order: {times}")
    if not times[0] <= line["mean_us"] <= times[-1]:
        fail(f"the mean {line['mean_us']} is outside of {times}")
    percents, values = zip(*line["dist"])
    if list(percents) != sorted(set(percents)) or list(values) != sorted(values):
        fail(f"the distribution is not in order: {line['dist']}")


def check(line):
    check_case(line)
    if line["count"] <= 0 or line["seconds"] <= 0:
        fail("nothing was measured")
    if abs(line["ops_s"] * line["seconds"] / line["count"] - 1) > 0.01:
        fail("the rate is not count / seconds")
    if "p50_us" in line:
        check_times(line)
    elif line["work"] != "stream":
        fail("no times were kept")
    if line["flush"] == "persistent" and line["durability"] == "file" and line["writebacks"] < line["count"]:
        fail(f"{line['writebacks']} write-backs for {line['count']} flushes")


def main():
    done = subprocess.run(sys.argv[1:], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr)
        sys.exit(done.returncode)
    lines = done.stdout.splitlines()
    if len(lines) != 1:
        fail(f"{len(lines)} lines were printed")
    check(json.loads(lines[0]))


if __name__ == "__main__":
    main()
