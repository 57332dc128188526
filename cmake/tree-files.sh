#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Prints the existing files of this tree, with a NUL after each: in a repository the files in git and new files that git
# does not ignore, in an unpacked archive all files except build folders. With ENDINGs, only files whose names end with
# one of them.
# usage: tree-files.sh [ENDING...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

list() {
	# The check looks for .git in this folder, because an archive can be unpacked inside another
	# project's repository, which does not have the archive's files.
	if [ -e .git ]; then
		git ls-files -z --cached --others --exclude-standard
	else
		find . \( -path './build*' -o -name __pycache__ \) -prune -o ! -type d -printf '%P\0' | LC_ALL=C sort -z
	fi
}

list | while IFS= read -r -d '' file; do
	[ -e "$file" ] || [ -L "$file" ] || continue
	[ $# -gt 0 ] || printf '%s\0' "$file"
	for ending; do
		[[ $file != *"$ending" ]] || printf '%s\0' "$file"
	done
done
