#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# check_terminates.sh TOP: doc/security.md lists every Terminate that src/softrnic sends, with the
# right number and with existing tests, and lists no other Terminate.
set -euo pipefail
top=$1
table=$top/doc/security.md
failed=0

complain() {
	printf '%s\n' "$*" >&2
	failed=1
}

# One line "NAME layer/type/code" for each code, from the list from which the code is generated.
numbers=$(sed -nE 's/^\s*X\(([A-Z_]+), ([0-9]), ([0-9]), 0x([0-9a-f]{2}),.*/\1 \2\/\3\/\4/p' \
	"$top/src/softrnic/proto/term_code.h")
[ -n "$numbers" ] || complain "no Terminate is found in term_code.h"

# All names in .c files, except two kinds: terminate.c is omitted because it has every name, and the
# code for a received Terminate that cannot be parsed is omitted because no end sends it.
used=$(grep -rhoE --include='*.c' --exclude=terminate.c '\bTERM_[A-Z_]+' "$top/src/softrnic" |
	sed 's/^TERM_//' | sort -u | grep -vx RDMAP_OPERATION_UNSPECIFIED)

check_tests() {
	local name=$1 row=$2 tests file function
	tests=$(grep -oE '`[a-z0-9_/]+\.c: [a-z0-9_]+`' <<<"$row" | tr -d '`:') || :
	[ -n "$tests" ] || complain "$name: the table names no test"
	while read -r file function; do
		[ -n "$file" ] || continue
		grep -qE "(cmocka_unit_test[a-z_]*|[A-Z_]*TEST)\($function\b" "$top/tests/$file" ||
			complain "$name: there is no test $function in tests/$file"
	done <<<"$tests"
}

while read -r name number; do
	row=$(grep -E "^\| [0-9]/[0-9]/[0-9a-f]{2} \| \`$name\` \|" "$table") || row=
	if ! grep -qx "$name" <<<"$used"; then
		[ -z "$row" ] || complain "$name is in the table, and nothing sends it"
	elif [ -z "$row" ]; then
		complain "$name ($number) is sent, and not in the table of $table"
	else
		[[ $row == "| $number | "* ]] || complain "$name is $number, not: $row"
		check_tests "$name" "$row"
	fi
done <<<"$numbers"
exit $failed
