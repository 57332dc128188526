#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Finds errors earlier than ./dev package would: each installed file must belong to one package, each line of a package
# must match files, and the .symbols files must have the functions of tests/abi. usage: files.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
source_dir=$1 build=$2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

bad=0
complain() {
	echo "files.sh: $*" >&2
	bad=1
}

# A build with kill points cannot be installed, so its files cannot be compared.
if grep -q '^RPMA_KILLPOINTS:.*=ON$' "$build/CMakeCache.txt"; then
	! said=$(DESTDIR=$root cmake --install "$build" --prefix /usr 2>&1) || complain "a build for tests is installed"
	grep -q "^ *cmake --install build-release$" <<<"$said" || complain "the refusal names no release build: $said"
	[ -z "$(find "$root" -type f)" ] || complain "a refused installation leaves files"
fi
RPMA_INSTALL_OF_A_TEST=1 DESTDIR=$root cmake --install "$build" --prefix /usr >/dev/null
# In packages the libraries are in a folder of the architecture, and Python's modules are in the
# same folder on every architecture.
libdir=$(sed -n 's/^CMAKE_INSTALL_LIBDIR:.*=//p' "$build/CMakeCache.txt")
mapfile -t files < <(cd "$root" && find usr ! -type d | sed -E "s#^usr/${libdir:-lib}/(systemd/)?#usr/lib/\1#; t lib; b; :lib; /^usr.lib.(systemd|python3|ocf)/b; s#^usr/lib/#usr/lib/ARCH/#" | sort)

# named FILE PATTERN: succeeds if the pattern names the file, or a folder that contains the file.
# shellcheck disable=SC2053
named() { [[ $1 == $2 || $1 == $2/* ]]; }

patterns=()
for list in "$source_dir"/contrib/debian/{*.install,not-installed}; do
	while read -r pattern _; do
		case $pattern in
		'' | '#'*) ;;
		*) patterns+=("$(basename "$list") $pattern") ;;
		esac
	done <"$list"
done
declare -A used=()
for file in "${files[@]}"; do
	owners=0
	for entry in "${patterns[@]}"; do
		! named "$file" "${entry#* }" || { owners=$((owners + 1)) && used[$entry]=1; }
	done
	[ "$owners" = 1 ] || complain "$file is in $owners packages"
done
for entry in "${patterns[@]}"; do
	[ -n "${used[$entry]:-}" ] || complain "nothing is installed for: $entry"
done

# compare PACKAGE NODE LIST: compares the package's list of symbols of one version node with LIST.
compare() {
	diff <(sed -n "s/^ \(rp[a-z_0-9]*\)@$2 .*/\1/p" "$source_dir/contrib/debian/$1.symbols" | sort) \
		<(sort "$source_dir/tests/abi/$3") >&2 || complain "$1.symbols is not what tests/abi/$3 has"
}
compare librpma0 LIBRPMA_1.0 symbols.txt
compare librpma0 LIBRPMA_1.4 symbols-1.4.txt
compare librpmem1 LIBRPMEM_1.0 rpmem-symbols.txt
exit $bad
