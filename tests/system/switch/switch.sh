#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=../lib/processes.sh
. "$here/../lib/processes.sh"
# shellcheck source=../lib/hosts.sh
. "$here/../lib/hosts.sh"

# reaches FROM TO [PORT]: succeeds if a connection is established within half a second.
reaches() {
	on "$1" timeout 0.5 bash -c "exec 3<>/dev/tcp/10.77.0.$2/${3:-7000}" 2>/dev/null
}

listen() { # HOST PORT
	start_on "$1" "listen$1-$2.log" python3 -c "
import socket
s = socket.create_server(('10.77.0.$1', $2))
while True: s.accept()"
	wait_until 10 reaches "$1" "$1" "$2" || fail "host $1 does not listen"
}

test_hosts_reach_each_other() {
	hosts_start 3
	listen 1 7000
	listen 2 7000
	reaches 2 1 || fail "2 does not reach 1"
	reaches 3 1 || fail "3 does not reach 1"
	reaches 1 2 || fail "1 does not reach 2"
}

test_a_cut_in_one_direction_is_one() {
	hosts_start 3
	listen 1 7000
	reaches 2 1 || fail "2 does not reach 1"
	network cut 1 2
	! reaches 2 1 || fail "2 reaches 1, whose answers are cut"
	reaches 3 1 || fail "3 does not reach 1, though nothing between them is cut"
	# Frames from host 2 still arrive.
	on 2 timeout 0.3 bash -c 'exec 3<>/dev/tcp/10.77.0.1/7000' 2>/dev/null &
	wait_until 5 half_open || fail "what 2 sends does not arrive"
	network heal 1 2
	wait_until 5 reaches 2 1 || fail "2 does not reach 1 after the end of the cut"
}

half_open() { on 1 ss -Htn state syn-recv | grep -q 10.77.0.2; }

test_a_port_is_cut_alone() {
	hosts_start 2
	listen 1 7000
	listen 1 7001
	network port '*' '*' 7001
	reaches 2 1 7000 || fail "another port is cut, too"
	! reaches 2 1 7001 || fail "the port is not cut"
	network heal '*' '*'
	wait_until 5 reaches 2 1 7001 || fail "the port stays cut"
}

# trip FROM TO: prints the round trip of a connection, in milliseconds.
trip() {
	on "$1" python3 -c "
import socket, time
begin = time.monotonic()
socket.create_connection(('10.77.0.$2', 7000), 20)
print(int((time.monotonic() - begin) * 1000))"
}

test_frames_are_delayed() {
	hosts_start 2
	listen 1 7000
	network delay '*' '*' 150
	[ "$(trip 2 1)" -ge 300 ] || fail "a round trip of 300 ms takes less"
}

test_frames_are_lost() {
	hosts_start 2
	listen 1 7000
	network loss '*' '*' 1000
	! reaches 2 1 || fail "frames pass though all are lost"
	network loss '*' '*' 300
	# TCP sends lost segments again.
	wait_until 20 reaches 2 1 || fail "no connection though two of three frames pass"
}

"test_$1"
