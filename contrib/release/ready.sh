#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks whether a repository is ready for a release's tag, which a person makes. Each line of output names one reason
# against the tag, and the remedy; with such a line the exit status is 1. usage: ready.sh TREE
set -euo pipefail
cd "${1:?usage: ready.sh TREE}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=$("$here/version.sh" .)
minor=${version%.*}
bad=0

not_ready() {
	echo "not ready: $*"
	bad=1
}

# section HEADING: prints the lines of CHANGELOG.md between a heading and the next heading of the
# same level. The reader of the pipe must read all lines: grep -q would end earlier, and awk would
# fail when it writes into the closed pipe.
section() { awk -v heading="## [$1]" '/^## / { on = index($0, heading) == 1; next } on' CHANGELOG.md; }

judge_tree() {
	local changed tag=v$version
	[ -e .git ] || {
		not_ready "this is no git repository: a release is a commit of one"
		return
	}
	changed=$(git status --porcelain | sed 's/^...//' | head -n 5 | paste -sd' ')
	[ -z "$changed" ] || not_ready "the tree differs from its commit: commit or remove $changed"
	! git rev-parse -q --verify "refs/tags/$tag" >/dev/null || [ "$(git rev-parse "$tag^{commit}")" = "$(git rev-parse HEAD)" ] ||
		not_ready "the tag $tag is another commit: a released version never changes; raise it with contrib/release/version.sh . set X.Y.Z"
}

judge_versions() {
	local line
	while IFS= read -r line; do
		not_ready "$line"
	done < <("$here/version.sh" . check)
	[[ $(sed -n 1p contrib/debian/changelog) != *UNRELEASED* ]] || not_ready "contrib/debian/changelog names UNRELEASED for its distribution"
}

judge_changelog() {
	local heading date
	! section Unreleased | grep '[^[:space:]]' >/dev/null ||
		not_ready "CHANGELOG.md has lines under [Unreleased]: move them under [$version]"
	heading=$(awk '/^## \[/ && $0 != "## [Unreleased]" { print; exit }' CHANGELOG.md)
	date=$(sed -nE "s/^## \[${version//./\\.}\] - ([0-9]{4}-[0-9]{2}-[0-9]{2})$/\1/p" <<<"$heading")
	[ -n "$date" ] && date -d "$date" >/dev/null 2>&1 || {
		not_ready "the newest closed section of CHANGELOG.md is '${heading#\#\# }' and has to be '[$version] - YYYY-MM-DD'"
		return
	}
	section "$version" | grep '^### ' >/dev/null || not_ready "the section [$version] of CHANGELOG.md names no change"
	section "$version" | sed '/^### /,$d' | grep '[[:alnum:]]' >/dev/null ||
		not_ready "the section [$version] of CHANGELOG.md begins without a summary of what is new"
}

judge_documents() {
	local document
	for document in README.md SECURITY.md doc/stability.md; do
		[ -e $document ] || {
			not_ready "there is no $document"
			continue
		}
		! grep -qi 'no release yet\|until the first release\|before the first release' $document || not_ready "$document states that there is no release"
		grep -qE "(^|[^0-9.])${minor//./\\.}([^0-9]|$)" $document || not_ready "$document does not name the release $minor"
	done
}

judge_tree
judge_versions
judge_changelog
judge_documents
[ $bad = 1 ] || echo "ready: the commit $(git rev-parse --short=12 HEAD) can be tagged as v$version: git tag -s v$version"
exit $bad
