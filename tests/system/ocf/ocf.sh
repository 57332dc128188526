#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Calls contrib/ocf/rpmirror as Pacemaker would call it. The application is examples/mirror-kv, which on-promote starts.
# It stores a key each tenth of a second, and ends when its host is no longer the primary.
# shellcheck source=tests/system/lib/processes.sh
. "$(dirname "$0")/../lib/processes.sh"
: "${RPMIRROR:?}" "${RPMIRRORD:?}" "${MIRROR_KV:?}"
[ -e /usr/lib/ocf/lib/heartbeat/ocf-shellfuncs ] || { echo "SKIPPED: there is no resource-agents" && exit 77; }
logs=(out err)

# ocf-tester also runs the agent as nobody, a user who is not permitted to open the test's own
# folder.
public=$(mktemp -d)
chmod 755 "$public"
install -m 755 "$RPMA_SOURCE/contrib/ocf/rpmirror" "$public/rpmirror"
agent=$public/rpmirror

end_applications() {
	local file
	for file in app*.pid rsctmp*/*.pid; do
		[ ! -s "$file" ] || kill -9 -- "-$(cat "$file")" 2>/dev/null || :
	done
	rm -rf "$public"
	cleanup
}
trap end_applications EXIT
trap 'exit 1' INT TERM

# application HOST: writes the program that on-promote names.
application() {
	cat >"app$1" <<-END
		#!/bin/sh
		cd '$work'
		export RPMIRROR_SOCKET='$work/socket$1'
		setsid sh -c 'echo \$\$ >app$1.pid; i=0; while :; do i=\$((i + 1)); echo "set k\$i v\$i"; sleep 0.1; done |
			"$MIRROR_KV" orders' >app$1.log 2>&1 </dev/null &
	END
	chmod +x "app$1"
}

# parameters HOST: exports the agent's parameters for that host.
parameters() { # HOST
	export OCF_ROOT=/usr/lib/ocf OCF_RESOURCE_INSTANCE="orders:$1" HA_RSCTMP="$work/rsctmp$1"
	export OCF_RESKEY_set=orders OCF_RESKEY_socket="$work/socket$1" OCF_RESKEY_config="$work/conf$1"
	export OCF_RESKEY_log="$work/daemon$1.log" OCF_RESKEY_tool="$RPMIRROR" OCF_RESKEY_daemon="$RPMIRRORD"
	export OCF_RESKEY_CRM_meta_timeout=30000
	mkdir -p "$HA_RSCTMP"
}

one_host() {
	application 1
	parameters 1
	printf '%s\n' 'listen = 127.0.0.1:0' "socket = $work/socket1" '[set orders]' 'member = a' "data = $work/copy1" \
		"register = file:$work/register" "on-promote = $work/app1" >conf1
	"$RPMIRROR" init orders --size 2M --lonely manual --lease 1 --register "file:$work/register" --member "a=127.0.0.1:$work/copy1" \
		>out 2>err || fail "the set cannot be made"
}

# act CODE ACTION: runs the agent with the parameters that are set; the agent must exit with CODE.
act() {
	local got=0
	"$agent" "$2" >out 2>err </dev/null || got=$?
	[ "$got" = "$1" ] || fail "$2 ends with $got instead of $1"
}

test_ocf_tester_passes() {
	local options=() name
	command -v ocf-tester >/dev/null && command -v xmllint >/dev/null || { echo "SKIPPED: there is no ocf-tester" && exit 77; }
	one_host
	for name in set socket config log tool daemon; do
		value=OCF_RESKEY_$name
		options+=(-o "$name=${!value}")
	done
	logs+=(daemon1.log app1.log)
	ocf-tester -n orders "${options[@]}" "$agent" >out 2>err || fail "ocf-tester"
	grep -q 'passed all tests' out || fail "ocf-tester is not content"
	! grep -q 'does not support promotable\|does not support the notify' out || fail "$(cat out)"
}

test_wrong_parameters_are_named() {
	one_host
	act 0 validate-all
	OCF_RESKEY_set='' act 6 validate-all
	grep -q "'set' is missing" err || fail "no reason"
	OCF_RESKEY_set=others act 6 validate-all
	grep -q "has no set 'others'" err || fail "no reason"
	OCF_RESKEY_tool=/none/rpmirror act 5 validate-all
	echo nonsense >>conf1
	act 6 start
	grep -q "conf1:8" err || fail "no reason: $(cat err)"
	act 3 fly
	act 0 --help
	grep -q 'usage: rpmirror start' out || fail "no help"
	OCF_RESKEY_tool=/none/rpmirror act 7 monitor
	OCF_RESKEY_tool=/none/rpmirror act 0 stop
}

# If a process dies that the agent did not stop, the next monitor action must report the death.
test_failures_are_reported_as_what_they_are() {
	one_host
	act 7 monitor
	act 0 start
	act 0 monitor
	act 0 promote
	act 8 monitor
	# The application dies.
	kill -9 -- "-$(cat app1.pid)"
	wait_until 20 monitor_is 9 || fail "the lost application is not reported"
	act 0 demote
	act 0 monitor
	wait_until 20 promotes || fail "no second promotion: $(cat err)"
	act 8 monitor
	# The daemon dies. The application continues, so the resource does not count as stopped.
	kill -9 "$(cat rsctmp1/rpmirror-orders.pid)"
	act 9 monitor
	act 1 stop
	grep -q 'cannot be demoted' err || fail "no reason: $(cat err)"
	act 0 start
	wait_until 20 monitor_is 8 || fail "the daemon does not find the application again"
	act 0 stop
	act 7 monitor
}
monitor_is() {
	local got=0
	"$agent" monitor >out 2>err || got=$?
	[ "$got" = "$1" ]
}
promotes() { "$agent" promote >out 2>err; }

# on_host HOST CODE ACTION: runs the agent on that host; the agent must exit with CODE.
on_host() {
	local got=0
	parameters "$1"
	on "$1" "$agent" "$3" >out 2>err </dev/null || got=$?
	[ "$got" = "$2" ] || fail "$3 on host $1 ends with $got instead of $2: $(mirror "$1" explain orders 2>&1)"
}
score_of() { tail -n 1 "scores$1"; }
# stored HOST: prints the number of keys that the host's application stored before it ended.
stored() { grep -cx ok "app$1.log"; }

# Calls the agent in Pacemaker's order: a start, a move, the loss of a host and the return of that
# host, with scores as in a cluster.
test_a_set_of_three_hosts_is_promoted_moved_and_recovered() {
	local i before
	. "$RPMA_SOURCE/tests/system/lib/hosts.sh"
	. "$RPMA_SOURCE/tests/system/mirror/cluster.sh"
	daemon_start() { # the agent starts the daemon
		application "$1"
		printf '%s\n' "listen = 10.77.0.$1" "socket = $PWD/socket$1" 'peer-timeout = 1000' '[set orders]' "member = ${names[$1]}" \
			"data = $PWD/copy$1" "register = $register" "on-promote = $work/app$1" >"conf$1"
		logs+=("daemon$1.log" "app$1.log")
		on_host "$1" 7 monitor
		on_host "$1" 0 start
	}
	mkdir sbin
	printf '#!/bin/sh\necho "$*" >>"%s/scores${OCF_RESOURCE_INSTANCE#*:}"\n' "$work" >sbin/crm_attribute
	chmod +x sbin/crm_attribute
	export HA_SBIN_DIR=$work/sbin OCF_RESKEY_crm_feature_set=3.16.2
	cluster_start
	on_host 1 0 promote
	on_host 1 8 monitor
	[ "$(score_of 1)" = '-p -v 1000' ] || fail "the primary's score is $(score_of 1)"
	wait_until 60 in_sync 1 || fail "the copies do not become equal"
	for i in 2 3; do
		on_host $i 0 monitor
		[ "$(score_of $i)" = '-p -v 100' ] || fail "the score of host $i is $(score_of $i)"
	done
	wait_until 20 eval '[ "$(stored 1)" -ge 5 ]' || fail "the application does not store"
	# Move the primary to another host.
	on_host 1 0 demote
	on_host 1 0 monitor
	on_host 2 0 promote
	on_host 2 8 monitor
	on_host 1 0 monitor
	# The primary's host fails: its processes and its network.
	wait_until 60 in_sync 2 || fail "the copies do not become equal again"
	wait_until 20 eval '[ "$(stored 2)" -ge 5 ]' || fail "the application does not store"
	kill -9 -- "$(cat rsctmp2/rpmirror-orders.pid)" "-$(cat app2.pid)"
	kill -9 "${etcd_pids[2]}"
	before=$(stored 2)
	on_host 2 9 monitor
	on_host 3 0 promote
	on_host 3 8 monitor
	on_host 1 0 notify
	# The host returns as a copy, without the files that the agent wrote before.
	rm -r rsctmp2
	etcd_start 2
	on_host 2 7 monitor
	on_host 2 0 start
	on_host 2 0 monitor
	wait_until 60 is_whole 3 || fail "host 2 does not return"
	# The new primary has the last key that was acknowledged on the lost host.
	on_host 3 0 demote
	start_on 3 value env "RPMIRROR_SOCKET=$work/socket3" sh -c "{ echo get k$before; sleep 5; } | '$MIRROR_KV' orders"
	on_host 3 0 promote
	wait_until 20 test -s value || fail "the process does not read"
	[ "$(cat value)" = "v$before" ] || fail "k$before is '$(cat value)'"
	for i in 3 1 2; do
		on_host $i 0 stop
		on_host $i 7 monitor
	done
}

"test_$1"
