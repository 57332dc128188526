#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The program in librpma(7) must exit with 0 if its line is in the server's file, and otherwise with
# another status.
# shellcheck source=tests/system/examples/lib.sh
. "$(dirname "$0")/lib.sh"
# The program frees nothing before it ends, so leaks are not checked.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

ends() { # CODE COMMAND...: runs it with a time limit
	local want=$1 got=0
	shift
	timeout 40 "$@" >client.out 2>client.err </dev/null || got=$?
	[ "$got" = "$want" ] || fail "'$*' exits with $got instead of $want"
	[ "$want" = 0 ] || [ ! -s client.out ] || fail "it claims success"
}

test_the_line_is_in_the_file_when_it_says_so() {
	serve write-flush page
	ends 0 "$RPMA_MANUAL_PROGRAM" "$addr" "$port"
	says client "the line is on the server's medium"
	[ "$(head -c 20 page)" = "hello, remote memory" ] || fail "the file has something else"
	server_ends 0
}

test_a_host_that_does_not_exist_is_named() {
	ends 1 "$RPMA_MANUAL_PROGRAM" nobody.invalid 7204
	complains client 'nobody\.invalid'
	complains client 'rdma_getaddrinfo'
}

test_a_closed_port_is_not_waited_for() {
	ends 1 "$RPMA_MANUAL_PROGRAM" "$addr" 9 # the discard port: no program listens there
	complains client "$addr port 9: Connection rejected"
}

test_a_server_that_says_nothing_is_given_up() {
	perl -MIO::Socket::INET -e '
		my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1") or die;
		$| = 1; print $s->sockport, "\n"; sleep 60' >port &
	started+=("$!")
	wait_until 10 test -s port
	ends 1 "$RPMA_MANUAL_PROGRAM" 127.0.0.1 "$(cat port)"
	complains client 'port [0-9]+: |connect: '
}

test_a_server_without_a_region_is_reported() {
	serve connect
	ends 1 "$RPMA_MANUAL_PROGRAM" "$addr" "$port"
	complains client 'rejected|offered region: '
}

test_a_stopped_server_does_not_hang_it() {
	serve write-flush page
	kill -STOP "$server"
	ends 1 "$RPMA_MANUAL_PROGRAM" "$addr" "$port"
	[ -s client.err ] || fail "it does not say why"
}

test_an_older_librpma_is_named_by_the_loader() {
	local theirs
	theirs=$(/sbin/ldconfig -p | sed -n 's/.*librpma\.so\.0 .*=> //p' | head -n 1)
	[ -n "$theirs" ] && ! grep -q 'LIBRPMA_1\.4' "$theirs" || exit 77
	! ldd "$RPMA_MANUAL_PROGRAM" | grep -q 'libasan\|libtsan' || exit 77 # these libraries have to be loaded first
	ends 1 env LD_PRELOAD="$theirs" "$RPMA_MANUAL_PROGRAM" "$addr" 9
	complains client "$theirs: version .LIBRPMA_1\.4' not found"
}

"test_$1"
