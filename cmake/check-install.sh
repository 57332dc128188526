#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs a build tree into an empty folder and uses it as a stranger would: a program built
# with pkg-config, one built with find_package, the rpma tool, a manual page.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$(realpath "${1:?usage: check-install.sh BUILD_DIR}")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

cmake --install "$build" --prefix "$root/usr" >/dev/null
libdir=$(dirname "$(find "$root/usr" -name librpma.so)")
[ -n "$libdir" ] || {
	echo "check-install: librpma.so was not installed" >&2
	exit 1
}

mkdir "$root/app"
cat >"$root/app/app.c" <<'C'
#include <librpma.h>
#include <stdio.h>

int main(void)
{
	struct rpma_peer_cfg *pcfg;
	if (rpma_peer_cfg_new(&pcfg))
		return 1;
	puts(rpma_err_2str(RPMA_E_NOSUPP));
	return rpma_peer_cfg_delete(&pcfg);
}
C
cat >"$root/app/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(app C)
find_package(librpma 1.3 REQUIRED)
add_executable(app app.c)
target_link_libraries(app librpma::rpma)
CMAKE

expect_ours() {
	local prog=$1
	# Not `ldd | grep -q`: grep leaves early, and the broken pipe would be taken for a failure.
	grep -q "librpma.so.0 => $libdir/" <<<"$(LD_LIBRARY_PATH=$libdir ldd "$prog")" ||
		{
			echo "check-install: $prog does not load the installed librpma" >&2
			exit 1
		}
	[ "$(LD_LIBRARY_PATH=$libdir "$prog")" = "Not supported" ]
}

export PKG_CONFIG_PATH=$libdir/pkgconfig
read -r -a flags < <(pkg-config --cflags --libs librpma)
cc -Wall -Werror "$root/app/app.c" -o "$root/app/with-pkg-config" "${flags[@]}"
expect_ours "$root/app/with-pkg-config"

# The program of the README compiles as it stands there.
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' README.md >"$root/app/readme.c"
cc -Wall -Wextra -Wno-unused-parameter -Werror "$root/app/readme.c" -o "$root/app/readme" "${flags[@]}"

cmake -S "$root/app" -B "$root/app/build" -DCMAKE_PREFIX_PATH="$root/usr" >/dev/null
cmake --build "$root/app/build" >/dev/null
expect_ours "$root/app/build/app"

env -u LD_LIBRARY_PATH "$root/usr/bin/rpma" --version >/dev/null
if command -v ibv_devices >/dev/null; then
	for way in -p -d; do
		grep -q softrnic0 <<<"$(env -u LD_LIBRARY_PATH "$root/usr/bin/softrnic" run $way ibv_devices)"
	done
fi
for page in man1/rpma.1 man3/rpma_write.3 man7/librpma.7 man1/softrnic.1 man7/softrnic-verbs.7; do
	mandoc -Tutf8 "$root/usr/share/man/$page" >/dev/null
done
if grep -rlF "$build" "$root/usr" | grep . >&2; then
	echo "check-install: the files above name the build tree" >&2
	exit 1
fi
