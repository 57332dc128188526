#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs a build tree into an empty folder and uses it like a new user: builds a program with
# pkg-config and another one with find_package, runs the rpma tool, and shows a manual page.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$(realpath "${1:?usage: check-install.sh BUILD_DIR}")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

# The caller's library path could hide a mistake, so it is removed.
unset LD_LIBRARY_PATH

die() {
	echo "check-install: $*" >&2
	exit 1
}

cmake --install "$build" --prefix "$root/usr" >"$root/said"
libdir=$(dirname "$(find "$root/usr" -name librpma.so)")
[ -n "$libdir" ] || die "librpma.so was not installed"
for text in "librpma.so.0 is in $libdir" "LD_LIBRARY_PATH=$libdir" "PKG_CONFIG_PATH=$libdir/pkgconfig"; do
	grep -qF -- "$text" "$root/said" || die "cmake --install does not say '$text'"
done

# The unit must name the program that was installed, not the program at the configured prefix.
grep -q "^ExecStart=$root/usr/bin/rpma serve" "$root"/usr/lib/systemd/system/rpma-serve@.service ||
	die "the systemd unit does not start $root/usr/bin/rpma"

# check_links DOCUMENT: every file that the document links to must be installed.
check_links() {
	local link
	for link in $(grep -oE '\]\([^)#:]+[)#]' "$1" | sed 's/^..//; s/.$//'); do
		[ -e "$(dirname "$1")/$link" ] || die "$1 links to $link, which was not installed"
	done
}
readme=$(find "$root/usr" -path '*/doc/rpma/README.md')
for document in "$readme" "$(dirname "$readme")"/*.md "$(dirname "$readme")"/{doc,doc/architecture,tests,python}/*.md; do
	check_links "$document"
done

mkdir "$root/app"
cp cmake/which-librpma.c "$root/app/app.c"
cp examples/file-hello.c "$root/app/hello.c"
cat >"$root/app/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(app C)
find_package(librpma 1.3 REQUIRED)
find_package(librpmafile REQUIRED)
add_executable(app app.c)
target_link_libraries(app librpma::rpma)
add_executable(hello hello.c)
target_link_libraries(hello librpmafile::rpmafile)
CMAKE

# expect_ours PROGRAM LIBDIR: without any variable the program must load the library in LIBDIR,
# although the loader would also find another library with the same soname (./dev setup installs
# Debian's).
expect_ours() {
	local prog=$1 libdir=$2 path version
	path=$(LD_TRACE_LOADED_OBJECTS=1 "$prog" | sed -n 's/.*librpma\.so\.0 => \(.*\) (.*/\1/p')
	[ "$(realpath "$path")" = "$(realpath "$libdir/librpma.so.0")" ] || die "$prog would load $path"
	read -r path version < <("$prog") || die "$prog fails"
	[ "$(realpath "$path")" = "$(realpath "$libdir/librpma.so.0")" ] && [ "$version" = 1.4 ] ||
		die "$prog runs with $path, which is $version"
}

export PKG_CONFIG_PATH=$libdir/pkgconfig
read -r -a flags < <(pkg-config --cflags --libs librpma)
cc -Wall -Werror "$root/app/app.c" -o "$root/app/with-pkg-config" "${flags[@]}"
expect_ours "$root/app/with-pkg-config" "$libdir"

# The program in librpma(7) must compile without changes, run with the installed library, and report
# a missing server.
cmake/man-program.sh "$root/usr/share/man/man7/librpma.7" >"$root/app/manual.c"
cc -Wall -Wextra -Werror "$root/app/manual.c" -o "$root/app/manual" "${flags[@]}"
! RPMA_PROVIDER=softrnic timeout 30 "$root/app/manual" 127.0.0.1 9 2>"$root/said" || die "the manual's program claims success"
grep -q "127.0.0.1 port 9: Connection rejected" "$root/said" || die "the manual's program says: $(cat "$root/said")"

cmake -S "$root/app" -B "$root/app/build" -DCMAKE_PREFIX_PATH="$root/usr" >/dev/null
cmake --build "$root/app/build" >/dev/null
! RPMA_PROVIDER=softrnic timeout 30 "$root/app/build/hello" 127.0.0.1:9 2>"$root/said" || die "file-hello claims success"
grep -q "127.0.0.1:9: the host refused the connection" "$root/said" || die "file-hello says: $(cat "$root/said")"
expect_ours "$root/app/build/app" "$libdir"

# In a package for /usr no program may contain a library path, because the loader already searches
# the package's folder.
DESTDIR=$root/stage cmake --install "$build" --prefix /usr >"$root/said"
if grep -r rpath "$root/stage" --include=librpma.pc; then die "a package for /usr has an rpath in its librpma.pc"; fi
! grep -q LD_LIBRARY_PATH "$root/said" || die "a staged installation says how it is found"

# The usual installation: by root, in /usr/local, without any variable, and without a run of
# ldconfig. The test uses a separate mount namespace.
in_usr_local() {
	local folder
	for folder in bin lib include share; do
		mkdir -p "/usr/local/$folder"
		mount -t tmpfs tmpfs "/usr/local/$folder"
	done
	unset PKG_CONFIG_PATH
	cmake --install "$build" --prefix /usr/local >"$root/said"
	read -r -a flags < <(pkg-config --cflags --libs librpma)
	cc -Wall -Werror "$root/app/app.c" -o "$root/app/in-usr-local" "${flags[@]}"
	expect_ours "$root/app/in-usr-local" "$(dirname "$(find /usr/local/lib -name librpma.so)")"
	grep -q "run 'ldconfig' as root" "$root/said" || die "cmake --install to /usr/local does not name ldconfig"
}
export -f in_usr_local expect_ours die
export build root
if [[ $(command -v cmake cc pkg-config) == */usr/local/* ]] || ! unshare -rm true 2>/dev/null; then
	echo "check-install: /usr/local is not tried: this user may not mount, or cmake is there"
else
	unshare -rm bash -euo pipefail -c in_usr_local
fi

"$root/usr/bin/rpma" --version >/dev/null
PYTHONPATH=$root/usr/lib/python3/dist-packages LD_LIBRARY_PATH=$libdir python3 -B -c 'import rpma, rpmirror' ||
	die "the packages for Python do not find the libraries"
if command -v ibv_devices >/dev/null; then
	for way in -p -d; do
		grep -q softrnic0 <<<"$("$root/usr/bin/softrnic" run $way ibv_devices)"
	done
fi
for page in man1/rpma.1 man3/rpma_write.3 man7/librpma.7 man1/softrnic.1 man7/softrnic-verbs.7; do
	mandoc -Tutf8 "$root/usr/share/man/$page" >/dev/null
done
if grep -rlF "$build" "$root/usr" | grep . >&2; then
	echo "check-install: the files above name the build tree" >&2
	exit 1
fi
