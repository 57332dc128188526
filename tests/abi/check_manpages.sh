#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_manpages.sh MANDIR HEADER LIST...: a page for each function of the lists, none for others, and
# one for the whole. A symbol that the header gives to a function of another name has no page.
set -eu
man=$1 header=$2
shift 2
fail=0
for name in $(cat "$@"); do
	! grep -q "__asm__(\"$name\")" "$header" || continue
	[ -s "$man/3/$name.3" ] || { echo "no manual page $name(3)"; fail=1; }
done
for page in "$man"/3/*.3; do
	cat "$@" | grep -qx "$(basename "$page" .3)" || { echo "$page documents no function"; fail=1; }
done
[ -s "$man/7/librpma.7" ] || { echo "no manual page librpma(7)"; fail=1; }
exit $fail
