#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
demo_as_shown.py DOCUMENT DEMO BUILD_DIR: runs the demonstration, which must succeed and print the lines that the
document shows.

Each line of the block "```text demo" must be printed, in this order; numbers may differ, and "..." matches anything.
"""

import re
import subprocess
import sys


def shown(document):
    with open(document, encoding="utf-8") as source:
        lines = re.search(r"^```text demo\n(.*?)^```$", source.read(), re.M | re.S)[1].splitlines()
    assert len(lines) > 5, "the document shows hardly anything"
    for line in lines:
        yield line, re.sub(r"\d+", r"[0-9]+", ".*".join(re.escape(part) for part in line.split("...")))


def main():
    document, demo, build = sys.argv[1:]
    done = subprocess.run([demo, build], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout)
    if done.returncode:
        sys.exit(done.returncode)
    printed = re.sub("\033\\[[0-9]*m", "", done.stdout)
    at = 0
    for line, pattern in shown(document):
        found = re.compile(pattern).search(printed, at)
        if not found:
            sys.exit(f"FAILED: {document} shows a line that does not come, or not here: {line}")
        at = found.end()


main()
