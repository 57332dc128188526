#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Search mirror.pml: the rules as they are must hold, and every mutation must be caught.
# usage: check.sh [CONFIGURATION...]    (views records members config lease orders; all of them)
#        check.sh large [CONFIGURATION...]  the rules as they are, with more of everything: minutes
#        check.sh trace MUTATION        print the shortest way into what a mutation breaks
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

options_of() {
	case "$1" in
	views) echo "-DMEMBERS=2 -DPROMOTIONS=3 -DWRITES=2 -DCRASHES=2 -DDEMOTES=1" ;;
	records) echo "-DMEMBERS=3 -DPROMOTIONS=3 -DWRITES=1 -DCRASHES=2 -DSTARTED=1 -DLATE=0" ;;
	members) echo "-DMEMBERS=2 -DPROMOTIONS=2 -DWRITES=2 -DCRASHES=1 -DLOSSES=1 -DCONFIGS=1" ;;
	config) echo "-DMEMBERS=3 -DSPARES=1 -DPROMOTIONS=2 -DWRITES=1 -DCRASHES=1 -DSTARTED=1 -DCONFIGS=1" ;;
	lease) echo "-DMEMBERS=2 -DPROMOTIONS=2 -DWRITES=1 -DCRASHES=1 -DLATE=0 -DTICKS=6" ;;
	orders) echo "-DMEMBERS=2 -DPROMOTIONS=2 -DWRITES=2 -DCRASHES=1 -DSTARTED=1 -DLATE=0 -DORDERS=1" ;;
	*)
		echo "check.sh: unknown configuration '$1' (there are: views records members config lease orders)" >&2
		exit 2
		;;
	esac
}

# More of everything, for those who have minutes and gigabytes.
large_options_of() {
	case "$1" in
	views) echo "-DMEMBERS=2 -DPROMOTIONS=4 -DWRITES=3 -DCRASHES=3 -DDEMOTES=2" ;;
	records) echo "-DMEMBERS=3 -DPROMOTIONS=3 -DWRITES=1 -DCRASHES=2 -DSTARTED=1 -DLATE=1" ;;
	members) echo "-DMEMBERS=2 -DPROMOTIONS=3 -DWRITES=2 -DCRASHES=2 -DLOSSES=2 -DCONFIGS=2" ;;
	config) echo "-DMEMBERS=3 -DSPARES=1 -DPROMOTIONS=2 -DWRITES=2 -DCRASHES=1 -DSTARTED=1 -DCONFIGS=2" ;;
	lease) echo "-DMEMBERS=2 -DPROMOTIONS=3 -DWRITES=1 -DCRASHES=1 -DLATE=1 -DTICKS=7" ;;
	orders) echo "-DMEMBERS=2 -DPROMOTIONS=3 -DWRITES=2 -DCRASHES=1 -DSTARTED=1 -DLATE=1 -DORDERS=1" ;;
	*) options_of "$1" ;;
	esac
}

# build OPTIONS [CFLAGS...]: the search program, in $work
build() {
	local options=$1
	shift
	cp "$here/mirror.pml" "$here/mutations.h" "$work"
	# shellcheck disable=SC2086
	(cd "$work" && spin $options -a mirror.pml >&2 && cc -O1 -w -DSAFETY "$@" -o pan pan.c)
}

# lines "NUMBER CONFIGURATION TEXT"
mutations() {
	sed -nE 's|^#define [A-Z_]+ +([0-9]+) +/\* ([a-z]+): (.*) \*/$|\1 \2 \3|p' "$here/mutations.h"
}

# A line that the list above does not match would be a mutation that nobody searches.
[ "$(mutations | wc -l)" -eq "$(grep -c '^#define' "$here/mutations.h")" ] || {
	echo "check.sh: a line of mutations.h is not of the form NAME NUMBER /* CONFIGURATION: TEXT */" >&2
	exit 2
}

# search MUTATION: 0 if nothing is violated in any state, 1 if something is
search() {
	local report
	report=$(cd "$work" && MUTATION=$1 timeout "${limit_s:-600}" ./pan -m"${depth:-4000000}" -w"${hash_bits:-22}")
	found=$(grep -oE '[0-9]+ states, stored' <<<"$report" || :)
	if grep -q 'errors: 0$' <<<"$report"; then
		# A search that left something out proves nothing.
		if grep -qE 'max search depth|Search not completed' <<<"$report"; then
			echo "check.sh: the search was not complete" >&2
			exit 3
		fi
		return 0
	fi
	grep -q 'assertion violated' <<<"$report" || {
		printf '%s\n' "$report" >&2
		exit 3
	}
	found=$(grep -oE 'assertion violated.*' <<<"$report")
	return 1
}

# check_rules CONFIGURATION: as they are, with the program that was built
check_rules() {
	if search 0; then
		echo "$1: holds, $found"
	else
		echo "$1: VIOLATED: $found"
		return 1
	fi
}

check_large() {
	build "$(large_options_of "$1")" -DCOLLAPSE
	limit_s=3600 depth=6000000 hash_bits=26 check_rules "$1"
}

check() {
	local configuration=$1 number where text failed=0 count=0
	build "$(options_of "$configuration")"
	check_rules "$configuration" || failed=1
	while read -r number where text; do
		[ "$where" = "$configuration" ] || continue
		count=$((count + 1))
		if search "$number"; then
			echo "$configuration: NOT NOTICED: $text"
			failed=1
		else
			echo "$configuration: noticed: $text"
		fi
	done < <(mutations)
	[ "$count" -gt 0 ] || failed=1
	return $failed
}

trace() {
	local line
	line=$(mutations | awk -v n="$1" '$1 == n') || :
	[ -n "$line" ] || {
		echo "check.sh: there is no mutation '$1' in mutations.h" >&2
		exit 2
	}
	# shellcheck disable=SC2086
	set -- $line
	build "$(options_of "$2")" -DBFS
	(cd "$work" && MUTATION=$1 ./pan -w26 >/dev/null && MUTATION=$1 ./pan -r -S | sed "/^spin: trail ends/,\$d")
}

if [ "${1:-}" = trace ]; then
	trace "${2:-}"
	exit
fi
large=false
if [ "${1:-}" = large ]; then
	large=true
	shift
fi
[ $# -gt 0 ] || set -- views records members config lease orders
bad=0
for configuration in "$@"; do
	if "$large"; then
		check_large "$configuration" || bad=1
	else
		check "$configuration" || bad=1
	fi
done
exit $bad
