#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ./dev refuses wrong arguments, and prints help with --help, before it installs, builds or runs anything: the test's
# copy of ./dev finds only programs that record their calls. usage: words.sh SOURCE_DIR
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/bin" "$scratch/tree"
cp "$1/dev" "$scratch/tree/"
for program in apt-get cmake ctest clang-format dpkg-query git mandoc ninja; do
	printf '#!/bin/sh\necho %s >>"%s/called"\nexit 1\n' "$program" "$scratch" >"$scratch/bin/$program"
	chmod 755 "$scratch/bin/$program"
done
export PATH=$scratch/bin:$PATH

fail() {
	echo "words.sh: $*" >&2
	sed 's/^/	/' "$scratch/said" >&2
	exit 1
}

# dev STATUS REGEX ARG...: runs ./dev; its exit code and output must be these, and it must not call
# any other program.
dev() {
	local status=0 expected=$1 pattern=$2
	shift 2
	timeout 20 "$scratch/tree/dev" "$@" >"$scratch/said" 2>&1 </dev/null || status=$?
	[ "$status" = "$expected" ] || fail "dev $*: exit status $status"
	grep -qE -- "$pattern" "$scratch/said" || fail "dev $*: it does not say '$pattern'"
	[ ! -e "$scratch/called" ] || fail "dev $*: it called $(cat "$scratch/called")"
}

for word in setup build demo test check fuzz run fmt docs vm package release mutate soak; do
	dev 0 "^./dev $word " "$word" --help
	[ "$(grep -c '^./dev' "$scratch/said")" = 1 ] || fail "dev $word --help: also about other words"
	dev 0 "^./dev $word " "$word" -h
done
dev 0 '^./dev soak ' help
dev 1 "unknown command 'nothing'" nothing --help

for seconds in x 0 -5 5s 010 ' '; do
	dev 1 "fuzz: SECONDS is a number, at least 1, and not '$seconds'" fuzz "$seconds"
done
dev 1 "fuzz: there is no argument '6'" fuzz 5 6
for word in setup check fmt; do
	dev 1 "$word: there is no argument 'x'" "$word" x
done
dev 1 "there is no argument 'b'" demo rpmem b
dev 1 "package: unknown word 'x'" package x
dev 1 "package: unknown word 'x'" package --from "$0" x
dev 1 "package: --from needs a source archive" package --from
dev 1 "package: there is no archive nothing.tar.gz" package --from nothing.tar.gz test
dev 1 "release: unknown word 'x'" release x
dev 1 "there is no argument 'x'" release draft x
dev 1 "docs: unknown word 'x'" docs x
dev 1 "there is no argument 'x'" docs check x

dev 1 "neither a number of minutes nor a word" soak hour
dev 1 "neither a number of minutes nor a word" soak --minutes
dev 1 "neither a number of minutes nor a word" soak mirror-hills
dev 1 "MINUTES is a number, at least 1, and not '0'" soak 0
dev 1 "MINUTES is a number, at least 1, and not '5m'" soak 5m
dev 1 "there is no argument '6'" soak 5 6
dev 1 "COUNT is a number, at least 1, and not '0'" mutate all 0
dev 1 "SEED is a number, at least 0, and not 'x'" mutate all 5 x
dev 1 "there is no argument '4'" mutate all 2 3 4
for word in races mirror-sim mirror-model; do
	dev 1 "there is no argument '5'" soak $word 5
done
for word in resets mirror-kills mirror-calls mirror-failovers mirror-reconnects mirror-deaths mirror-histories; do
	dev 1 "the count of $word is a number, at least 1, and not 'many'" soak $word many
done
dev 1 "SEED is a number, at least 0, and not 'x'" soak mirror-kills 5 x
dev 1 "SEED is a number, at least 0, and not '-1'" soak mirror-histories 5 -1

# With right arguments ./dev runs until it searches for packages.
! timeout 20 "$scratch/tree/dev" soak 5 >"$scratch/said" 2>&1 </dev/null || fail "nothing runs"
[ -e "$scratch/called" ] || fail "dev soak 5: refused"
