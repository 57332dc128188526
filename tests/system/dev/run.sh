#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests ./dev run in two terminals at the same time, in a tree that is not built yet. A copy of ./dev builds a project
# of a few lines. Each run builds only its program, one run after the other, and shows the compiler's output only if the
# build fails. usage: run.sh SOURCE_DIR
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/tree
mkdir -p "$scratch/bin" "$tree"
cp "$1/dev" "$tree/"
unset CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER LD_LIBRARY_PATH
export PATH=$scratch/bin:$PATH
printf '#!/bin/sh\nshift 2; for p; do echo "$p installed"; done\n' >"$scratch/bin/dpkg-query"
chmod 755 "$scratch/bin/dpkg-query"

fail() {
	echo "run.sh: $*" >&2
	tail -n +1 "$scratch"/*.out "$scratch"/*.err >&2
	exit 1
}

cat >"$tree/CMakePresets.json" <<'JSON'
{ "version": 6, "configurePresets": [
	{ "name": "default", "generator": "Ninja", "binaryDir": "${sourceDir}/build" } ] }
JSON
# Two builds at the same time would report that the build folder is "busy".
cat >"$tree/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(small C)
option(RPMA_BUILD_TESTS "" ON)
foreach(name one two)
	file(WRITE ${CMAKE_SOURCE_DIR}/${name}.in "#include <stdio.h>\nint main(void) { return puts(\"${name} ran\") < 0; }\n")
	add_custom_command(OUTPUT ${name}.c COMMAND mkdir busy COMMAND sleep 0.5 COMMAND rmdir busy
		COMMAND cp ${CMAKE_SOURCE_DIR}/${name}.in ${name}.c)
	add_executable(${name} ${name}.c)
endforeach()
add_executable(broken broken.c)
file(GLOB sources CONFIGURE_DEPENDS small*.c)
add_library(small SHARED ${sources})
set_target_properties(small PROPERTIES VERSION 0 SOVERSION 0)
CMAKE
echo 'int small;' >"$tree/small.c"
echo 'int main(void) { return no_such_name; }' >"$tree/broken.c"

terminals=()
for name in one two; do
	timeout 50 "$tree/dev" run "$name" >"$scratch/$name.out" 2>"$scratch/$name.err" </dev/null &
	terminals+=($!)
done
for terminal in "${terminals[@]}"; do
	wait "$terminal" || fail "a terminal ends with $?"
done
for name in one two; do
	[ "$(cat "$scratch/$name.out")" = "$name ran" ] || fail "$name did not run"
	[ "$(wc -l <"$scratch/$name.err")" -le 4 ] || fail "$name: $(wc -l <"$scratch/$name.err") lines about building"
done

! timeout 50 "$tree/dev" run broken >"$scratch/broken.out" 2>"$scratch/broken.err" </dev/null ||
	fail "what cannot be compiled ran"
grep -q 'no_such_name' "$scratch/broken.err" || fail "the compiler's words are not shown"

# A program of the system runs with the libraries, and only these are built. The second run prints
# nothing, because nothing has to be built.
for name in first second; do
	# shellcheck disable=SC2016 # for that shell
	timeout 50 "$tree/dev" run sh -c 'ls "$LD_LIBRARY_PATH/libsmall.so.0"' >"$scratch/$name.out" 2>"$scratch/$name.err" </dev/null ||
		fail "a program of the system does not run with the libraries"
done
[ ! -s "$scratch/second.err" ] || fail "what is built already is built again, or the second run states that it builds"
grep -q 'building libsmall.so.0' "$scratch/first.err" || fail "the first run does not state that it builds"

# ./dev reports a name that is neither a program of the build nor of the system, and builds nothing
# for it.
rm "$tree/build/one"
! timeout 50 "$tree/dev" run no-such-program >"$scratch/none.out" 2>"$scratch/none.err" </dev/null ||
	fail "a program that is not there ran"
grep -q "'no-such-program' is neither" "$scratch/none.err" || fail "it is not said that there is no such program"
[ ! -e "$tree/build/one" ] || fail "something was built for a program that is not there"
