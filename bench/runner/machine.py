# SPDX-License-Identifier: BSD-3-Clause
"""The circumstances of a measurement: the machine, and the revision of the source."""

import datetime
import os
import platform
import subprocess

LOAD_HIGH = 0.5


def _cpu_model():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:
        for line in info:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def _git(folder, *args):
    done = subprocess.run(["git", "-C", folder, *args], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def describe(folder):
    revision = _git(folder, "rev-parse", "--short=12", "HEAD") or "unknown"
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!bench/results")
    return {
        "cpu": _cpu_model(), "cores": len(os.sched_getaffinity(0)), "kernel": platform.release(),
        "load": [round(value, 2) for value in os.getloadavg()],
        "revision": revision + ("+changes" if changed else ""),
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }


def warning(machine):
    """Why the results may be wrong, or None."""
    if machine["load"][0] <= LOAD_HIGH:
        return None
    return (f"the load of this machine is {machine['load'][0]}: other work disturbs the measurement, "
            "more so the fewer cores there are")
