#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The programs that a daemon runs before a promotion (fence-agent) and for it (on-promote), with real daemons of two
# hosts and real applications.
# shellcheck source=tests/system/lib/processes.sh
. "$(dirname "$0")/../lib/processes.sh"
# shellcheck source=tests/system/mirror/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2153 # set by CMakeLists.txt
tool=$RPMIRROR app=$MIRROR_APP
logs+=(out err program.log b_out b_err c_out c_err)

# on HOST CODE PATTERN ARGUMENTS...: runs the tool with this host's daemon; the exit code and the
# output must be these.
on() {
	local host=$1 want=$2 pattern=$3 got=0
	shift 3
	"$tool" "$@" --timeout 60 --socket "${sockets[host]}" >out 2>err </dev/null || got=$?
	[ "$got" = "$want" ] || fail "'$*' exits with $got instead of $want"
	cat out err >both
	[ -z "$pattern" ] || grep -qE -e "$pattern" both || fail "'$*' does not say '$pattern'"
}
says() { # HOST PATTERN COMMAND...
	local host=$1 pattern=$2
	shift 2
	"$tool" "$@" --socket "${sockets[host]}" >out 2>err </dev/null || :
	grep -qE -e "$pattern" out
}

# program COMMANDS: replaces the script that the daemons run as the configured program.
program() {
	cat >program.new <<-SCRIPT
		#!/bin/bash
		cd '$work'
		[ "\$RPMIRROR_MEMBER" = b ] || exit 0
		echo "\$\$ \$*" >>program.log
		$1
	SCRIPT
	chmod +x program.new
	mv program.new program # a running program keeps its own text
}
# This program stores its environment and descriptors, and hangs together with a child process.
# shellcheck disable=SC2016 # for that shell
hangs='env >env.new; mv env.new env; readlink /proc/$$/fd/* >fds.new; mv fds.new fds
	sleep 1000 & echo $! >child.new; mv child.new child; wait'
has_run() { [ "$(wc -l <program.log)" -gt "$1" ]; } # MORE THAN

# Host 0's application is the primary; host 1's application waits for the role.
primary_on_a() {
	coproc APP { RPMIRROR_SOCKET=${sockets[0]} exec "$app" 2>app.log; }
	started+=("$APP_PID")
	tell map
	on 0 0 '' wait orders --until health=healthy
	tell put 64 1
}
tell() { # COMMAND
	echo "$*" >&"${APP[1]}"
	read -r -t 60 answer <&"${APP[0]}" || fail "no answer to '$*'"
}
wait_on_b() {
	mkfifo b_in
	RPMIRROR_SOCKET=${sockets[1]} "$app" <b_in >b_out 2>b_err &
	started+=("$!")
	exec 6>b_in
	echo map-wait >&6
}

# winners: prints the number of applications on b and c that have become the primary.
winners() { cat b_out c_out | grep -cx ok || :; }
some_host_serves() { [ "$(winners)" -gt 0 ]; }
both_run() { grep -qx b agents && grep -qx c agents; }

# Both agents run their programs at the same moment; the register permits only one host to be
# promoted.
test_two_hosts_run_their_agents_at_once() {
	local winner loser=2
	: >agents
	printf '#!/bin/bash\ncd %q\necho "$RPMIRROR_MEMBER" >>agents\nuntil [ -e go ]; do sleep 0.01; done\n' "$work" >program
	chmod +x program
	export MIRROR_HOSTS_MORE="fence-agent = $work/program"$'\n'
	hosts_begin 3 4194304 1000 yes
	primary_on_a
	kill -STOP "$APP_PID"
	wait_on_b
	mkfifo c_in
	RPMIRROR_SOCKET=${sockets[2]} "$app" <c_in >c_out 2>c_err &
	started+=("$!")
	exec 7>c_in
	echo map-wait >&7
	wait_until 60 both_run || fail "not both agents are run: $(cat agents)"
	touch go
	wait_until 60 some_host_serves || fail "nobody serves: $("$tool" explain orders --socket "${sockets[1]}")"
	winner=1
	! grep -qx ok c_out || { winner=2 && loser=1; }
	on "$winner" 0 '' wait orders --until "primary=$([ $winner = 1 ] && echo b || echo c),phase=serving"
	wait_until 60 says "$loser" 'epoch 2' status || fail "the other host does not know epoch 2"
	# The second host's program proved that a host was off in an epoch that has ended. So the second
	# host waits, and no further host has to be switched off.
	says "$winner" 'epoch 2' status || fail "there was more than one promotion"
	[ "$(winners)" = 1 ] || fail "both serve"
	[ "$(sort agents | uniq -d)" = '' ] || fail "an agent is run again: $(cat agents)"
	kill -CONT "$APP_PID"
	tell put 64 2
	[[ $answer == *"fenced for good"* ]] || fail "the former primary's flush: $answer"
	hosts_end
}

waits_for_agent() {
	! "$tool" promote orders b --timeout 1 --socket "${sockets[1]}" >out 2>err && grep -q 'fence agent' err
}

test_a_fence_agent_stands_for_the_lease() {
	local child
	: >program.log
	program 'exit 3'
	export MIRROR_HOSTS_MORE="fence-agent = $work/program"$'\n'"fence-timeout = 3000"$'\n'
	hosts_begin 2 4194304 1000 yes
	"$tool" events orders --socket "${sockets[1]}" >events 2>err &
	started+=("$!")
	primary_on_a
	# An expired lease has no effect as long as no process waits for the role.
	kill -STOP "$APP_PID"
	wait_until 60 says 1 'why: the fence agent .*member a .*no process on this host waits' status || fail "the lease does not end"
	has_run 0 && fail "the agent runs for nobody"
	# The program fails, so no member is promoted, and all answers contain the reason and the
	# operator's choices.
	wait_on_b
	wait_until 60 has_run 1 || fail "the agent is not run again"
	grep -qx '[0-9]* a' program.log || fail "it is not called with the primary's name"
	wait_until 60 says 1 'down.*epoch 1' status || fail "the set is not down"
	wait_until 60 says 1 "why: the fence agent .*it ended with 3" status || fail "status does not say why"
	wait_until 60 says 1 "next: .*rpmirror fence orders a.*promote orders b --force" status || fail "status does not say what to do"
	wait_until 60 says 1 'Waiting: the fence agent is to prove that member a is off, because .*it ended with 3' explain ||
		fail "explain does not say it"
	wait_until 60 says 1 'Waiting: process .* has not renewed its lease' explain || fail "explain does not say who waits"
	wait_until 60 waits_for_agent || fail "the promotion's time limit has no reason"
	wait_until 60 grep -q "orders/a fence .*failed.*it ended with 3.*rpmirror fence orders a" events || fail "no event of the failure"
	# The program hangs, so the daemon kills it with its children.
	program "$hangs"
	wait_until 90 test -s child || fail "the agent is not run"
	read -r child <child
	wait_until 60 says 1 'it did not end within 3000 ms' status || fail "it has no time limit"
	wait_until 60 is_gone "$child" || fail "its child lives on"
	# The program must have inherited neither the daemon's environment nor a descriptor.
	grep -vxE 'PATH=.*|PWD=.*|SHLVL=.*|_=.*|OLDPWD=.*|RPMIRROR_SET=orders|RPMIRROR_MEMBER=b|RPMIRROR_PRIMARY=a|RPMIRROR_ADDRESS=127.0.0.1|RPMIRROR_EPOCH=1' env &&
		fail "its environment has more"
	[ "$(grep -c RPMIRROR env)" = 5 ] || fail "its environment has less"
	grep -vE '^/dev/null$|/log$|/program' fds && fail "it has a descriptor of the daemon"
	[ ! -s b_out ] || fail "b was promoted without a proof"
	# The program reports that the host is off.
	program 'echo proved >>proved'
	on 1 0 '' wait orders --until primary=b,phase=serving
	wait_until 60 grep -qx ok b_out || fail "the application on b does not map"
	wait_until 60 says 1 "epoch 2" status || fail "not the second epoch"
	wait_until 60 grep -q "orders/a fence .*member a is off" events || fail "no event of the proof"
	# The paused primary can no longer store or flush anything.
	kill -CONT "$APP_PID"
	tell put 64 2
	[[ $answer == *"fenced for good"* ]] || fail "the former primary's flush: $answer"
	echo 'put 64 3' >&6
	wait_until 60 grep -q durable b_out || fail "the new primary does not flush"
	[ "$(wc -l <proved)" = 1 ] || fail "the agent is run again"
	hosts_end
}

test_an_operators_word_ends_a_fence_agent() {
	: >program.log
	program 'touch begun; sleep 1000'
	export MIRROR_HOSTS_MORE="fence-agent = $work/program"$'\n'
	hosts_begin 2 4194304 1000 yes
	primary_on_a
	kill -STOP "$APP_PID"
	wait_on_b
	wait_until 60 test -e begun || fail "the agent is not run"
	on 1 0 'counts as off' fence orders a
	wait_until 60 grep -qx ok b_out || fail "the word does not count"
	on 1 0 '' wait orders --until primary=b,phase=serving
	# A program that is not needed any more is ended.
	read -r pid _ <program.log
	wait_until 60 is_gone "$pid" || fail "the agent lives on"
	hosts_end
}

test_on_promote_is_limited_and_explained() {
	local child
	: >program.log
	program 'exit 4'
	export MIRROR_HOSTS_MORE="on-promote = $work/program"$'\n'"on-promote-timeout = 5000"$'\n'
	hosts_begin 2 4194304 60000 yes
	"$tool" events orders --socket "${sockets[1]}" >events 2>err &
	started+=("$!")
	primary_on_a
	# The program runs after the primary's death, and the daemon reports that the program
	# failed.
	kill -9 "$APP_PID"
	wait_until 60 says 1 'why: the primary on member a has ended' status || fail "status does not say that the primary is gone"
	says 1 'down.*epoch 1' status || fail "the set is not down"
	wait_until 60 says 1 'on-promote is to start the application, because the last time it failed: it ended with 4; the next attempt' explain ||
		fail "its failure is not explained"
	wait_until 60 grep -q 'orders/b on-promote .*failed.*it ended with 4' events || fail "no event of the failure"
	on 1 1 'on-promote .*/program has failed: it ended with 4' promote orders b
	# The program hangs, so the daemon kills it with its children.
	program "$hangs"
	on 1 1 'it did not end within 5000 ms, and was killed' promote orders b
	read -r child <child
	wait_until 60 is_gone "$child" || fail "its child lives on"
	grep -vE '^/dev/null$|/log$|/program' fds && fail "it has a descriptor of the daemon"
	# The daemon dies, and the program continues. The next daemon has no record of the program.
	mkfifo go
	program 'echo $$ >lingers.new; mv lingers.new lingers; read -r _ <go; echo "$RPMIRROR_SET $RPMIRROR_MEMBER" >went_on'
	"$tool" promote orders b --timeout 60 --socket "${sockets[1]}" >out 2>err </dev/null &
	started+=("$!")
	wait_until 60 test -s lingers || fail "it is not run"
	hosts_ask kill 1 >out
	echo go >go
	wait_until 60 grep -qx 'orders b' went_on || fail "it does not go on without the daemon"
	program 'exit 4'
	hosts_ask start 1 >out
	wait_until 60 says 1 'the last time it failed: it ended with 4' explain || fail "the next daemon does not run it"
	# The program starts the application, which also survives the death of the daemon.
	mkfifo b_in
	program "RPMIRROR_SOCKET='${sockets[1]}' setsid '$app' <b_in >b_out 2>b_err & echo \$! >b_pid"
	exec 6<>b_in
	echo map-wait >&6
	on 1 0 '' promote orders b
	on 1 0 '' wait orders --until primary=b,phase=serving
	wait_until 60 test -s b_pid || fail "the program has not started the application"
	started+=("$(cat b_pid)")
	hosts_ask kill 1 >out
	echo 'put 64 3' >&6
	wait_until 60 grep -q durable b_out || fail "the application does not go on without the daemon"
	hosts_end
}

# hup HOST PATTERN: the daemon reads its configuration again, and logs PATTERN.
hup() {
	local log=${sockets[$1]%/socket}/log from
	from=$(($(wc -l <"$log") + 1))
	kill -HUP "${daemons[$1]}"
	wait_until 60 logged "$log" "$from" "$2" || fail "the daemon does not say '$2': $(tail -n "+$from" "$log")"
}
logged() { tail -n "+$2" "$1" | grep -qE -e "$3"; }

test_it_reloads_what_can_change() {
	local folder secret conf
	export MIRROR_HOSTS_SECRET=yes
	hosts_begin 2 4194304 10000 yes
	folder=${sockets[0]%/socket} secret=${sockets[0]%/*/socket}/secret
	conf=$folder/conf
	primary_on_a
	# The secret is replaced while an application runs. Later connections need the new secret.
	(umask 077 && echo 'another secret that both ends know' >"$secret.new")
	mv "$secret.new" "$secret"
	hup 0 'the secret has changed'
	hup 1 'the configuration .* was reloaded'
	hosts_ask kill 1 >out
	tell put 64 2
	hosts_ask start 1 >out
	on 0 0 '' wait orders --until health=healthy,insync.b=yes,copy.b=in-sync
	tell put 64 3
	[[ $answer == durable* ]] || fail "the application has lost its role: $answer"
	on 0 0 'epoch 1' status
	# If the new secret cannot be used, the former secret stays valid.
	chmod 644 "$secret"
	hup 0 'the new secret cannot be used, so the former one is kept: .* is open to others'
	chmod 600 "$secret"
	cp "$conf" good
	echo nonsense >>"$conf"
	hup 0 "the new configuration cannot be used, so the former one is kept: .*/conf:[0-9]*: 'nonsense'"
	# The log names settings that take effect only at the next start.
	sed -e 's/^socket = .*/socket = \/nowhere/' -e 's/^member = .*/member = b/' -e 's/^secret-file.*//' \
		-e 's/^register = /&file:\/elsewhere/' good >"$conf"
	printf '[set more]\nmember = a\ndata = /nowhere/more\nregister = file:/nowhere\n' >>"$conf"
	hup 0 'set more is new: it is served after a restart of the daemon'
	for key in "'socket' has changed" "set orders: 'member' has changed" "gets or loses its secret" "'register' has changed"; do
		grep -q "$key" "$folder/log" || fail "the log does not say: $key"
	done
	cp good "$conf"
	hup 0 'was reloaded'
	tell put 64 4
	[[ $answer == durable* ]] || fail "the application has lost its role: $answer"
	on 0 0 '"health":"healthy"' status --json
	hosts_end
}

"test_$1"
