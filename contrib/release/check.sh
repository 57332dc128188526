#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks a release's archive: a clone makes an archive with the same bytes, all tests pass in the unpacked archive
# outside of any repository, and packages can be built from it. This takes as long as ./dev test and ./dev package
# together.
# usage: check.sh FOLDER       puts the archive into FOLDER, packages into FOLDER/packages
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=$(mkdir -p "${1:?usage: check.sh FOLDER}" && realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

die() {
	echo "release check: $*" >&2
	exit 1
}

contrib/release/archive.sh . "$out"
git clone -q --no-local . "$work/clone"
"$work/clone/contrib/release/archive.sh" "$work/clone" "$work/again"
diff "$out/SHA256SUMS" "$work/again/SHA256SUMS" >&2 || die "the archive of a clone has other bytes"
(cd "$out" && sha256sum --check SHA256SUMS)
echo "the archive is reproducible: passed"

name=rpma-$(contrib/release/version.sh .)
tar -x -C "$work" -f "$out/$name.tar.gz"
! git -C "$work/$name" rev-parse 2>/dev/null || die "$work is in a git repository, so that this would not show what needs git"
(cd "$work/$name" && ./dev test) || die "the archive's tests fail"
echo "the archive passes its tests without git: passed"

contrib/package.sh "$out/packages" "$out/$name.tar.xz"
echo "packages are built from the archive: passed"
contrib/release/ready.sh .
