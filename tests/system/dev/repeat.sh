#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests how ./dev handles tests that fail: a copy of ./dev runs the real ctest on scripts. Scripts also replace the
# programs that install and build. usage: repeat.sh SOURCE_DIR
set -euo pipefail
source_dir=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/tree
unset TEST_LIMIT_S
export PATH=$scratch/bin:$PATH RUNS=$scratch/runs

fail() {
	echo "repeat.sh: $*" >&2
	sed 's/^/	/' "$scratch/said" >&2
	exit 1
}

script() {
	mkdir -p "$(dirname "$1")"
	printf '#!/bin/sh\n%s\n' "$2" >"$1"
	chmod 755 "$1"
}

script "$scratch/bin/dpkg-query" 'shift 2; for p; do echo "$p installed"; done'
script "$scratch/bin/ninja" 'case "$*" in *targets*) echo "tests/fuzz/fuzz_a: phony" ;; esac'
for program in apt-get cmake git mandoc clang-format; do
	script "$scratch/bin/$program" 'exit 0'
done
for program in cmake/check-rooms.sh cmake/check-install.sh cmake/tree-files.sh build-fuzz/tests/fuzz/fuzz_a build/tests/sim/sim; do
	script "$tree/$program" 'exit 0'
done
cp "$source_dir/dev" "$tree/"

# These stand-ins for tests record that they ran. `late` fails once in each build tree, and passes
# when it is repeated.
script "$scratch/good" 'echo good >>"$RUNS"'
script "$scratch/bad" 'echo bad >>"$RUNS"; exit 1'
script "$scratch/late" 'echo late >>"$RUNS"; [ -e ran ] || { : >ran; exit 1; }'
script "$scratch/hang" 'echo hang >>"$RUNS"; exec sleep 300'

# tests PRESET NAME...: defines the tests of the preset's build tree.
tests() {
	local dir=$tree/build
	[ "$1" = default ] || dir=$dir-$1
	shift
	rm -rf "$dir/Testing" "$dir/ran"
	mkdir -p "$dir"
	: >"$dir/build.ninja"
	for name; do
		echo "add_test($name $scratch/${name#abi.})"
	done >"$dir/CTestTestfile.cmake"
	: >"$RUNS"
}

# dev WORD...: runs ./dev, and returns its exit code.
dev() {
	local status=0
	"$tree/dev" "$@" >"$scratch/said" 2>&1 </dev/null || status=$?
	return $status
}
runs_of() { grep -c "^$1\$" "$RUNS" || :; }

# A test that fails beside other tests and passes alone is named, and no other test is repeated.
tests default good late
dev test || fail "a test that passes when it is repeated fails the run"
grep -q "WARNING: build: 1 tests passed only when repeated alone: late" "$scratch/said" || fail "late is not named"
[ "$(runs_of good)" = 1 ] && [ "$(runs_of late)" = 2 ] || fail "other tests than the failed one were repeated"
[ -e "$tree/build/Testing/Temporary/before-repetition.log" ] || fail "the log of the first run is lost"

# A test that fails twice is a failure, even beside a test that passes.
tests default late bad
! dev test || fail "a test that fails twice passes"
[ "$(runs_of bad)" = 2 ] || fail "bad ran $(runs_of bad) times"
! grep -q "WARNING" "$scratch/said" || fail "a failed run reads like a passed one"

# Without failures ./dev prints no warning, and does not use an old list of failures.
tests default good bad
! dev test || fail "bad passes"
dev test -R good || fail "a good test fails"
! grep -q "repeated" "$scratch/said" || fail "what passes was repeated"
: >"$RUNS"
! dev test -R no.such.test || fail "no test is a success"
[ ! -s "$RUNS" ] || fail "the failures of an earlier run were repeated"

# Repeated runs find flaky tests. An incomplete run is not a success.
tests default late
! dev test --repeat until-fail:2 || fail "--repeat hides a failure"
tests default late
! dev soak 1 || fail "a soak hides a failure"
tests default late good
! dev test --stop-on-failure -j 1 || fail "a run that stopped at a failure is a success"

# A test that hangs is ended, and a run that hangs is ended, too.
tests default hang
! dev test --timeout 1 || fail "a hanging test passes"
[ "$(runs_of hang)" = 2 ] || fail "a test that timed out was not repeated"
tests default hang good
! TEST_LIMIT_S=4 dev test -j 1 || fail "a run that was ended is a success"
grep -q "did not end within 4 s" "$scratch/said" || fail "the limit of the run is not named"

# At the end of `check` the tests that failed with sanitizers are named again.
tests release abi.good
tests tsan good
tests asan late
dev check || fail "check fails because of a test that passes when it is repeated"
[ "$(grep -c "WARNING: build-asan: 1 tests passed only when repeated alone: late" "$scratch/said")" = 2 ] ||
	fail "check does not name late at its end"
