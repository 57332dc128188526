#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes a script of the commands of a page of doc/operations.

usage: page.py PAGE [SECTION...]    the page's first section of commands, then those whose title contains a SECTION
       page.py --first PAGE         only the first section
A page with "<!-- first: OTHER -->" begins with the first section of that other page.

A block "```sh on HOST..." is executed on each of these hosts in turn; with "fails" it must fail. Each line of the next
block "```text" must be in the output of that block; "..." in such a line matches any text. The test executes the
commands of a comment "<!-- test: COMMANDS -->" at that place: they cause the failure, or check a promise of the page.
"""
import os
import re
import shlex
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tutorial"))
from script import pattern  # pylint: disable=wrong-import-position

PART = re.compile(r"^## (?P<title>.+)$|^<!-- test:(?P<test>(?:.|\n)*?)-->$|^```(?P<fence>\S.*)\n(?P<body>(?:.*\n)*?)```$",
                  re.MULTILINE)


def sections(text):
    """(title, parts) of each section that has commands."""
    title, parts = "the beginning", []
    for match in PART.finditer(text):
        if match["title"]:
            if parts:
                yield title, parts
            title, parts = match["title"], []
        else:
            parts.append((text.count("\n", 0, match.start()) + 1, match))
    if parts:
        yield title, parts


def block(name, line, words, body):
    """The script's lines for a block of commands."""
    if "on" not in words:
        sys.exit(f"{name}:{line}: say on which host: ```sh on a")
    hosts = [word for word in words[words.index("on") + 1:] if word != "fails"]
    run = f"on_each {' '.join(hosts)} <<<{shlex.quote(body)}"
    where = shlex.quote(f"{name}:{line}, on {' '.join(hosts)}")
    if "fails" in words:
        run = f"! {run} || fail \"$block succeeds: $(cat \"$scratch/now\")\""
    else:
        run += " || fail \"$block fails: $(cat \"$scratch/now\")\""
    return [f"block={where}", run]


def part(name, line, match):
    if match["test"]:
        return [f"block={shlex.quote(f'{name}:{line}, the test')}", match["test"].strip()]
    words = match["fence"].split()
    if words[0] == "sh" and "install" in words:  # the packages' tests execute these
        return []
    if words[0] == "sh":
        return block(name, line, words, match["body"])
    if words[0] == "text":
        return [f"shows {shlex.quote(pattern(shown))}" for shown in match["body"].splitlines()]
    return []


def load(name):
    with open(name, encoding="utf-8") as file:
        return file.read()


def emit(name, title, parts):
    print(f"section {shlex.quote(title)}")
    for line, match in parts:
        print("\n".join(part(os.path.basename(name), line, match)))


def emit_first(name):
    emit(name, *next(sections(load(name))))


def main():
    name, wanted = sys.argv[1], sys.argv[2:]
    if name == "--first":
        emit_first(wanted[0])
        return
    text = load(name)
    found = list(sections(text))
    missing = [word for word in wanted if not any(word in title for title, _ in found)]
    if missing or not found:
        sys.exit(f"{name} has no section with commands: {', '.join(missing)}")
    other = re.search(r"^<!-- first: (\S+) -->$", text, re.MULTILINE)
    if other:
        emit_first(os.path.join(os.path.dirname(name), other[1]))
    for number, (title, parts) in enumerate(found):
        if (number == 0 and not other) or not wanted or any(word in title for word in wanted):
            emit(name, title, parts)
    print("section_end")


if __name__ == "__main__":
    main()
