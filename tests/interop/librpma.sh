#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The distribution's librpma, which uses only rdma-core, on the interposer, with this project's
# librpma as its peer: a pair of programs with every operation that both support, each built once,
# in both roles.
: "${THEIR_LIBDIR:?where their librpma is}" "${RPMA12:?the programs}"
: "${NO_MSYNC:?what takes a process its msync}"
KEEP_RIGHTS=1 # the programs are in the build tree, which other users possibly cannot read
SCRATCH_IN=$RPMA12 # on a disk, because /tmp can be in memory
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

theirs() { LD_LIBRARY_PATH=$THEIR_LIBDIR soft "$@"; }

check_theirs() {
	local map
	map=$(LD_LIBRARY_PATH=$THEIR_LIBDIR ldd "$1")
	grep -q "librpma.so.0 => $THEIR_LIBDIR/" <<<"$map" || fail "$1 would not run on their librpma"
}

ours() { timeout 40 "$@"; }

# begin_server SIDE: starts a server; uses $server_words, address, $port and $server_args.
begin_server() {
	check_theirs "${server_words[0]}"
	port=$(free_port)
	"$1" "${server_words[@]}" 127.0.0.1 $port "${server_args[@]}" >"$scratch/server.log" 2>&1 &
	server=$!
	started+=($server)
	for _ in {1..200}; do
		! is_listening $port || break
		sleep 0.05
	done
}

# run_client SIDE: runs a client; uses $client_words, $port and $client_args.
run_client() { "$1" "${client_words[@]}" 127.0.0.1 $port "${client_args[@]}" >"$scratch/client.log" 2>&1; }

# together SERVER-SIDE CLIENT-SIDE NAME: runs a server and a client, each with the librpma of its
# side.
together() {
	local server_side=$1 client_side=$2 name=$3 port
	begin_server "$server_side"
	run_client "$client_side" || fail "$name, $server_side and $client_side: status $?"
	served
	echo "$name: server on $server_side, client on $client_side"
}

# every_pair NAME CHECK ...: runs the pair with each of the two libraries in each role. After each
# run the check must succeed.
every_pair() {
	local name=$1 sides
	shift
	for sides in 'theirs ours' 'ours theirs' 'theirs theirs'; do
		# shellcheck disable=SC2086 # two words
		together $sides "$name"
		"$@" || fail "$name: $*"
	done
}

# Runs all operations. The distribution's library supports some of them as a client only if the
# server declares direct write. The server checks its file's pages when a persistent flush is
# complete.
rpma12_programs() {
	case $(stat -f -c %T "$scratch") in tmpfs | ramfs)
		echo "the build tree is in memory" >&2
		exit 77
		;;
	esac
	server_words=("$RPMA12/rpma12_server") client_words=("$RPMA12/rpma12_client")
	server_args=("$scratch/file" "$@") client_args=()
}

every_operation() {
	rpma12_programs "$@"
	every_pair "every operation" said client 'all is well'
	together ours ours "every operation"
	said client 'all is well'
}
test_every_operation() { every_operation; }
test_every_operation_with_srq() { every_operation srq; }

# Shows that the test detects a missing write-back. Debian's library flushes by reading, this
# project's library flushes natively.
without_msync() { LD_PRELOAD=$NO_MSYNC "$@"; }
theirs_without_msync() { without_msync theirs "$@"; }
ours_without_msync() { without_msync ours "$@"; }
test_a_missing_write_back_is_seen() {
	local target initiator port
	rpma12_programs
	for target in theirs ours; do
		for initiator in theirs ours; do
			rm -f "$scratch/file"
			begin_server "${target}_without_msync"
			! run_client "$initiator" || fail "a $target target need not write back for $initiator"
			wait "$server" || :
			said server 'bytes of .* are dirty behind a persistent flush'
		done
	done
}

run_test "$1"
