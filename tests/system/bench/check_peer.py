#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
check_peer.py SCRIPT LINK: a script of bench/peers lists its cases. The first case of each kind of work must print a
line as bench/README.md describes, and leave no process. Exit status 77: the script has no cases on this machine.
"""

import json
import os
import subprocess
import sys

SKIPPED = 77
ORDER = ("min_us", "p50_us", "p90_us", "p99_us", "p999_us", "max_us")


def fail(why):
    sys.exit(f"{' '.join(sys.argv[1:])}: {why}")


def run(*words):
    """The script's output, and the session in which it ran."""
    command = [sys.argv[1], *words]
    with subprocess.Popen(command, env={**os.environ, "BENCH_LINK": sys.argv[2]}, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        out, err = process.communicate()
    if process.returncode:
        sys.stderr.write(err)
        sys.exit(process.returncode)
    return out.splitlines(), process.pid


def processes_of(session):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
                state, _, _, sid = stat.read().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(sid) == session and state != "Z":
            yield pid


def first_of_each_work(lines):
    cases = {}
    for line in lines:
        case = dict(word.split("=", 1) for word in line.split())
        if not set(case.pop("suites").split(",")) <= {"goals", "size", "depth", "dist", "conns", "verbs"}:
            fail(f"unknown suites: {line}")
        cases.setdefault((case["who"], case["work"]), case)
    return cases.values()


def check(case, line):
    for name, value in case.items():
        if str(line.get(name)) != value:
            fail(f"{case}: {name} is {line.get(name)}")
    if line["link"] != sys.argv[2] or line["count"] <= 0:
        fail(f"{case}: {line}")
    if line["work"] == "instructions":
        if line["instructions"] <= 0:
            fail(f"{case}: no instructions")
        return
    times = [line[name] for name in ORDER if name in line]
    if times != sorted(times) or (times and times[0] <= 0):
        fail(f"{case}: times are not in order: {line}")
    if not times and "mean_us" not in line and line["work"] != "write" and not line["work"].endswith("_bw"):
        fail(f"{case}: no times")
    if abs(line["ops_s"] * line["seconds"] / line["count"] - 1) > 0.01:
        fail(f"{case}: the rate is not count / seconds: {line}")


def main():
    cases = first_of_each_work(run("list")[0])
    if not cases:
        sys.exit(SKIPPED)
    for case in cases:
        lines, session = run("run", *(f"{name}={value}" for name, value in case.items()), "ms=20")
        if len(lines) != 1:
            fail(f"{case}: {len(lines)} lines")
        check(case, json.loads(lines[0]))
        left = list(processes_of(session))
        if left:
            fail(f"{case}: processes are left: {left}")


if __name__ == "__main__":
    main()
