# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Functions for tests in shell. Every test runs in a separate folder, on the build tree's file system, and ends the
# processes that it started, by their id. A script that includes this file lists in `logs` the files that a failure
# prints, and adds to `started` each process that it starts.
set -euo pipefail
export LC_ALL=C

work=$(mktemp -d "$RPMA_TEST_DIR/test.XXXXXX")
started=()
logs=()

cleanup() {
	local pid
	for pid in "${started[@]}"; do
		kill -CONT "$pid" 2>/dev/null || :
		kill -9 "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	rm -rf "$work"
}
trap cleanup EXIT
cd "$work"

fail() {
	local file
	printf 'FAILED: %s\n' "$*" >&2
	for file in "${logs[@]}"; do
		[ ! -s "$file" ] || sed "s/^/  $file: /" "$file" >&2
	done
	exit 1
}

wait_until() { # SECONDS COMMAND...
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.02
	done
}

is_gone() { ! kill -0 "$1" 2>/dev/null; }
