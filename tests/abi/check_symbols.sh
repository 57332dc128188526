#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_symbols.sh LIBRARY SONAME MAP NODE=LIST[=COUNT]...: the library exports exactly the functions of the lists
# (COUNT lines each), at their nodes. The map and Debian's list of symbols have the same functions. The library's soname
# is SONAME.
set -eu
lib=$1 soname=$2 map=$3
shift 3
cd "$(dirname "$0")"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail=0

for pair in "$@"; do
	node=${pair%%=*} list=${pair#*=}
	count=${list#*=} list=${list%%=*}
	sed "s/\$/@@$node/" "$list"
	[ "$count" = "$list" ] || [ "$(wc -l <"$list")" -eq "$count" ] || {
		echo "$list has not $count functions" >&2
		echo "wrong count"
	}
done | sort >"$dir/wanted"
nm -D --defined-only --with-symbol-versions "$lib" | awk '$2 != "A" { print $3 }' | sort >"$dir/found"
awk '/^[A-Z].* {$/ { node = $1 } match($0, /^\t+[a-z][a-z0-9_]*;/) {
	print substr($0, RSTART, RLENGTH - 1) "@@" node }' "$map" | tr -d '\t' | sort >"$dir/map"
package=$(grep -lF "$soname " ../../contrib/debian/*.symbols)
sed -nE 's/^ ([a-z][a-z0-9_]*)@([A-Z0-9_.]+) .*/\1@@\2/p' "$package" | sort >"$dir/package"

diff -u "$dir/wanted" "$dir/found" || { echo "$lib does not export what it should"; fail=1; }
diff -u "$dir/wanted" "$dir/map" || { echo "$map does not list what it should"; fail=1; }
diff -u "$dir/wanted" "$dir/package" || { echo "$package does not list what it should"; fail=1; }
readelf -d "$lib" | grep -qF "[$soname]" || { echo "the soname is not $soname"; fail=1; }
exit $fail
