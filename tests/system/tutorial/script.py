#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes a script of the commands of a document, and of checks of the output that the document shows.

usage: script.py DOCUMENT install|rest

The script executes all blocks "```sh" in one shell. `install` selects the blocks "```sh install", `rest` all other
blocks. A block "```sh fails" must fail. Each line of the next block "```text" must be in the output of the block;
"..." in such a line matches any text.

Two terminals: the command of a block "```sh first" listens in a second terminal. Control-C ends it when the next such
command begins, or at the end of the script. The first line of a block "```sh terminals" also runs in the second
terminal, and must end by itself after the other lines. The lines of a block "```sh ci" must be in .ci/run; the script
does not execute them. It ignores a block "```text demo", which shows the demonstration (demo_as_shown.py).
"""
import os
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
	control_c >&2 || status=1
	[ $status = 0 ] || {
		echo "FAILED: $block, with status $status and the output:" >&2
		cat "$out/now" >&2
	}
	rm -rf "$out"
	exit $status
}
trap finish EXIT
# listeners: prints how many sockets listen. A program in the first terminal is ready when it
# listens.
listeners() { cat /proc/net/tcp /proc/net/tcp6 | awk '$4 == "0A"' | wc -l; }
first=
# in_first_terminal COMMANDS: runs the commands in the first terminal.
in_first_terminal() {
	local before
	control_c || return 1
	before=$(listeners)
	env --default-signal=INT bash -c "exec $1" >"$out/first" 2>&1 &
	first=$!
	for _ in {1..300}; do
		[ "$(listeners)" -le "$before" ] || return 0
		kill -0 $first 2>/dev/null || break
		sleep 0.05
	done
	cat "$out/first" >&2
	echo "it does not listen: $1" >&2
	return 1
}
# ends_within SECONDS: the program in the first terminal must end, with status 0 or by control-C.
ends_within() {
	local i status=0
	for ((i = 0; i < $1 * 20; i++)); do
		kill -0 $first 2>/dev/null || break
		sleep 0.05
	done
	cat "$out/first"
	! kill -0 $first 2>/dev/null || return 1
	wait $first || status=$?
	first=
	[ $status = 0 ] || [ $status = 130 ]
}
control_c() {
	[ -n "$first" ] || return 0
	kill -INT $first 2>/dev/null || :
	ends_within 20 || { echo "control-C does not end the program in the first terminal" >&2; return 1; }
}
# shows PATTERN: a line of the output must match the pattern.
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
    """(line number, words after the fence, content) of each block."""
    for match in re.finditer(r"^```(\S.*)\n((?:.*\n)*?)```$", text, re.MULTILINE):
        yield text.count("\n", 0, match.start()) + 2, match[1].split(), match[2]


def without_comment(line):
    return re.sub(r"\s+# .*", "", line)


def commands(name, words, body):
    """The lines of the script for a block."""
    lines = [line for line in body.split("\n") if without_comment(line) and not line.startswith("#")]
    if "ci" in words:
        with open(os.path.join(os.path.dirname(os.path.abspath(name)), ".ci/run"), encoding="utf-8") as run:
            missing = {without_comment(line) for line in lines} - set(run.read().split("\n"))
        if missing:
            sys.exit(f"{name}: .ci/run does not run {', '.join(missing)}")
        return ""
    if "fails" in words:
        return f"if bash -euo pipefail -c {shlex.quote(body)} >\"$out/now\" 2>&1; then false; fi"
    if "first" in words:
        return f"in_first_terminal {shlex.quote(without_comment(lines[0]))}"
    if "terminals" in words:
        rest = "\n".join(lines[1:])
        return (f"in_first_terminal {shlex.quote(without_comment(lines[0]))}\n"
                "{\n" + rest + '\nends_within 30\n} >"$out/now" 2>&1')
    return "{\n" + body + '} >"$out/now" 2>&1'


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
            print(commands(name, words, body))
        elif words[0] == "text" and wanted and "demo" not in words:
            for shown in body.splitlines():
                print(f"shows {shlex.quote(pattern(shown))}")
    if not count:
        sys.exit(f"{name} has no commands to {part}")
    print(f"echo {count} blocks of commands did what they say")


if __name__ == "__main__":
    main()
