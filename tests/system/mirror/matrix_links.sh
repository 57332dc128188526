#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The primary is cut off in a phase of a flush: between the primary and the other hosts either no traffic passes, or
# only traffic to the register. $PHASES: the phases. test_matrix.c has the other rows of the failure matrix in
# doc/mirror.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../lib/processes.sh
. "$here/../lib/processes.sh"
# shellcheck source=../lib/hosts.sh
. "$here/../lib/hosts.sh"
# shellcheck source=cluster.sh
. "$here/cluster.sh"
: "${MIRROR_APP:?}"
declare -A points=([F1]=flush_snapshot [F2]=flush_local [F3]=flush_settled)
app_pids=() app_feeds=()
apps=0

# Starts on that host an application that executes commands (app_main.c). $app becomes its number.
app_start() { # HOST [POINT AT WHICH IT STOPS]
	app=$((++apps))
	mkfifo "feed_app$app"
	start_on "$1" "app$app.log" env RPMIRROR_ON_FENCED=error "RPMIRROR_SOCKET=$PWD/socket$1" ${2:+"MIRROR_STOP_AT=$2"} \
		sh -c 'exec "$0" <"$1"' "$MIRROR_APP" "feed_app$app"
	app_pids[app]=$!
	exec {app_feeds[app]}>"feed_app$app"
}

tell() { # APP COMMAND...
	local app=$1
	shift
	echo "$*" >&"${app_feeds[app]}"
}

answers_are() { [ "$(wc -l <"app$1.log")" -ge "$2" ]; }
# answer APP NUMBER: prints the application's answer with that number.
answer() { # APP NUMBER
	wait_until 60 answers_are "$1" "$2" || fail "application $1 has no answer $2: $(mirror 2 explain orders 2>&1)"
	sed -n "$2p" "app$1.log"
}

expect() { # APP NUMBER PATTERN
	local line
	line=$(answer "$1" "$2")
	# shellcheck disable=SC2053 # a pattern
	[[ $line == $3 ]] || fail "application $1: '$line' instead of '$3'"
}

is_stopped() { [ "$(sed 's/.*) //' "/proc/${app_pids[$1]}/stat" | cut -c1)" = T ]; }

# get_to PHASE CUT...: brings application $app on host 1 into that phase of flush 2, after flush 1
# was acknowledged, and cuts off the host by these orders.
get_to() { # PHASE CUT...
	local phase=$1 point=${points[$1]:-}
	shift
	app_start 1 ${point:+"$point:2"}
	tell "$app" map-wait
	expect "$app" 1 ok
	wait_until 60 in_sync 1 || fail "not all copies are in-sync: $(mirror 1 explain orders)"
	tell "$app" put 4096 1
	expect "$app" 2 'durable 7 flags 0'
	[ "$phase" != F2 ] || "$@"
	if [ "$phase" = F0 ]; then
		tell "$app" store 4096 2
		expect "$app" 3 ok
	else
		tell "$app" put 4096 2
		wait_until 60 is_stopped "$app" || fail "it does not come to phase $phase"
	fi
	[ "$phase" = F2 ] || "$@"
}

cut_all() {
	network cut 1 '*'
	network cut '*' 1
}
cut_data() {
	network port 1 '*' 7650
	network port '*' 1 7650
}

# Waits until all copies are in-sync, unmaps the set, and checks that all copies are equal.
settle() { # APP HOST ANSWERS SO FAR
	wait_until 60 is_whole "$2" || fail "not all copies are in-sync: $(mirror "$2" explain orders)"
	tell "$1" unmap
	expect "$1" $(($3 + 1)) ok
	cmp copy1 copy2 || fail "copies 1 and 2 differ"
	cmp copy2 copy3 || fail "copies 2 and 3 differ"
	exec {app_feeds[$1]}>&-
}

# The register decides: it lets another process become the primary, and the former primary's flush
# fails.
test_a_primary_that_is_cut_off_in_a_flush_is_fenced() {
	local phase former value at
	cluster_start --replica-timeout 1
	for phase in ${PHASES:-F2}; do
		get_to "$phase" cut_all
		former=$app
		kill -STOP "${app_pids[former]}"
		app_start 2
		tell "$app" map-wait
		expect "$app" 1 ok
		tell "$app" get 4096
		value=$(answer "$app" 2)
		case $phase in
		F3) [ "$value" = 2 ] ;;
		*) [ "$value" = 1 ] ;;
		esac || fail "phase $phase: $value is read"
		kill -CONT "${app_pids[former]}"
		at=3
		[ "$phase" != F0 ] || { tell "$former" put 4096 2 && at=4; }
		network heal '*' '*'
		# In phase F3 all members had answered before the cut.
		[ "$phase" = F3 ] || expect "$former" $at '*another primary exists*'
		kill -9 "${app_pids[former]}"
		settle "$app" 2 2
	done
}

# The primary reaches the register: it excludes the other members, and the flush returns.
test_a_primary_whose_data_connections_are_cut_in_a_flush_goes_on() {
	local phase at
	cluster_start --replica-timeout 1
	for phase in ${PHASES:-F1}; do
		get_to "$phase" cut_data
		at=3
		if [ "$phase" = F0 ]; then
			tell "$app" put 4096 2
			at=4
		else
			kill -CONT "${app_pids[app]}"
		fi
		case $phase in
		F3) expect "$app" $at 'durable *' ;;
		*) expect "$app" $at 'durable 1 flags 3*' ;;
		esac
		network heal '*' '*'
		settle "$app" 1 $at
	done
}

"test_$1"
