#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_symbols.sh LIBRARY MAP LIST LIST14: the library exports exactly the functions of the lists,
# those of the first at node LIBRPMA_1.0 and those of the second at LIBRPMA_1.4, the map lists the
# same, and the soname is upstream's.
set -eu
lib=$1 map=$2 list=$3 list14=$4
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

nm -D --defined-only --with-symbol-versions "$lib" | awk '$2 != "A" { print $3 }' | sort >"$dir/found"
{
	sed 's/$/@@LIBRPMA_1.0/' "$list"
	sed 's/$/@@LIBRPMA_1.4/' "$list14"
} | sort >"$dir/wanted"
awk '/^LIBRPMA_/ { node = $1 } match($0, /rpma_[a-z0-9_]*;/) {
	print substr($0, RSTART, RLENGTH - 1) "@@" node }' "$map" | sort >"$dir/map"

fail=0
diff -u "$dir/wanted" "$dir/found" || { echo "$lib does not export what it should"; fail=1; }
diff -u "$dir/wanted" "$dir/map" || { echo "$map does not list what it should"; fail=1; }
readelf -d "$lib" | grep -q 'SONAME.*\[librpma\.so\.0\]' || { echo "wrong soname"; fail=1; }
[ "$(wc -l <"$list")" -eq 84 ] || { echo "$list has not 84 functions"; fail=1; }
exit $fail
