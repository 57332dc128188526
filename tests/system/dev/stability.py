#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""stability.py SOURCE_DIR BUILD_DIR: checks that doc/stability.md names each library's version nodes, the versions in
the sources, and only tests that exist. So a change of one of these has to change the page as well.
"""

import glob
import os
import re
import subprocess
import sys

# For each row of the page: the first words of the row, the file that has the version, and the
# expression that finds the version there. The row's second column begins with that version.
VERSIONS = (
    ("extensions between", "src/softrnic/proto/ext_hello.h", r"#define EXT_HELLO_MAJOR (\d+)"),
    ("mirror: greetings", "src/mirror/core/version.h", r"#define VERSION_FINDINGS (\d+)"),
    ("librpmem and rpmemd", "src/rpmem/wire/frame.h", r"#define WIRE_VERSION +(\d+)"),
    ("librpmem and rpmemd", "src/rpmem/wire/lane.c", r"#define LANE_VERSION +(\d+)"),
    ("`rpma serve` and its clients", "src/regions/hello.h", r"#define HELLO_VERSION +(\d+)"),
    ("queue pairs without", "src/softrnic/proto/meet.c", r"#define MEET_VERSION (\d+)u"),
    ("queue pairs without", "src/softrnic/proto/ud.c", r"#define UD_VERSION +(\d+)u"),
    ("queue pairs without", "src/softrnic/proto/cm_qp.c", r"#define CM_QP_VERSION +(\d+)u"),
    ("record of a served file", "src/regions/file_record.c", r"#define FILE_RECORD_VERSION (\d+)"),
    ("metadata of a copy", "doc/mirror-format.md", r"format \((\d+)\): the format of the register's record"),
    ("record of a set", "doc/mirror-format.md", r'\{"format":(\d+),'),
)
LIBRARIES = {"rpma": "librpma.so.0", "rpmem": "librpmem.so.1", "regions": "librpmafile.so.0", "mirror": "librpmirror.so.0"}


def read(*parts):
    """The text of a file of the tree."""
    with open(os.path.join(*parts), encoding="utf-8") as source:
        return source.read()


def columns(page, first):
    """The columns of the row that begins with `first`; there has to be exactly one."""
    rows = [line for line in page.split("\n") if line.startswith(f"| {first}")]
    if len(rows) != 1:
        return [f"{len(rows)} rows begin with '{first}'"]
    return [cell.strip() for cell in rows[0].strip("| ").split("|")]


def judge(source, tests):
    """Yields a line of text for each fault."""
    page = read(source, "doc/stability.md")
    for first, path, pattern in VERSIONS:
        found = re.search(pattern, read(source, path))
        stated = re.search(r"\d+", (columns(page, first) + [""])[1])
        if not found or not stated or found[1] != stated[0]:
            yield f"'{first}': {path} has {found and found[1]}, the page has {stated and stated[0]}"
    # Greetings also have the lowest version that the programs support: the version before the
    # newest, as version.c computes it.
    newest, lowest = (re.findall(r"\d+", columns(page, "mirror: greetings")[1]) + ["0", "0"])[:2]
    if int(lowest) != int(newest) - 1 or "VERSION_LOWEST (VERSION_NEWEST - 1)" not in read(source, "src/mirror/core/version.c"):
        yield "mirror: the page and version.c differ about the lowest version"
    for room, library in LIBRARIES.items():
        maps = glob.glob(os.path.join(source, "src", room, "*.map"))
        nodes = sorted({node for path in maps for node in re.findall(r"^(LIB\w+[\d.]+) \{", read(path), re.M)})
        stated = sorted(re.findall(r"`(LIB[\w.]+)`", (columns(page, f"`{library}`") + [""])[1]))
        if not nodes or nodes != stated:
            yield f"{library} has the nodes {nodes}, the page has {stated}"
    cited = set(re.findall(r"`((?:unit|abi|contract|system|tool|python|static)\.[\w.+-]+)`", page))
    for name in sorted(cited):
        if not any(test == name or test.startswith(f"{name}.") for test in tests):
            yield f"there is no test {name}"
    if len(cited) < 20:
        yield f"the page cites {len(cited)} tests only"


def main(source, build):
    """Prints the faults."""
    listed = subprocess.run(["ctest", "--test-dir", build, "-N"], check=True, capture_output=True, text=True).stdout
    wrong = list(judge(source, re.findall(r"^ *Test +#\d+: (\S+)", listed, re.M)))
    for line in wrong:
        print(f"doc/stability.md: {line}", file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
