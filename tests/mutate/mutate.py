#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Measures the tests: changes one operator of the product at a time, and checks whether a test of the same room fails.

mutate.py TREE [ROOM] [COUNT] [SEED]: works in a copy, so that the tree itself does not change. Prints one line for
each change. The exit status is 1 if all tests passed with a change that explained.txt does not explain.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from rooms import ROOMS, DEFAULT
from sites import sites_of

TIMEOUT_LEAST_S = 60  # the least limit for all tests of a room, because a change can make a test hang
EXPLAINED = Path(__file__).with_name("explained.txt")


class Failed(Exception):
    """Nothing can be measured; the text is a message for the user."""


def run(command, cwd, timeout=None):
    """(exit status, output) of a command; status None: the time limit was exceeded. All its processes are ended."""
    with subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
            return process.returncode, output.decode(errors="replace")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, process.communicate()[0].decode(errors="replace")


def copy_tree(source, target):
    """Copy the files in git, and new files. Their times are kept, so that only changed files are built again."""
    listed = subprocess.run([source / "cmake/tree-files.sh"], check=True,
                            capture_output=True).stdout.decode().split("\0")
    names = {name for name in listed if name and (source / name).is_file()}
    for name in sorted(names):
        old, new = source / name, target / name
        if new.is_file() and old.read_bytes() == new.read_bytes():
            continue
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(old, new)
    for path in list(target.glob("src/**/*.[ch]")):
        if str(path.relative_to(target)) not in names:
            path.unlink()


def explanations():
    """{(file, line before, line after): the reason why no test can notice the change}"""
    found = {}
    for number, line in enumerate(EXPLAINED.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split("\t") if part.strip()]
        if len(parts) != 4:
            raise Failed(f"{EXPLAINED.name}:{number}: file, line before, line after and reason, separated by tabs")
        found[tuple(parts[:3])] = parts[3]
    return found


class Bench:
    """The copy of the tree, and the tests of one room in it."""

    def __init__(self, tree, room):
        self.tree, self.build, self.room = tree, tree / "build", ROOMS[room]
        self.limit_s = None

    def configure(self):
        if (self.build / "build.ninja").exists():
            return
        launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        status, output = run(["cmake", "--preset", "default", "-DRPMA_BUILD_TESTS=ON", *launcher], self.tree)
        if status != 0:
            raise Failed(f"cmake failed:\n{output}")

    def make(self):
        return run(["ninja", "-C", str(self.build), *self.room.targets], self.tree)

    def test(self):
        """None if all tests passed. Otherwise the name of the failed test, or "the time limit"."""
        end = time.monotonic() + (self.limit_s or 1800)
        for tests in self.room.tests:
            status, output = run(["ctest", "--test-dir", str(self.build), "-R", tests, "-j", str(os.cpu_count()),
                                  "--timeout", "60", "--stop-on-failure", "--no-tests=error"], self.tree,
                                 max(1, end - time.monotonic()))
            if status is None:
                return "the time limit"
            if status != 0:
                failed = re.search(r"^\t *\d+ - (\S+) \(", output, re.MULTILINE)  # in ctest's last list
                return failed.group(1) if failed else f"ctest: {status}"
        return None

    def check_unchanged(self):
        status, output = self.make()
        if status != 0:
            raise Failed(f"the tree as it is cannot be built:\n{output}")
        begin = time.monotonic()
        noticed = self.test()
        if noticed:
            raise Failed(f"the tree as it is fails {noticed}, so nothing can be measured")
        self.limit_s = max(TIMEOUT_LEAST_S, 5 * (time.monotonic() - begin))

    def judge(self):
        status, output = self.make()
        if status != 0:
            if "error:" not in output:
                raise Failed(f"the build failed, though not in the compiler:\n{output[-2000:]}")
            return "the compiler"
        return self.test()


def drawn_sites(tree, rooms, count, seed):
    """[(room, file, site)]: a random choice of all sites of the rooms, in the order of the rooms."""
    every = []
    for room in rooms:
        for file in sorted(path for pattern in ROOMS[room].files for path in tree.glob(pattern)):
            every += [(room, file, site) for site in sites_of(file.read_text())]
    drawn = random.Random(seed).sample(every, min(count, len(every)))
    return sorted(drawn, key=lambda d: (rooms.index(d[0]), str(d[1]), d[2].begin)), len(every)


def measure_one(bench, file, site):
    """The test that noticed the change. The file is restored."""
    source = file.read_text()
    try:
        file.write_text(site.applied_to(source))
        return bench.judge()
    finally:
        file.write_text(source)


def measure(tree, rooms, count, seed):
    known, sums = explanations(), {}
    drawn, every = drawn_sites(tree, rooms, count, seed)
    print(f"{len(drawn)} of {every} possible changes, seed {seed}: {' '.join(rooms)}", flush=True)
    bench, current = None, None
    for room, file, site in drawn:
        if room != current:
            bench, current = Bench(tree, room), room
            bench.configure()
            bench.check_unchanged()
        source, name = file.read_text(), str(file.relative_to(tree))
        before, after = site.lines(source)
        why = known.get((name, before, after))
        begin = time.monotonic()
        noticed = None if why else measure_one(bench, file, site)
        verdict = "explained" if why else "noticed" if noticed else "LIVED"
        sums[verdict] = sums.get(verdict, 0) + 1
        print(f"{verdict}\t{name}:{site.line_number(source)}\t{before}\t{after}\t{why or noticed or '-'}"
              f"\t{time.monotonic() - begin:.1f} s", flush=True)
    print(", ".join(f"{sums.get(v, 0)} {v}" for v in ("noticed", "explained", "LIVED")))
    return 1 if sums.get("LIVED") else 0


def main(arguments):
    tree, room, count, seed = Path(arguments[0]), arguments[1], int(arguments[2]), int(arguments[3])
    if room != "all" and room not in ROOMS:
        raise Failed(f"there is no room '{room}' (there are: all {' '.join(ROOMS)})")
    copy = tree / "build-mutate"
    copy_tree(tree, copy)
    return measure(copy, DEFAULT if room == "all" else [room], count, seed)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failed as failure:
        sys.exit(f"mutate: {failure}")
