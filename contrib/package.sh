#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the Debian packages of a copy of this tree and judges them: no error of lintian, and no warning that
# is not explained in contrib/debian.
# usage: package.sh BUILD_DIR       the packages are then in BUILD_DIR
set -euo pipefail
out=$(mkdir -p "${1:?usage: package.sh BUILD_DIR}" && realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(dpkg-parsechangelog -l contrib/debian/changelog -S Version)
cmake_version=$(sed -nE 's/^project\(rpma VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
[ "${version%-*}" = "$cmake_version" ] || {
	echo "package: contrib/debian/changelog has version $version, CMakeLists.txt $cmake_version" >&2
	exit 1
}

# What is in git or would be, as it is now; debian/ is where its tools look for it.
rm -rf "$out/rpma" "$out"/*.{deb,changes,buildinfo}
mkdir "$out/rpma"
git ls-files -z --cached --others --exclude-standard ':!contrib/debian' |
	xargs -0 sh -c 'for file; do [ ! -e "$file" ] || printf "%s\0" "$file"; done' sh |
	tar -c --null -T - | tar -x -C "$out/rpma"
cp -r contrib/debian "$out/rpma/debian"

# Nobody signs, and debug symbols stay where they are of use.
cd "$out/rpma"
DEB_BUILD_OPTIONS="parallel=$(nproc) ${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage --build=binary --no-sign >"$out/build.log" 2>&1 || {
	tail -n 40 "$out/build.log" >&2
	echo "package: the build failed; see $out/build.log" >&2
	exit 1
}
cd "$out"
lintian --allow-root --fail-on error,warning ./*.changes
ls -- *.deb
