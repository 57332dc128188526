#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# build.sh FOLDER: fio from Debian's source package, configured and built in FOLDER/fio, for the engine beside this file.
# Nothing is installed, and the system's package sources stay as they are.
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
	echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $release main" \
		>apt/sources.list
	options=(-q -o "Dir::Etc::sourcelist=$PWD/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o "Dir::State::lists=$PWD/apt/lists" -o "Dir::Cache=$PWD/apt/cache" -o "APT::Sandbox::User=$(id -un)")
	apt-get "${options[@]}" update
	apt-get "${options[@]}" source --download-only fio
}

unpack() {
	rm -rf fio fio-[0-9]*
	tar -xf fio_*.orig.tar.gz
	mv fio-[0-9]* fio
}

# If librpma-dev is installed, fio builds its own engines for librpma and is linked with the distribution's
# librpma. Then this project's librpma cannot be loaded beside it.
build() {
	cd "$folder/fio"
	./configure
	sed -i /LIBRPMA/d config-host.h config-host.mak
	make -j "$(nproc)" fio
}

{
	fetch
	unpack
	build
} >build.log 2>&1 || {
	tail -n 5 build.log >&2
	exit 1
}
echo "$folder/fio/fio was built; now: cmake -DRPMA_FIO_SOURCE=$folder/fio build-release"
