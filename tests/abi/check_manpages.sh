#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_manpages.sh MANDIR INCLUDE (LIBRARY NODE=LIST[=COUNT]...)...: each function of the lists has a manual page,
# other functions have none, and each library as a whole has one. A symbol that a header maps to another function's name
# has no page.
set -eu
man=$1 include=$2
shift 2
cd "$(dirname "$0")"
names=$(mktemp)
trap 'rm -f "$names"' EXIT
fail=0
for word in "$@"; do
	case $word in
	*=*) list=${word#*=} && cat "${list%%=*}" >>"$names" ;;
	*) [ -s "$man/7/$word.7" ] || { echo "no manual page $word(7)"; fail=1; } ;;
	esac
done
[ -s "$names" ] || { echo "no functions are listed"; fail=1; }
while read -r name; do
	! grep -rq "__asm__(\"$name\")" "$include" || continue
	[ -s "$man/3/$name.3" ] || { echo "no manual page $name(3)"; fail=1; }
done <"$names"
for page in "$man"/3/*.3; do
	grep -qx "$(basename "$page" .3)" "$names" || { echo "$page documents no function"; fail=1; }
done
exit $fail
