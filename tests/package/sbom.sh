#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The SPDX list of an installation has each library that an installed program or library needs (as objdump prints it),
# with the version and the licence of the package that has it. usage: sbom.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
source_dir=$1 build=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
command -v dpkg-query >/dev/null || exit 0

fail() {
	echo "sbom.sh: $*" >&2
	exit 1
}

RPMA_INSTALL_OF_A_TEST=1 DESTDIR=$scratch/root cmake --install "$build" --prefix /usr >/dev/null
export SOURCE_DATE_EPOCH=1
python3 -B "$source_dir/contrib/release/sbom.py" linked "rpma=$scratch/root" >"$scratch/spdx.json"

# The pairs of file and needed library, sorted, as the list names them,
python3 -B - "$scratch/spdx.json" <<'END' | LC_ALL=C sort >"$scratch/listed"
import json, sys
spdx = json.load(open(sys.argv[1]))
assert spdx["spdxVersion"] == "SPDX-2.3"
names = {file["SPDXID"]: file["fileName"] for file in spdx["files"]}
packages = {package["SPDXID"]: package for package in spdx["packages"]}
for relationship in spdx["relationships"]:
    other = relationship["relatedSpdxElement"]
    assert other in names or other in packages, relationship
    if relationship["relationshipType"] != "DYNAMIC_LINK":
        continue
    if other in packages: # a library of another package, which has a version and a licence
        assert packages[other]["versionInfo"] and packages[other]["licenseDeclared"] != "NOASSERTION", packages[other]
    print(names[relationship["spdxElementId"]], relationship["comment"].removeprefix("NEEDED "))
END
# and as the objects name them. A build with a sanitizer also needs the sanitizer's libraries, so no
# library is left out of the comparison.
cd "$scratch/root"
find . -type f | while read -r file; do
	[ "$(head -c 4 "$file" | tr -d '\0')" = $'\x7fELF' ] || continue
	objdump -p "$file" | awk -v file="$file" '$1 == "NEEDED" { print file, $2 }'
done | LC_ALL=C sort >"$scratch/needed"
[ "$(cut -d' ' -f1 "$scratch/needed" | uniq | wc -l)" -ge 12 ] || fail "few programs and libraries are installed: $(cat "$scratch/needed")"
diff "$scratch/needed" "$scratch/listed" >&2 || fail "the list (>) lacks or adds what is needed (<)"
for name in libibverbs.so.1 libsodium.so.23 libc.so.6 librpma.so.0; do
	grep -q " $name$" "$scratch/listed" || fail "nothing is linked with $name"
done
