#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The distribution's librpma, which knows only rdma-core, on the interposer, against ours natively:
# the examples' servers and clients, each built once, in both roles.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
: "${RPMA_EXAMPLES:?the examples}" "${THEIR_LIBDIR:?where their librpma is}"

theirs() { LD_LIBRARY_PATH=$THEIR_LIBDIR soft "$@"; }

check_theirs() {
	local map
	map=$(LD_LIBRARY_PATH=$THEIR_LIBDIR ldd "$RPMA_EXAMPLES/$1")
	grep -q "librpma.so.0 => $THEIR_LIBDIR/" <<<"$map" || fail "$1 would not run on their librpma"
}

ours() { timeout 40 "$@"; }

# pair SERVER-SIDE CLIENT-SIDE NAME: the example, with $server_args and $client_args
pair() {
	local server_side=$1 client_side=$2 name=$3 port
	check_theirs "$name"
	port=$(free_port)
	"$server_side" "$RPMA_EXAMPLES/$name" server 127.0.0.1 $port "${server_args[@]}" \
		>"$scratch/server.log" 2>&1 &
	server=$!
	started+=($server)
	for _ in {1..200}; do
		! is_listening $port || break
		sleep 0.05
	done
	"$client_side" "$RPMA_EXAMPLES/$name" client 127.0.0.1 $port "${client_args[@]}" \
		>"$scratch/client.log" 2>&1 || fail "$name, $server_side and $client_side: status $?"
	served
	echo "$name: server on $server_side, client on $client_side"
}

# every_way NAME CHECK ...: each of the two librpmas in each role; then the check must hold.
every_way() {
	local name=$1 sides
	shift
	for sides in 'theirs ours' 'ours theirs' 'theirs theirs'; do
		# shellcheck disable=SC2086 # two words
		pair $sides "$name"
		"$@" || fail "$name: $*"
	done
}

test_private_data() {
	server_args=() client_args=(alice)
	every_way connect said server 'the client says: alice'
}

test_read() {
	server_args=('water level 4.20 m') client_args=()
	every_way read said client 'it reads: water level 4.20 m'
}

# Their client flushes to persistence only towards a server that declares itself, which the examples
# leave to the library; so here it serves.
holds_text() { [ "$(head -c 10 "$scratch/page")" = 'to be kept' ]; }
test_write_and_flush() {
	server_args=("$scratch/page") client_args=('to be kept')
	pair theirs ours write-flush
	holds_text || fail "the file has something else"
}

test_messages() {
	server_args=() client_args=(several words 'and back')
	every_way message true
}

test_immediate() {
	server_args=() client_args=(first second third)
	every_way immediate said server 'slot 2: third'
}

test_atomic_write() {
	server_args=("$scratch/log") client_args=(counted)
	pair theirs ours atomic-flag
}

run_test "$1"
