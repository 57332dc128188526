#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The version of a tree is in CMakeLists.txt; the header of librpma and Debian's changelog repeat it.
# usage: version.sh TREE             prints the version
#        version.sh TREE check       names each place with another version, and literal versions in programs
#        version.sh TREE set X.Y.Z   changes all places; Debian's changelog gets an entry with SOURCE_DATE_EPOCH's time
set -euo pipefail
cd "${1:?usage: version.sh TREE [check|set X.Y.Z]}"
header=include/librpma.h
changelog=contrib/debian/changelog

of_cmake() { sed -nE 's/^project\(rpma VERSION ([0-9.]+) .*/\1/p' CMakeLists.txt; }
of_header() { sed -nE 's/^#define RPMA_VERSION_(MAJOR|MINOR|PATCH) +([0-9]+)$/\2/p' $header | paste -sd.; }
# In 1.4.0-0rpma1 the part after the last hyphen is Debian's revision.
of_changelog() { sed -nE '1s/^rpma \((.*)-[^-]*\) .*/\1/p' $changelog; }

check() {
	local version place found bad=0
	version=$(of_cmake)
	for place in header changelog; do
		found=$("of_$place")
		[ "$found" = "$version" ] || {
			echo "${!place} has the version '$found', CMakeLists.txt has '$version'"
			bad=1
		}
	done
	found=$(grep -rnE "\"[^\"]*\\b${version//./\\.}\\b" src tools python examples) || return $bad
	echo "a version is written into a program, which takes it from CMakeLists.txt: ${found//$'\n'/, }"
	return 1
}

set_version() {
	local version=$1 part major minor patch
	[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || {
		echo "version.sh: a version has three numbers, as 1.4.0, and '$version' has not" >&2
		exit 2
	}
	IFS=. read -r major minor patch <<<"$version"
	sed -i -E "s/^(project\(rpma VERSION )[0-9.]+/\1$version/" CMakeLists.txt
	for part in major minor patch; do
		sed -i -E "s/^(#define RPMA_VERSION_${part^^} +)[0-9]+$/\1${!part}/" $header
	done
	{
		sed -E "1s/\(.*-/($version-/; 1q" $changelog
		printf '\n  * CHANGELOG.md (in rpma-doc) has what changed.\n\n'
		sed -nE '0,/^ -- /s/^( -- .*>)  .*/\1/p' $changelog | tr -d '\n'
		LC_ALL=C date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" '+  %a, %d %b %Y %H:%M:%S +0000'
		echo
		cat $changelog
	} >$changelog.new
	mv $changelog.new $changelog
}

case ${2:-} in
'') of_cmake ;;
check) check ;;
set) set_version "${3:?version.sh: set needs a version}" ;;
*)
	echo "version.sh: unknown word '$2'" >&2
	exit 2
	;;
esac
