#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# rpmirror with real daemons of two or three hosts.
# shellcheck source=tests/system/lib/processes.sh
. "$(dirname "$0")/../lib/processes.sh"
# shellcheck source=tests/system/mirror/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2153 # set by CMakeLists.txt
tool=$RPMIRROR app=$MIRROR_APP
logs+=(out err)

# on HOST CODE PATTERN ARGUMENTS...: by the daemon of this host
on() {
	local host=$1 want=$2 pattern=$3 got=0
	shift 3
	"$tool" "$@" --timeout 60 --socket "${sockets[host]}" >out 2>err </dev/null || got=$?
	[ "$got" = "$want" ] || fail "'$*' exits with $got instead of $want"
	cat out err >both
	[ -z "$pattern" ] || grep -qE -e "$pattern" both || fail "'$*' does not say '$pattern'"
}

# An application on host 0, which does what tell asks for.
map_on_first() {
	coproc APP { RPMIRROR_SOCKET=${sockets[0]} exec "$app" 2>app.log 5>&-; } # 5: what ends etcd
	started+=("$APP_PID")
	tell map
}

tell() { # COMMAND: must be answered by ok
	local line
	echo "$*" >&"${APP[1]}"
	read -r -t 60 line <&"${APP[0]}" || fail "no answer to '$*'"
	[ "${line%% *}" = ok ] || fail "'$*': $line"
}

test_it_shows_what_the_daemons_know() {
	hosts_begin 2
	on 0 0 'orders   down   epoch 0' status
	on 0 3 '' status --check
	map_on_first
	on 0 0 '' wait orders --until health=healthy,primary=a,copy.a=in-sync,copy.b=in-sync,link.b=connected
	on 1 0 '' wait orders --until health=healthy,primary=a,role.a=primary,copy.b=in-sync,link.b=local
	on 0 0 'orders   healthy   epoch 1.*primary a' status orders
	on 0 0 '' status --check
	on 0 0 '"schema":1' status --json
	on 0 0 'exists orders/b' events --now
	on 0 0 'Member a is primary of epoch 1 and serves' explain
	on 1 0 '' status --what-if lost=a
	on 0 2 "no copy of set 'others'" status others
	tell unmap
	on 1 0 '' wait orders --until phase=none,primary=none
	hosts_end
}

test_it_refuses_what_the_set_does_not_permit() {
	hosts_begin 2
	map_on_first
	on 0 0 '' wait orders --until health=healthy
	on 1 2 'no process on this host waits' promote orders b
	on 0 2 'another host' promote orders b
	on 0 2 "no member 'z'" promote orders z
	on 0 2 'no such member' member remove orders z
	on 0 2 'demoted first|primary' member remove orders a
	on 0 0 'epoch 1' status
	hosts_end
}

test_members_come_and_go() {
	hosts_begin 2
	on 0 0 'added' member add orders "c=127.0.0.1:7999:$work/c"
	on 0 0 '' wait orders --until insync.c=no
	"$tool" init orders --join c --register "$register" >out 2>err || fail "no copy of c"
	"$tool" meta dump c --json | grep -q '"flags":\["empty"\]' || fail "c is not empty"
	on 1 0 '' wait orders --until insync.c=no
	on 1 0 'replaced' member replace orders c
	on 0 0 'removed' member remove orders c
	on 1 0 '' wait orders --until insync.b=yes,insync.a=yes
	hosts_end
}

# is_counted TEXT: the status has it
is_counted() {
	"$tool" status --socket "${sockets[0]}" >out 2>err && grep -q "$1" out
}

test_it_counts_the_registers_members() {
	local uri pids etcd
	mkfifo etcd_in etcd_out
	"$SYSTEM_ETCD" 3 <etcd_in >etcd_out 2>etcd.log &
	etcd=$!
	started+=("$etcd")
	logs+=(etcd.log)
	exec 5>etcd_in
	read -r uri pids <etcd_out || { # 77: there is no etcd
		wait $etcd || exit $?
	}
	hosts_begin 2 4194304 5000 no "$uri"
	wait_until 90 is_counted 'register etcd 3 of 3' || fail "not three members"
	map_on_first
	on 0 0 '' wait orders --until health=healthy
	on 0 0 'survives the loss of any one host' status
	on 0 0 '"outcome":"fails-over"' status --what-if lost=a --json
	kill -9 "${pids%% *}"
	wait_until 90 is_counted 'register etcd 2 of 3' || fail "not two members"
	on 0 0 'but not of a host of the register' status
	hosts_end
	exec 5>&-
	wait $etcd || fail "etcd does not end"
}

"test_$1"
