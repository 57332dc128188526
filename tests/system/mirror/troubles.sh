#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Processes read and write registers of a mirrored file during failures: connections of one kind are cut; etcd cannot be
# reached, is slow, has no majority, is restarted or restored; all links are slow. No acknowledged write may be missing,
# no confirmed read may be stale, the copies must be equal at the end, and the tool must report each failure.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../lib/processes.sh
. "$here/../lib/processes.sh"
# shellcheck source=../lib/hosts.sh
. "$here/../lib/hosts.sh"
# shellcheck source=cluster.sh
. "$here/cluster.sh"
primary=1 # host of the primary
client=0  # number of the client

# ---- waits ----

explains() { # HOST PATTERN
	mirror "$1" explain orders 2>&1 | grep -Eq -- "$2"
}
expect_explained() { # HOST PATTERN
	wait_until 40 explains "$1" "$2" || fail "the tool does not say '$2': $(mirror "$1" explain orders 2>&1)"
}
count() { grep -c "^$1" "history$client" || :; }
# expect_more W|R NUMBER: waits for NUMBER more acknowledged writes (W) or confirmed reads (R).
expect_more() { # W|R NUMBER
	local wanted=$(($(count "$1") + $2))
	wait_until 60 has_at_least "$1" "$wanted" || fail "no more $1: $(mirror "$primary" explain orders 2>&1)"
}
has_at_least() { [ "$(count "$1")" -ge "$2" ]; }
expect_in_sync() { wait_until 60 is_whole "$primary" || fail "not all copies are in-sync: $(mirror "$primary" explain orders 2>&1)"; }
return_at_once() {
	network heal '*' '*'
	expect_in_sync
}
is_excluded() { # MEMBER
	[ "$(members "$primary" "$1" false)" = 1 ]
}
expect_excluded() { wait_until 40 is_excluded "$1" || fail "$1 stays in-sync: $(mirror "$primary" explain orders 2>&1)"; }

# ---- roles ----

begin() { # [REPLICA TIMEOUT]
	cluster_start --replica-timeout "${1:-1}"
	follow 1
	expect_in_sync
}
# follow HOST: starts a client on that host, which becomes the primary as soon as possible.
follow() { # HOST
	client_start "$1"
	client_wait "$clients" 60 "$1"
	primary=$1 client=$clients
}
give_up() { client_end "$client"; }
finish() {
	expect_more W 50
	expect_more R 50
	expect_in_sync
	give_up
	judge
}
both_ways() { # WORD HOST [VALUE]: between this host and all others, in both directions
	network "$1" "$2" '*' "${3:-}"
	network "$1" '*' "$2" "${3:-}"
}

# ---- etcd ----

etcd_kill() { # HOST...
	local i
	for i in "$@"; do
		kill -9 "${etcd_pids[i]}"
		wait "${etcd_pids[i]}" 2>/dev/null || :
	done
}
etcd_restart() { # HOST...
	local i
	for i in "$@"; do etcd_start "$i"; done
}
etcd_signal() { # SIGNAL HOST...
	local i signal=$1
	shift
	for i in "$@"; do kill "-$signal" "${etcd_pids[i]}"; done
}

# ---- kinds of connections ----

# One direction is cut: messages to the member, or the member's answers. Any of three time limits
# can expire first: that of a request of the primary, that of the primary's connection, which gets
# no byte, or that of the other end, which resets the connection.
lost_lane='(does not answer|no byte came|reset the connection)'
lanes_are_cut() { # HOST
	network kind "$primary" "$1" lane
	expect_excluded "${names[$1]}"
	expect_explained "$primary" "copy of ${names[$1]} .*$lost_lane"
	expect_more W 100
	return_at_once
}
answers_of_lanes_are_cut() { # HOST
	network kind "$1" "$primary" lane
	expect_excluded "${names[$1]}"
	expect_explained "$primary" "copy of ${names[$1]} .*$lost_lane"
	expect_more W 100
	return_at_once
}
control_is_cut() { # HOST
	network kind "$primary" "$1" control
	expect_excluded "${names[$1]}"
	expect_more W 100
	return_at_once
}
answers_of_control_are_cut() { # HOST
	network kind "$1" "$primary" control
	expect_excluded "${names[$1]}"
	expect_more W 100
	return_at_once
}
# Flushes do not need a bulk connection, but without this connection an absent copy cannot return.
bulk_is_cut() { # HOST
	network kind '*' '*' bulk
	expect_more W 200
	in_sync "$primary" || fail "a member is excluded, though only connections for resyncs are cut"
	network cut "$primary" "$1"
	expect_excluded "${names[$1]}"
	network heal '*' '*'
	network kind '*' '*' bulk
	mirror "$primary" resync orders "${names[$1]}" >resync.log 2>&1 || :
	expect_explained "$primary" 'connection for resyncs'
	expect_more W 100
	is_excluded "${names[$1]}" || fail "${names[$1]} is in-sync without a resync"
	return_at_once
}

test_connections_of_one_kind_are_cut() {
	begin
	lanes_are_cut 2
	answers_of_control_are_cut 3
	bulk_is_cut 2
	finish
}

# ---- the register is cut off ----

register_is_cut_from() { # HOST|*
	both_ways port "$1" 2379
	both_ways port "$1" 2380
}
replica_loses_the_register() { # HOST
	register_is_cut_from "$1"
	expect_explained "$1" 'register'
	expect_more W 200
	expect_more R 50
	network heal '*' '*'
	expect_in_sync
}
# Flushes do not need a change of the view, so they succeed. After the lease has expired, no read is
# confirmed.
all_lose_the_register() {
	network port '*' '*' 2380
	wait_until 40 reads_end || fail "reads are confirmed without a register"
	expect_more W 100
	expect_explained "$primary" 'register'
	network heal '*' '*'
	expect_more R 50
	expect_in_sync
}
reads_end() {
	local before
	before=$(count R)
	sleep 0.3
	[ "$(count R)" = "$before" ]
}
# The next process becomes the primary when the lease has expired. Later flushes of the former
# primary must never be acknowledged.
primary_loses_the_register() { # HOST OF THE NEXT, DIRECTION in|out|both
	local former=$client host=$primary port before
	for port in 2379 2380; do
		[ "$2" = in ] || network port "$host" '*' $port
		[ "$2" = out ] || network port '*' "$host" $port
	done
	follow "$1"
	before=$(grep -c '^W' "history$former" || :)
	expect_more W 50
	! client_writes "$former" $((before + 1)) || fail "what the former primary flushes is acknowledged"
	network heal '*' '*'
	wait_until 60 client_ended "$former" || fail "the former primary goes on"
	expect_in_sync
}

# ---- etcd is slow, or has no majority ----

# All members of etcd answer late.
etcd_is_slow() {
	etcd_signal STOP 1 2 3
	expect_more W 50
	sleep 2
	etcd_signal CONT 1 2 3
	expect_more W 50
	expect_more R 50
}
# A failed member cannot be excluded, so no flush is acknowledged until etcd has a majority again.
etcd_has_no_majority() { # HOST
	etcd_kill 2 3
	network kind "$primary" "$1" lane
	wait_until 40 writes_end || fail "acknowledged without the exclusion of a member that fails"
	expect_explained "$primary" 'register'
	! writes_go_on || fail "acknowledged without the exclusion of a member that fails"
	etcd_restart 2 3
	expect_excluded "${names[$1]}"
	expect_more W 100
	return_at_once
}
writes_go_on() { ! writes_end; }
writes_end() {
	local before
	before=$(count W)
	sleep 0.3
	[ "$(count W)" = "$before" ]
}
etcd_dies_and_returns() {
	etcd_kill 1 2 3
	expect_more W 50
	etcd_restart 1 2 3
	expect_more R 50
	expect_in_sync
}
# The etcd on the primary's host dies with the primary.
etcd_dies_with_the_primary() { # HOST OF THE NEXT
	local host=$primary
	etcd_kill "$host"
	kill -9 "${client_pids[client]}"
	follow "$1"
	etcd_restart "$host"
	expect_in_sync
}

test_the_register_is_in_trouble() {
	begin
	replica_loses_the_register 3
	etcd_has_no_majority 3
	primary_loses_the_register 2 out
	finish
}

# ---- etcd is restored from a backup ----

etcd_save() {
	local i
	etcd_kill 1 2 3
	for i in 1 2 3; do cp -a "etcd$i" "saved$i"; done
	etcd_restart 1 2 3
}
etcd_restore() {
	local i
	etcd_kill 1 2 3
	for i in 1 2 3; do rm -rf "etcd$i" && cp -a "saved$i" "etcd$i"; done
	etcd_restart 1 2 3
}
# counts_on HOST MEMBER: a member with the same data as this copy counts for the promotion. The
# daemon can need an operator's order for this, unlike other daemons.
counts_on() { # HOST MEMBER
	client_serves "$clients" || mirror "$1" promote orders "$2" --force --timeout 2 >promote.log 2>&1 || :
	client_serves "$clients"
}

test_an_etcd_that_is_restored_makes_the_set_split() {
	local i
	begin
	etcd_save
	kill -9 "${client_pids[client]}"
	follow 2
	expect_in_sync
	expect_more W 50
	etcd_restore
	for i in 1 2 3; do expect_explained $i 'is split'; done
	expect_explained 3 'the register was restored'
	expect_explained 3 'rpmirror resolve'
	# The primary may continue with all copies, because that needs no change of the view.
	client_start 3
	wait_until 40 client_ended "$clients" || fail "a process waits for a set that is split"
	! client_serves "$clients" || fail "a member of a split set was promoted"
	kill -9 "${client_pids[client]}"
	client_start 1
	wait_until 40 client_ended "$clients" || fail "a process waits for a set that is split"
	! client_serves "$clients" || fail "a member of a split set was promoted"
	# An operator decides that the register's record is right. The newest copy becomes the
	# primary first.
	for i in 2 1 3; do mirror $i resolve orders --discard "${names[i]}" >resolve.log 2>&1 || fail "$(cat resolve.log)"; done
	client_start 2
	wait_until 60 counts_on 2 b || fail "no way out of the split: $(cat promote.log; mirror 2 explain orders 2>&1)"
	primary=2 client=$clients
	finish
}

# ---- all links are slow ----

links_are_slow() { # HOST THAT RETURNS, AND BECOMES THE NEXT PRIMARY
	network cut "$primary" "$1"
	expect_excluded "${names[$1]}"
	network heal '*' '*'
	network delay '*' '*' 100 # 200 ms for a round trip
	expect_more W 10
	wait_until 40 mirror "$primary" resync orders "${names[$1]}" >resync.log 2>&1 || fail "no resync: $(cat resync.log)"
	expect_in_sync
	kill -9 "${client_pids[client]}"
	follow "$1"
	expect_more W 10
	expect_more R 10
	expect_in_sync
	network heal '*' '*'
}

# ---- random failures ----

troubles=(lanes_are_cut answers_of_lanes_are_cut control_is_cut answers_of_control_are_cut bulk_is_cut
	replica_loses_the_register all_lose_the_register primary_loses_the_register etcd_is_slow etcd_has_no_majority
	etcd_dies_and_returns etcd_dies_with_the_primary links_are_slow)

# chance COUNT: sets $number to a random number below COUNT. It does not use $RANDOM, because other
# code uses $RANDOM and would change the sequence.
chance() { # COUNT
	seed=$(((seed * 1103515245 + 12345) % 2147483648))
	number=$((seed / 65536 % $1))
}

# Causes $ROUNDS failures, which $SEED chooses from all failures except the one in which all links
# are slow.
test_troubles_by_chance() {
	local round other directions=(in out both)
	seed=${SEED:-7}
	begin 3 # a slow network needs some round trips to connect
	for ((round = 1; round <= ${ROUNDS:-1}; round++)); do
		chance ${#troubles[@]}
		local trouble=${troubles[number]}
		chance 2
		other=$(((primary + number) % 3 + 1))
		chance 3
		echo "round $round: $trouble $other"
		"$trouble" "$other" "${directions[number]}"
	done
	finish
}

"test_$1"
