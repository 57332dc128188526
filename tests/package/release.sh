#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests the scripts of a release in a small repository: ready.sh names each reason against a tag, and the archive of a
# commit has the same bytes wherever it is made. usage: release.sh SOURCE_DIR
set -euo pipefail
source_dir=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/tree
export HOME=$scratch GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=$scratch/gitconfig
unset GIT_DIR GIT_WORK_TREE SOURCE_DATE_EPOCH
git config --global user.name tester
git config --global user.email tester@example.invalid
git config --global init.defaultBranch main

fail() {
	echo "release.sh: $*" >&2
	[ ! -e "$scratch/said" ] || sed 's/^/	/' "$scratch/said" >&2
	exit 1
}

commit() {
	git -C "$tree" add -A
	GIT_COMMITTER_DATE='2026-11-29T00:00:00Z' git -C "$tree" commit -q -m change --allow-empty
}

# judge STATUS [REGEX...]: ready.sh must end with that status, and its output must have a line for
# each expression and no further line.
judge() {
	local expected=$1 status=0 pattern
	shift
	"$tree/contrib/release/ready.sh" "$tree" >"$scratch/said" 2>&1 || status=$?
	[ $status = "$expected" ] || fail "ready.sh ends with $status"
	for pattern; do
		grep -qE -- "$pattern" "$scratch/said" || fail "ready.sh does not say: $pattern"
	done
	[ "$(wc -l <"$scratch/said")" = $# ] || fail "ready.sh says more than: $*"
}

# broken REGEX FILE SED: commits a change that makes the tree not ready, checks that ready.sh
# reports it, and undoes the change.
broken() {
	sed -i -E "$3" "$tree/$2"
	commit
	judge 1 "$1"
	git -C "$tree" reset -q --hard HEAD~1
}

mkdir -p "$tree"/{contrib/debian,cmake,include,src,tools,python,examples,doc}
cp -r "$source_dir/contrib/release" "$tree/contrib/"
cp "$source_dir"/cmake/tree-files.sh "$tree/cmake/"
cp "$source_dir/contrib/debian/control" "$tree/contrib/debian/"
cp "$source_dir/CMakeLists.txt" "$tree/"
cp "$source_dir/include/librpma.h" "$tree/include/"
sed 1,1!d "$source_dir/contrib/debian/changelog" >"$tree/contrib/debian/changelog"
printf '\n  * A line.\n\n -- the rpma authors <rpma@example.invalid>  Sun, 22 Nov 2026 12:00:00 +0000\n' >>"$tree/contrib/debian/changelog"
echo 'int zero;' >"$tree/src/zero.c"
echo /build*/ >"$tree/.gitignore"
git init -q "$tree"
"$tree/contrib/release/version.sh" "$tree" set 3.2.1
{
	printf '# Changelog\n\n## [Unreleased]\n\n## [3.2.1] - 2026-11-29\n\nA summary.\n\n### Added\n\n'
	seq -f '- Line %g, of more lines than a pipe holds.' 3000
	printf '\n## [3.2.0] - 2026-11-01\n'
} >"$tree/CHANGELOG.md"
for document in README.md SECURITY.md doc/stability.md; do
	echo "The latest release is 3.2." >"$tree/$document"
done
commit

# Check the versions of the real tree and of the small tree.
"$source_dir/contrib/release/version.sh" "$source_dir" check >"$scratch/said" || fail "the versions differ"
[ "$("$tree/contrib/release/version.sh" "$tree")" = 3.2.1 ] || fail "version.sh does not read what it sets"
"$tree/contrib/release/version.sh" "$tree" check >"$scratch/said" || fail "version.sh does not set all places"
[ "$(dpkg-parsechangelog -l "$tree/contrib/debian/changelog" -S Version)" = 3.2.1-0rpma1 ] || fail "Debian's changelog has no new entry"
[ "$(dpkg-parsechangelog -l "$tree/contrib/debian/changelog" -S Maintainer)" = "the rpma authors <rpma@example.invalid>" ] || fail "the entry has no author"

# Check a ready tree, and trees that are not ready.
judge 0 "^ready: .* v3\.2\.1$"
broken "changelog has the version '3.2.9', CMakeLists.txt has '3.2.1'" contrib/debian/changelog '1s/3\.2\.1/3.2.9/'
broken "librpma.h has the version '3.3.1'" include/librpma.h '/VERSION_MINOR +2/s/2$/3/'
broken "written into a program.*zero.c" src/zero.c 's/.*/char v[] = "of 3.2.1";/'
broken "lines under \[Unreleased\]" CHANGELOG.md '3s/$/\n\n- News./'
broken "lines under \[Unreleased\]" CHANGELOG.md "3s/\$/$(seq -f '\n- News %g, of more lines than a pipe holds.' 2000 | tr -d '\n')/"
broken "is '\[3\.2\.1\]' and has to be '\[3\.2\.1\] - YYYY" CHANGELOG.md 's/ - 2026-11-29//'
broken "is '\[3\.2\.1\] - 2026-11-31' and" CHANGELOG.md 's/2026-11-29/2026-11-31/'
broken "without a summary" CHANGELOG.md '/A summary/d'
broken "names no change" CHANGELOG.md '/^### /d'
broken "SECURITY.md states that there is no release" SECURITY.md 's/$/ There is no release yet./'
broken "README.md does not name the release 3\.2" README.md 's/3\.2/13.21/'
git -C "$tree" tag v3.2.1
judge 0 "^ready"
commit
judge 1 "the tag v3\.2\.1 is another commit"
git -C "$tree" tag -d v3.2.1 >/dev/null
echo >>"$tree/src/zero.c"
: >"$tree/src/new"
judge 1 "the tree differs from its commit.*src/zero.c src/new"

# The archive is made from the commit, without these uncommitted changes. A clone gives the same
# bytes, for a user with another umask, time zone and language, at another time.
"$tree/contrib/release/archive.sh" "$tree" "$scratch/out"
git clone -q "$tree" "$scratch/clone"
find "$scratch/clone" -exec touch -h -d 2001-01-01 {} +
(umask 077 && GZIP=-1 TZ=Asia/Tokyo LC_ALL=C.UTF-8 "$scratch/clone/contrib/release/archive.sh" "$scratch/clone" "$scratch/again" 2>&1)
for name in rpma-3.2.1.tar.gz rpma-3.2.1.tar.xz rpma-3.2.1.spdx.json SHA256SUMS; do
	cmp "$scratch/out/$name" "$scratch/again/$name" || fail "$name differs"
done
[ "$(find "$scratch/out" | wc -l)" = 5 ] || fail "more than these files are left"
(cd "$scratch/out" && sha256sum --quiet --check SHA256SUMS) || fail "the checksums are of something else"
tar -t -v -f "$scratch/out/rpma-3.2.1.tar.gz" --utc --full-time --numeric-owner >"$scratch/said"
! grep -v ' 0/0 .* 2026-11-29 00:00:00 rpma-3\.2\.1/' "$scratch/said" || fail "owners, times and names are not fixed"
grep -q ' rpma-3\.2\.1/src/zero\.c$' "$scratch/said" && ! grep -q 'src/new' "$scratch/said" || fail "it is not the commit"

# If the archive is unpacked inside another repository, the list has the archive's own files, and no
# built file.
tar -x -C "$scratch/clone" -f "$scratch/out/rpma-3.2.1.tar.gz"
mkdir "$scratch/clone/rpma-3.2.1/build"
: >"$scratch/clone/rpma-3.2.1/build/built.c"
"$scratch/clone/rpma-3.2.1/cmake/tree-files.sh" .c .h | tr '\0' '\n' >"$scratch/said"
[ "$(paste -sd' ' "$scratch/said")" = "include/librpma.h src/zero.c" ] || fail "the archive's files are others"

# The list of files has each file's checksum, equal to sha256sum's, and its licence.
python3 -B - "$scratch/clone/rpma-3.2.1" <<'END' || fail "the list of files is wrong"
import hashlib, json, os, sys
root = sys.argv[1]
spdx = json.load(open(f"{root}/sbom.spdx.json"))
assert spdx["spdxVersion"] == "SPDX-2.3" and spdx["creationInfo"]["created"] == "2026-11-29T00:00:00Z", spdx["creationInfo"]
listed = {file["fileName"]: file for file in spdx["files"]}
present = {"./" + os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names}
assert present - set(listed) == {"./sbom.spdx.json", "./build/built.c"} and not set(listed) - present, present ^ set(listed)
for name, file in listed.items():
    digest = hashlib.sha256(open(f"{root}/{name}", "rb").read()).hexdigest()
    assert {"algorithm": "SHA256", "checksumValue": digest} in file["checksums"], name
assert listed["./include/librpma.h"]["licenseInfoInFiles"] == ["BSD-3-Clause"]
assert listed["./src/zero.c"]["licenseInfoInFiles"] == ["NONE"]
names = {package["name"] for package in spdx["packages"]}
assert {"rpma", "libibverbs", "librdmacm", "libsodium", "libcurl", "debian-cmake"} <= names, names
known = {element["SPDXID"] for element in spdx["packages"] + spdx["files"]} | {"SPDXRef-DOCUMENT"}
for relationship in spdx["relationships"]:
    assert {relationship["spdxElementId"], relationship["relatedSpdxElement"]} <= known, relationship
END
