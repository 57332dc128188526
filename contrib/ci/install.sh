#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds only softrnic from this tree, for the rdma-core of this machine, and installs it. On Debian and Ubuntu the
# script first installs missing packages, as root or with sudo.
# usage: install.sh PREFIX
set -euo pipefail
prefix=${1:?usage: install.sh PREFIX}
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
packages=(gcc libc6-dev cmake ninja-build pkg-config libibverbs-dev librdmacm-dev libisal-dev libpmem-dev libsodium-dev)
libraries=(libibverbs librdmacm libisal libpmem libsodium)

have_all() {
	type -P gcc cmake ninja pkg-config >/dev/null && pkg-config --exists "${libraries[@]}"
}

install_packages() {
	local as_root=()
	[ "$(id -u)" = 0 ] || as_root=(sudo)
	"${as_root[@]}" apt-get -q update
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends "${packages[@]}"
}

if ! have_all; then
	command -v apt-get >/dev/null || {
		echo "install.sh: needs gcc, cmake, ninja, pkg-config and the development files of ${libraries[*]}" >&2
		exit 1
	}
	install_packages
fi
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cmake -S "$top" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DRPMA_ONLY_SOFTRNIC=ON -DCMAKE_INSTALL_PREFIX="$prefix"
ninja -C "$build"
cmake --install "$build"
"$prefix/bin/softrnic" --version
