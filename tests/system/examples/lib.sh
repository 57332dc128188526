# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Helpers for the tests of the examples.
# shellcheck source=tests/system/lib/processes.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/processes.sh"

logs=(server.out server.err client.out client.err)
server='' port=''
# In the guest lab RDMA devices do not serve 127.0.0.1, so the address can be set.
addr=${RPMA_EXAMPLES_ADDR:-127.0.0.1}

is_up_or_gone() { grep -q '^listening' server.out || is_gone "$server"; }

launch() { # EXAMPLE ARGS...: starts the example's server at $port; $server is its process id
	local name=$1
	shift
	: >server.out
	"$RPMA_EXAMPLES/$name" server "$addr" "$port" "$@" >server.out 2>server.err </dev/null &
	server=$!
	started+=("$server")
	wait_until 20 is_up_or_gone || fail "the server does not come up"
	grep -q '^listening' server.out
}

# serve EXAMPLE ARGS...: starts a server, as launch does, at a free port below those that the kernel
# assigns by itself.
serve() { # EXAMPLE ARGS...
	local try
	for try in 1 2 3 4 5 6 7 8 9 10; do
		port=$((20000 + RANDOM % 12000))
		! launch "$@" || return 0
		grep -q 'Address already in use' server.err || fail "the server does not start"
	done
	fail "no free port in $try tries"
}

# client CODE EXAMPLE ARGS...: the example must exit with CODE, and print an error unless CODE is 0.
client() {
	local want=$1 name=$2 got=0
	shift 2
	"$RPMA_EXAMPLES/$name" client "$addr" "$port" "$@" >client.out 2>client.err </dev/null ||
		got=$?
	[ "$got" = "$want" ] || fail "the client exits with $got instead of $want"
	[ "$want" != 0 ] || [ ! -s client.err ] || fail "the client complains"
}

server_ends() { # CODE
	local got=0
	wait_until 20 is_gone "$server" || fail "the server does not end"
	wait "$server" || got=$?
	[ "$got" = "$1" ] || fail "the server exits with $got instead of $1"
	[ "$1" != 0 ] || [ ! -s server.err ] || fail "the server complains"
}

says() { # END LINE: the output of that end must contain exactly this line
	grep -qxF -- "$2" "$1.out" || fail "the $1 does not say '$2'"
}

complains() { # WHO PATTERN
	grep -qE -- "$2" "$1.err" || fail "the $1 does not complain of '$2'"
}
