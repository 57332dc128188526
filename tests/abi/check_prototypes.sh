#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_prototypes.sh GCC OURS THEIRS LIST: both headers declare the functions of the list in the
# same way. gcc prints the declarations in its own form, without names of parameters.
set -eu
gcc=$1 ours=$2 theirs=$3 list=$4
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

declared() {
	echo "#include \"$1/librpma.h\"" >"$dir/one.c"
	"$gcc" -std=c11 -fsyntax-only -aux-info "$dir/info" "$dir/one.c"
	grep -o 'extern [a-z ]*[ *]rpma_.*' "$dir/info" | grep -wFf "$list" | sort
}
declared "$ours" >"$dir/ours"
declared "$theirs" >"$dir/theirs"
diff -u "$dir/theirs" "$dir/ours"
[ "$(wc -l <"$dir/ours")" -eq "$(wc -l <"$list")" ]
