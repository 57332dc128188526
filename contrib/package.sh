#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the Debian packages of a copy of this tree, or of a source archive, and checks them with lintian: no error is
# permitted, and no warning without an explanation in contrib/debian. Also writes an SPDX list of the linked libraries.
# usage: package.sh BUILD_DIR [ARCHIVE]       puts the packages into BUILD_DIR
set -euo pipefail
out=$(mkdir -p "${1:?usage: package.sh BUILD_DIR [ARCHIVE]}" && realpath "$1")
archive=${2:+$(realpath "$2")}
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# checked: compares a release's archive with the checksums beside it.
checked() {
	local folder name
	folder=$(dirname "$archive") name=$(basename "$archive")
	[ ! -e "$folder/SHA256SUMS" ] || (cd "$folder" && grep " $name\$" SHA256SUMS | sha256sum --quiet --check -) || {
		echo "package: $archive is not what $folder/SHA256SUMS describes" >&2
		exit 1
	}
}

rm -rf "$out/rpma" "$out"/*.{deb,changes,buildinfo,spdx.json}
mkdir "$out/rpma"
if [ -n "$archive" ]; then
	checked
	tar -x -f "$archive" -C "$out/rpma" --strip-components=1
else
	cmake/tree-files.sh | tar -c --null -T - | tar -x -C "$out/rpma"
fi
cd "$out/rpma"
contrib/release/version.sh . check || {
	echo "package: the versions have to agree" >&2
	exit 1
}
mv contrib/debian debian # Debian's tools expect the folder at this place

# The packages are not signed.
DEB_BUILD_OPTIONS="parallel=$(nproc) ${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage --build=binary --no-sign >"$out/build.log" 2>&1 || {
	tail -n 40 "$out/build.log" >&2
	echo "package: the build failed; see $out/build.log" >&2
	exit 1
}
SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -S Timestamp)
export SOURCE_DATE_EPOCH
cd "$out"
lintian --allow-root --fail-on error,warning ./*.changes

# debhelper filled one folder for each package.
parts=()
for deb in *.deb; do
	name=${deb%%_*}
	[[ $name == *-dbgsym ]] || parts+=("$name=rpma/debian/$name")
done
python3 -B rpma/contrib/release/sbom.py linked "${parts[@]}" >"$(basename ./*.changes .changes).spdx.json"
ls -- *.deb *.spdx.json
