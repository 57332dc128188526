#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes the source archive of a commit, the SPDX list of its parts, and their checksums. The bytes depend only on the
# commit (and on the programs tar, gzip and xz): files are sorted, and have the commit's time.
# usage: archive.sh REPOSITORY FOLDER [COMMIT]
set -euo pipefail
repository=$(realpath "${1:?usage: archive.sh REPOSITORY FOLDER [COMMIT]}")
out=$(mkdir -p "${2:?usage: archive.sh REPOSITORY FOLDER [COMMIT]}" && realpath "$2")
commit=${3:-HEAD}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export LC_ALL=C TZ=UTC
umask 022
unset GZIP XZ_OPT XZ_DEFAULTS TAR_OPTIONS

work=$(mktemp -d "$out/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
SOURCE_DATE_EPOCH=$(git -C "$repository" log -1 --format=%ct "$commit" --)
export SOURCE_DATE_EPOCH
git -C "$repository" archive --format=tar "$commit" | tar -x -C "$work" --one-top-level=tree
version=$("$here/version.sh" "$work/tree")
name=rpma-$version
mv "$work/tree" "$work/$name"

python3 -B "$here/sbom.py" source "$work/$name" >"$work/spdx.json"
cp "$work/spdx.json" "$work/$name/sbom.spdx.json"
tar -c -C "$work" --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
	--mode='u=rwX,go=rX' -f "$work/$name.tar" "$name"
gzip -9 -n -c "$work/$name.tar" >"$work/$name.tar.gz"
xz -6 -T1 -c "$work/$name.tar" >"$work/$name.tar.xz"
mv "$work/spdx.json" "$work/$name.spdx.json"
(cd "$work" && sha256sum "$name.tar.gz" "$name.tar.xz" "$name.spdx.json" >SHA256SUMS)
mv "$work/$name.tar.gz" "$work/$name.tar.xz" "$work/$name.spdx.json" "$work/SHA256SUMS" "$out/"
