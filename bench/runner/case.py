# SPDX-License-Identifier: BSD-3-Clause
"""Cases: the words that identify a measurement, and the program that makes it."""

import json
import os
import signal
import subprocess

SKIPPED = 77
# The time limit beyond the measurement, for the start, the connections and sorting.
LIMIT_S = 60

DEFAULTS = {
    "size": "64", "depth": "1", "every": "1", "conns": "1", "ini": "poll", "tgt": "wait",
    "spin": "default", "crc": "auto", "flush": "visible", "where": "memory", "link": "loopback",
}


def parse(words):
    """A dictionary of words name=value, in their order."""
    return dict(word.split("=", 1) for word in words.split())


def key(case):
    """A key that is equal for a case with a default value and for the same case without this name."""
    full = {**DEFAULTS, **case}
    for name in ("suites", "ms"):
        full.pop(name, None)
    return " ".join(f"{name}={full[name]}" for name in sorted(full))


class Skipped(Exception):
    """The case cannot be measured on this machine; the text has the reason."""


class Failed(Exception):
    """The program failed; the text is its output."""


def _kill_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _run(command, env, limit_s):
    with subprocess.Popen(command, env=env, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            _kill_group(process)
            raise Failed(f"no end after {limit_s} s") from None
        except BaseException:
            _kill_group(process)
            raise
    return process.returncode, out, err.strip()


def _reason(err, code):
    """The last line on standard error, without the program's name at its start."""
    last = err.splitlines()[-1] if err else f"exit code {code}"
    return last.partition(": ")[2] or last


def run_program(command, env, ms):
    """The lines of JSON that a program prints, as dictionaries."""
    code, out, err = _run(command, env, LIMIT_S + ms // 1000)
    last = _reason(err, code)
    if code == SKIPPED:
        raise Skipped(last)
    if code:
        raise Failed(last)
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    if not lines:
        raise Failed("no result was printed")
    return lines


def program_path(folder, who):
    """The path of a program. Programs for durable writes are in a separate folder."""
    path = os.path.join(folder, "durable", who)
    return path if os.path.exists(path) else os.path.join(folder, who)


class Program:
    """limit, local, ours, rpmem or mirror: runs a case with both ends in the network of `place`."""

    def __init__(self, folder):
        self.folder = folder

    def run(self, case, place, ms):
        words = {**case, "ms": case.get("ms", ms)}
        words.pop("who")
        command = [program_path(self.folder, case["who"]), *place.words(),
                   *(f"{name}={value}" for name, value in words.items())]
        return run_program(command, dict(os.environ), int(words["ms"]))[0]
