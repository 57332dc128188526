# SPDX-License-Identifier: BSD-3-Clause
"""Other libraries: each is a script bench/peers/NAME.sh with the words `list` and `run`."""

import glob
import os
import subprocess

from . import case as cases

LIST_LIMIT_S = 20


def _environment(folder, place):
    return {**os.environ, "BENCH_BIN": folder, "BENCH_ADDR": place.addr, "BENCH_LINK": place.link,
            "BENCH_TARGET": place.target, "BENCH_INITIATOR": place.initiator}


class Peer:
    def __init__(self, script, folder):
        self.script = script
        self.folder = folder

    def list(self, place):
        """The cases that the script can measure at this place; none if its library is not installed."""
        try:
            done = subprocess.run([self.script, "list"], env=_environment(self.folder, place),
                                  capture_output=True, text=True, check=False,
                                  timeout=LIST_LIMIT_S)
        except subprocess.TimeoutExpired:
            return []
        return [cases.parse(line) for line in done.stdout.splitlines() if "=" in line]

    def run(self, case, place, ms):
        words = {**case, "ms": case.get("ms", ms)}
        words.pop("suites", None)
        return cases.run_program([self.script, "run", *(f"{name}={value}" for name, value in words.items())],
                                 _environment(self.folder, place), int(words["ms"]))[0]


def find(scripts, build_folder):
    """The scripts in the folder `scripts`; build_folder has the programs."""
    found = sorted(glob.glob(os.path.join(scripts, "*.sh")))
    return [Peer(script, build_folder) for script in found if os.access(script, os.X_OK)]
