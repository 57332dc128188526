#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# fetch.sh FOLDER: unpacks Debian's package python3-pyverbs in FOLDER. The package contains rdma-core's Python bindings
# and their tests. The script installs nothing, and does not change the system's package sources.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/../../../cmake/debian-fetch.sh"

# In that package the tests are documentation, so the longer files are compressed.
unpack() {
	rm -rf root tests
	dpkg-deb -x python3-pyverbs_*.deb root
	cp -r root/usr/share/doc/rdma-core/tests tests
	gunzip tests/*.gz
}

{
	debian_fetch deb download python3-pyverbs
	unpack
} >fetch.log 2>&1 || {
	tail -n 5 fetch.log >&2
	exit 1
}
echo "rdma-core's Python tests are in $folder/tests"
