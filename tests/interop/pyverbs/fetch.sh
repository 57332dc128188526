#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# fetch.sh FOLDER: Debian's package python3-pyverbs, which contains rdma-core's Python bindings and their tests, unpacked
# in FOLDER. Nothing is installed, and the system's package sources stay as they are.
set -euo pipefail

[ $# = 1 ] || {
	echo "usage: ${0##*/} FOLDER" >&2
	exit 2
}
mkdir -p "$1/apt/lists/partial" "$1/apt/cache/archives/partial"
cd "$1"
folder=$PWD

fetch() {
	local release options
	# shellcheck source=/dev/null
	release=$(. /etc/os-release && echo "${VERSION_CODENAME:?}")
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $release main" \
		>apt/sources.list
	options=(-q -o "Dir::Etc::sourcelist=$PWD/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o "Dir::State::lists=$PWD/apt/lists" -o "Dir::Cache=$PWD/apt/cache" -o "APT::Sandbox::User=$(id -un)")
	apt-get "${options[@]}" update
	apt-get "${options[@]}" download python3-pyverbs
}

# The tests are documentation in that package, so the longer files are compressed.
unpack() {
	rm -rf root tests
	dpkg-deb -x python3-pyverbs_*.deb root
	cp -r root/usr/share/doc/rdma-core/tests tests
	gunzip tests/*.gz
}

{
	fetch
	unpack
} >fetch.log 2>&1 || {
	tail -n 5 fetch.log >&2
	exit 1
}
echo "rdma-core's Python tests are in $folder/tests"
