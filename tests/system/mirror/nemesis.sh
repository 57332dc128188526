#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Processes read and write registers of a mirrored file while processes die, stop and are cut off.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../lib/processes.sh
. "$here/../lib/processes.sh"
# shellcheck source=../lib/hosts.sh
. "$here/../lib/hosts.sh"
# shellcheck source=cluster.sh
. "$here/cluster.sh"

# The last primary, on host 1, reads all registers, and ends when all copies are in-sync.
finish() {
	client_start 1
	client_wait "$clients" 60 1
	wait_until 20 client_writes "$clients" 50 || fail "the last primary does not write"
	wait_until 60 is_whole 1 || fail "not all copies are in-sync: $(mirror 1 explain orders)"
	client_end "$clients"
	judge
}

test_processes_that_die_lose_nothing() {
	cluster_start
	client_start 1
	client_wait 1 60 1
	wait_until 60 in_sync 1 || fail "not all copies are in-sync"
	for ((round = 1; round <= ${ROUNDS:-4}; round++)); do
		client_start $((1 + round % 3))
		wait_until 60 client_writes $((clients - 1)) 100 || fail "round $round: nothing is written"
		wait_until 60 in_sync 1 || fail "round $round: not all copies are in-sync: $(mirror 1 explain orders)"
		kill -9 "${client_pids[clients - 1]}"
		client_wait "$clients"
	done
	wait_until 60 in_sync 1 || fail "not all copies are in-sync: $(mirror 1 explain orders)"
	kill -9 "${client_pids[clients]}"
	finish
}

test_a_primary_that_is_stopped_past_its_lease_is_fenced() {
	cluster_start
	client_start 1
	client_wait 1 60 1
	wait_until 60 in_sync 1 || fail "not all copies are in-sync"
	client_start 2
	wait_until 60 client_writes 1 100 || fail "nothing is written"
	kill -STOP "${client_pids[1]}"
	client_wait 2
	wait_until 60 client_writes 2 100 || fail "the next primary does not write"
	kill -CONT "${client_pids[1]}"
	wait_until 30 client_ended 1 || fail "the former primary goes on"
	wait_until 60 is_whole 2 || fail "the former primary's copy does not return: $(mirror 2 explain orders)"
	client_end 2
	finish
}

test_a_primary_whose_host_is_cut_off_is_followed_by_another() {
	cluster_start
	client_start 1
	client_wait 1 60 1
	wait_until 60 in_sync 1 || fail "not all copies are in-sync"
	client_start 2
	wait_until 60 client_writes 1 100 || fail "nothing is written"
	network cut 1 '*'
	network cut '*' 1
	client_wait 2
	wait_until 60 client_writes 2 100 || fail "the next primary does not write"
	network heal '*' '*'
	wait_until 60 client_ended 1 || fail "the former primary goes on"
	wait_until 60 is_whole 2 || fail "the former primary's copy does not return: $(mirror 2 explain orders)"
	client_end 2
	finish
}

test_a_replica_that_is_cut_off_is_excluded_and_returns() {
	cluster_start --replica-timeout 1
	client_start 1
	client_wait 1 60 1
	wait_until 60 in_sync 1 || fail "not all copies are in-sync"
	network cut 1 3
	before=$(grep -c '^W' history1 || :)
	wait_until 60 client_writes 1 $((before + 200)) || fail "writes wait for the replica for ever"
	! in_sync 1 || fail "a member that cannot be reached is in-sync"
	network heal '*' '*'
	wait_until 60 in_sync 1 || fail "the replica does not return: $(mirror 1 explain orders)"
	client_end 1
	finish
}

test_a_network_that_loses_and_delays_is_slow_only() {
	cluster_start
	client_start 1
	client_wait 1 60 1
	network loss '*' '*' 10
	network delay '*' '*' 20
	before=$(grep -c '^W' history1 || :)
	wait_until 100 client_writes 1 $((before + 30)) || fail "nothing is written"
	network heal '*' '*'
	client_end 1
	finish
}

"test_$1"
