# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Helpers for the tests of the examples. Every test runs in a folder of its own and ends the
# processes it started, by their id.
set -euo pipefail
export LC_ALL=C

work=$(mktemp -d "$RPMA_TEST_DIR/example.XXXXXX")
started=()
server='' port=''

cleanup() {
	local pid
	for pid in "${started[@]}"; do
		kill -9 "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	rm -rf "$work"
}
trap cleanup EXIT
cd "$work"

fail() {
	printf 'FAILED: %s\n' "$*" >&2
	for file in server.out server.err client.out client.err; do
		[ ! -s $file ] || sed "s/^/  $file: /" $file >&2
	done
	exit 1
}

wait_until() { # COMMAND...
	local end=$((SECONDS + 20))
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.02
	done
}

is_gone() { ! kill -0 "$1" 2>/dev/null; }
is_up_or_gone() { grep -q '^listening' server.out || is_gone "$server"; }

launch() { # EXAMPLE ARGS...: its server on $port; $server is its id
	local name=$1
	shift
	: >server.out
	"$RPMA_EXAMPLES/$name" server 127.0.0.1 "$port" "$@" >server.out 2>server.err </dev/null &
	server=$!
	started+=("$server")
	wait_until is_up_or_gone || fail "the server does not come up"
	grep -q '^listening' server.out
}

# As launch, on a port that is free: below those that the kernel gives out by itself.
serve() { # EXAMPLE ARGS...
	local try
	for try in 1 2 3 4 5 6 7 8 9 10; do
		port=$((20000 + RANDOM % 12000))
		! launch "$@" || return 0
		grep -q 'Address already in use' server.err || fail "the server does not start"
	done
	fail "no free port in $try tries"
}

# client CODE EXAMPLE ARGS...: it exits with CODE, and complains exactly if that is not 0
client() {
	local want=$1 name=$2 got=0
	shift 2
	"$RPMA_EXAMPLES/$name" client 127.0.0.1 "$port" "$@" >client.out 2>client.err </dev/null ||
		got=$?
	[ "$got" = "$want" ] || fail "the client exits with $got instead of $want"
	[ "$want" != 0 ] || [ ! -s client.err ] || fail "the client complains"
}

server_ends() { # CODE
	local got=0
	wait_until is_gone "$server" || fail "the server does not end"
	wait "$server" || got=$?
	[ "$got" = "$1" ] || fail "the server exits with $got instead of $1"
	[ "$1" != 0 ] || [ ! -s server.err ] || fail "the server complains"
}

says() { # WHO LINE: exactly this line is in its output
	grep -qxF -- "$2" "$1.out" || fail "the $1 does not say '$2'"
}

complains() { # WHO PATTERN
	grep -qE -- "$2" "$1.err" || fail "the $1 does not complain of '$2'"
}
