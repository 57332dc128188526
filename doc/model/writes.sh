#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Searches writes.pml: the rules must hold, and the search with each changed rule must find a violation, in the
# configuration that the rule's line names.
# usage: writes.sh [CONFIGURATION...]    (threads writes; both by default)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

options_of() {
	case "$1" in
	threads) echo "-DPOSTS=0 -DSTALLS" ;;
	writes) echo "-DWAITS=0 -DSENDS=0 -DCLOSES -DPOSTS=2" ;;
	*)
		echo "writes.sh: unknown configuration '$1' (there are: threads writes)" >&2
		exit 2
		;;
	esac
}

# mutations: prints a line "NUMBER CONFIGURATION TEXT" for each mutation.
mutations() {
	sed -nE 's|^#define [A-Z_]+ ([0-9]+) /\* ([a-z]+): (.*) \*/$|\1 \2 \3|p' "$here/writes.pml"
}

# search CONFIGURATION NUMBER: succeeds if no state violates a rule, fails with 1 if a state does.
search() {
	local report
	# shellcheck disable=SC2046
	(cd "$work" && cp "$here/writes.pml" . && spin $(options_of "$1") -DBROKEN="$2" -a writes.pml >&2 &&
		cc -O1 -w -DSAFETY -o pan pan.c)
	report=$(cd "$work" && timeout 600 ./pan -m1000000 -w22)
	if grep -q 'errors: 0$' <<<"$report" && ! grep -qE 'max search depth|not completed' <<<"$report"; then
		return 0
	fi
	grep -q 'assertion violated' <<<"$report" || {
		printf '%s\n' "$report" >&2
		exit 3
	}
	return 1
}

[ $# -gt 0 ] || set -- threads writes
bad=0
for configuration in "$@"; do
	options_of "$configuration" >/dev/null
	if search "$configuration" 0; then
		echo "$configuration: holds"
	else
		echo "$configuration: VIOLATED"
		bad=1
	fi
	while read -r number where text; do
		[ "$where" = "$configuration" ] || continue
		if search "$configuration" "$number"; then
			echo "$configuration: NOT NOTICED: $text"
			bad=1
		else
			echo "$configuration: noticed: $text"
		fi
	done < <(mutations)
done
exit $bad
