#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes a script of the commands of a document, with a check of the output shown.

usage: script.py DOCUMENT install|rest

A block "```sh" is executed, in the one shell of the script; "```sh install" only by `install`, the others only by
`rest`; "```sh fails" must fail. Each line of a "```text" behind it must be in the output of that block; "..." in it
stands for anything.
"""
import re
import shlex
import sys

PROLOGUE = r"""set -euo pipefail
out=$(mktemp -d)
block='the beginning'
exec 3>&2
finish() {
	status=$?
	exec 2>&3 # out of the block
	[ $status = 0 ] || {
		echo "FAILED: $block, with status $status and the output:" >&2
		cat "$out/now" >&2
	}
	rm -rf "$out"
}
trap finish EXIT
# shows PATTERN: a line of the output is like it
shows() {
	local line
	while IFS= read -r line; do
		# shellcheck disable=SC2053
		[[ $line != $1 ]] || return 0
	done <"$out/now"
	echo "no line of the output is: $1" >&2
	return 1
}
"""


def blocks(text):
    """(line number, words behind the fence, contents) of each block."""
    for match in re.finditer(r"^```(\S.*)\n((?:.*\n)*?)```$", text, re.MULTILINE):
        yield text.count("\n", 0, match.start()) + 2, match[1].split(), match[2]


def pattern(line):
    return "*".join(re.sub(r"([^\w /:=.,-])", r"\\\1", part) for part in line.split("..."))


def main():
    name, part = sys.argv[1:]
    wanted = False
    count = 0
    print(PROLOGUE)
    with open(name, encoding="utf-8") as file:
        text = file.read()
    for line, words, body in blocks(text):
        if words[0] == "sh":
            wanted = ("install" in words) == (part == "install")
            if not wanted:
                continue
            count += 1
            print(f"block='the commands of line {line}'")
            if "fails" in words:
                print(f"if bash -euo pipefail -c {shlex.quote(body)} >\"$out/now\" 2>&1; then false; fi")
            else:
                print('{\n' + body + '} >"$out/now" 2>&1')
        elif words[0] == "text" and wanted:
            for shown in body.splitlines():
                print(f"shows {shlex.quote(pattern(shown))}")
    if not count:
        sys.exit(f"{name} has no commands to {part}")
    print(f"echo {count} blocks of commands did what they say")


main()
