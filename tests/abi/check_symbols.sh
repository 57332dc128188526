#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_symbols.sh LIBRARY MAP LIST: the library exports exactly the functions of the list, all at
# node LIBRPMA_1.0, the map says the same, and the soname is upstream's.
set -eu
lib=$1 map=$2 list=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

sort "$list" >"$dir/list"
nm -D --defined-only --with-symbol-versions "$lib" | awk '$2 != "A" { print $3 }' | sort >"$dir/found"
sed 's/$/@@LIBRPMA_1.0/' "$dir/list" | sort >"$dir/wanted"
grep -o 'rpma_[a-z0-9_]*;' "$map" | tr -d ';' | sort >"$dir/map"

fail=0
diff -u "$dir/wanted" "$dir/found" || { echo "$lib does not export what it should"; fail=1; }
diff -u "$dir/list" "$dir/map" || { echo "$map does not list what it should"; fail=1; }
readelf -d "$lib" | grep -q 'SONAME.*\[librpma\.so\.0\]' || { echo "wrong soname"; fail=1; }
[ "$(wc -l <"$dir/list")" -eq 84 ] || { echo "the list has not 84 functions"; fail=1; }
exit $fail
