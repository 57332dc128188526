#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_manpages.sh MANDIR (LIBRARY NODE=LIST[=COUNT]...)...: a page for each function of the lists, none
# for others, and one for each library as a whole.
set -eu
man=$1
shift
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
	[ -s "$man/3/$name.3" ] || { echo "no manual page $name(3)"; fail=1; }
done <"$names"
for page in "$man"/3/*.3; do
	grep -qx "$(basename "$page" .3)" "$names" || { echo "$page documents no function"; fail=1; }
done
exit $fail
