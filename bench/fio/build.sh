#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# build.sh FOLDER: configures and builds fio from Debian's source package in FOLDER/fio, for the engine in this folder.
# The script installs nothing, and does not change the system's package sources.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/../../cmake/debian-fetch.sh"

unpack() {
	rm -rf fio fio-[0-9]*
	tar -xf fio_*.orig.tar.gz
	mv fio-[0-9]* fio
}

# If librpma-dev is installed, fio builds its own engines for librpma and is linked with the distribution's
# librpma, so that this project's librpma could not be loaded. Therefore these engines are disabled.
build() {
	cd "$folder/fio"
	./configure
	sed -i /LIBRPMA/d config-host.h config-host.mak
	make -j "$(nproc)" fio
}

{
	debian_fetch deb-src source --download-only fio
	unpack
	build
} >build.log 2>&1 || {
	tail -n 5 build.log >&2
	exit 1
}
echo "$folder/fio/fio was built; now: cmake -DRPMA_FIO_SOURCE=$folder/fio build-release"
