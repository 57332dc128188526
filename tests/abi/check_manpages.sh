#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_manpages.sh MANDIR LIST...: a page for each function of the lists, none for others, and
# librpma(7).
set -eu
man=$1
shift
fail=0
for name in $(cat "$@"); do
	[ -s "$man/3/$name.3" ] || { echo "no manual page $name(3)"; fail=1; }
done
for page in "$man"/3/*.3; do
	cat "$@" | grep -qx "$(basename "$page" .3)" || { echo "$page documents no function"; fail=1; }
done
[ -s "$man/7/librpma.7" ] || { echo "no manual page librpma(7)"; fail=1; }
exit $fail
