#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""run.py FOLDER SKIPS RUNNER... [-- NAME...]: runs rdma-core's Python tests by RUNNER, e.g. `softrnic run`, each file in a
separate process, and compares the results with the list SKIPS. fetch.sh has put the tests into FOLDER. With NAMEs it runs
only the tests whose name contains one. Succeeds if no test failed, and exactly the tests of the list were skipped.

The files for devices of two vendors (mlx5, efa) are omitted: they skip all of their tests on any other device."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

PYTHON = "/usr/bin/python3"  # the bindings are built for Debian's Python
DEPENDS = "On some machines:"  # a test with such a reason may skip or run
TEST_S = 30  # the limit for one test; the longest takes 2 s
SETTINGS = {"test_rdmacm": {"SOFTRNIC_SYSFS": "device"}}  # this file looks for a network device in sysfs
FILE_S = 300  # the limit for all tests of a file, also if the process does not end


def read_skips(path):
    """{test: reason} of the list: a line that begins with '# ' is the reason of the tests in the next lines."""
    skips, reason = {}, None
    for line in path.read_text().splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line.strip():
            skips[line.strip()] = reason
    return skips


def run_file(folder, module, runner, names):
    """The result of each test: {test: (outcome, detail)}."""
    here = pathlib.Path(__file__).resolve().parent
    command = [*runner, PYTHON, str(here / "one_file.py"), str(folder), module, str(TEST_S), *names]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               cwd=folder, start_new_session=True, env={**os.environ, **SETTINGS.get(module, {})})
    try:
        out, err = process.communicate(timeout=FILE_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
    outcomes = {}
    for line in out.splitlines():
        if line.startswith('{"test"'):
            row = json.loads(line)
            if row["outcome"] != "listed" or row["test"] not in outcomes:
                outcomes[row["test"]] = (row["outcome"], row.get("detail", ""))
    ended = f"the process ended before (status {process.returncode})\n{err[-3000:]}"
    lost = {test: ("failed", ended) for test, (outcome, _) in outcomes.items() if outcome == "listed"}
    if not outcomes and process.returncode:
        lost[module] = ("failed", ended)
    return {**outcomes, **lost}


def compare(outcomes, skips, all_of_them):
    """Print the differences from the list. Returns their number."""
    differs = 0
    for test, (outcome, detail) in sorted(outcomes.items()):
        if outcome == "failed":
            print(f"FAILED   {test}\n    " + "\n    ".join(detail.strip().splitlines()[-12:]))
            differs += 1
        elif outcome == "skipped" and test not in skips:
            print(f"SKIPPED  {test}: {detail}")
            differs += 1
        elif outcome == "ok" and not skips.get(test, DEPENDS).startswith(DEPENDS):
            print(f"OK NOW   {test}: take it out of the list ({skips[test]})")
            differs += 1
    for test in sorted(set(skips) - set(outcomes)) if all_of_them else ():
        print(f"UNKNOWN  {test}: in the list, and no test")
        differs += 1
    return differs


def main():
    arguments, names = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, names = arguments[:at], arguments[at + 1:]
    folder, skips, runner = pathlib.Path(arguments[0]).resolve(), read_skips(pathlib.Path(arguments[1])), arguments[2:]
    program = shutil.which(runner[0]) or sys.exit(f"{runner[0]} is no program")
    runner[0] = str(pathlib.Path(program).resolve())
    outcomes = {}
    for path in sorted((folder / "tests").glob("test_*.py")):
        if not path.name.startswith(("test_mlx5", "test_efa")):
            outcomes.update(run_file(folder, path.stem, runner, names))
    differs = compare(outcomes, skips, not names)
    count = {kind: sum(1 for outcome, _ in outcomes.values() if outcome == kind) for kind in ("ok", "failed", "skipped")}
    print(f"rdma-core's Python tests: {len(outcomes)} run, {count['ok']} ok, {count['failed']} failed, "
          f"{count['skipped']} skipped; {differs} differ from the list")
    return 1 if differs or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
