#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Hosts of two releases in one set: daemons, libraries and tools of this release ("now") and of the next release
# ("later", which adds a field to each message and a member to the record). Each combination works, hosts are upgraded
# one after the other while an application runs, and the record's format rises when all hosts support it.
# shellcheck source=tests/system/lib/processes.sh
. "$(dirname "$0")/../lib/processes.sh"
: "${RPMIRRORD:?}" "${RPMIRROR:?}" "${MIRROR_APP:?}" "${RPMIRRORD_LATER:?}" "${RPMIRROR_LATER:?}" "${MIRROR_APP_LATER:?}"
export RPMIRROR_ON_FENCED=error
names=(a b) ports=(0 0) daemons=()
declare -A daemon_of=([now]=$RPMIRRORD [later]=$RPMIRRORD_LATER) app_of=([now]=$MIRROR_APP [later]=$MIRROR_APP_LATER)
declare -A tool_of=([now]=$RPMIRROR [later]=$RPMIRROR_LATER)
value=0
logs+=(a.log b.log app.log out err)

start() { # HOST RELEASE
	local host=$1 name=${names[$1]}
	cat >"$name.conf" <<-CONF
		listen = 127.0.0.1:${ports[host]}
		socket = $work/$name.socket
		peer-timeout = 20000
		[set orders]
		member = $name
		data = $work/$name/data
		register = file:$work/register
		secret-file = $work/secret
		auto = yes
	CONF
	rm -f "$name.socket" "$name.out"
	"${daemon_of[$2]}" -c "$name.conf" >"$name.out" 2>>"$name.log" &
	daemons[host]=$!
	started+=("$!")
	wait_until 30 grep -qs "^listening" "$name.out" || fail "the daemon of $name does not start"
	ports[host]=$(sed -n 's/^listening.*://p' "$name.out")
}
stop() { # HOST
	kill "${daemons[$1]}"
	wait "${daemons[$1]}" || fail "the daemon of ${names[$1]} ends with an error"
}
replace() { stop "$1" && start "$1" "$2"; } # HOST RELEASE

# on HOST RELEASE CODE PATTERN ARGUMENTS...: runs that release's tool; the exit code and the output
# must be these.
on() {
	local host=$1 release=$2 want=$3 pattern=$4 got=0
	shift 4
	"${tool_of[$release]}" "$@" --timeout 30 --socket "$work/${names[host]}.socket" >out 2>err </dev/null || got=$?
	[ "$got" = "$want" ] || fail "'$*' exits with $got instead of $want"
	cat out err >both
	[ -z "$pattern" ] || grep -qE -e "$pattern" both || fail "'$*' does not say '$pattern'"
}

# says HOST RELEASE PATTERN ARGUMENTS...: repeats a command for some seconds, because the daemons
# exchange their states only once a second.
says() { # HOST RELEASE PATTERN ARGUMENTS...
	"${tool_of[$2]}" "${@:4}" --timeout 30 --socket "$work/${names[$1]}.socket" >out 2>&1 </dev/null || :
	grep -qE -e "$3" out
}
await() { wait_until 30 says "$@" || fail "'${*:4}' never says '$3'"; }

# begin HOST RELEASE: starts an application on that host. It is the primary until it ends.
begin() { # HOST RELEASE
	coproc APP { RPMIRROR_SOCKET=$work/${names[$1]}.socket exec "${app_of[$2]}" 2>>app.log; }
	started+=("$APP_PID")
	tell '^ok$' map-wait
}
tell() { # PATTERN COMMAND
	local line
	echo "$2" >&"${APP[1]}"
	read -r -t 60 line <&"${APP[0]}" || fail "no answer to '$2'"
	grep -qE -e "$1" <<<"$line" || fail "'$2' says '$line' and not '$1'"
}
write() { # writes a value to both copies; the earlier values must still be there
	[ $value = 0 ] || tell "^$value\$" 'get 4096'
	value=$((value + 1))
	tell '^durable 3 ' "put 4096 $value"
}
end() { # [kill]
	local pid=$APP_PID
	[ "${1:-}" = kill ] || tell '^ok$' unmap
	kill -9 "$pid"
	wait "$pid" 2>/dev/null || :
}
both_in_sync() { on "$1" "$2" 0 '' wait orders --until health=healthy,insync.a=yes,insync.b=yes; }

make_set() { # RELEASE of the tool
	head -c 32 /dev/urandom | base64 >secret
	chmod 600 secret
	mkdir a b
	# The ports of both daemons are known only when the daemons listen, so the daemons start
	# without the set.
	start 0 now
	start 1 now
	on 0 "$1" 0 '' init orders --size 4M --member "a=127.0.0.1:${ports[0]}:$work/a/data" \
		--member "b=127.0.0.1:${ports[1]}:$work/b/data" --register "file:$work/register" --lonely=manual --lease 20 --replica-timeout 20 --holdoff 0.1 \
		--here a --here b
}

test_each_combination_of_releases_works() {
	local primary replica library tool host=0
	make_set later
	for primary in now later; do
		for replica in now later; do
			replace $host $primary
			replace $((1 - host)) $replica
			for library in now later; do
				[ $library = now ] && tool=later || tool=now
				begin $host $library
				both_in_sync $host $tool
				write
				on $host $tool 0 'compared' verify orders
				# The next application serves on the other host, after the first
				# application was killed or has ended in good order.
				if [ $library = now ]; then end; else end kill && on $host $tool 0 '' status; fi
			done
			host=$((1 - host))
		done
	done
}

test_hosts_are_upgraded_one_after_the_other() {
	make_set now
	replace 0 now # the restarted daemons search for the set immediately
	replace 1 now
	begin 0 now
	both_in_sync 0 now
	write
	# A new set has the older format, so that hosts of the former release can join. This release
	# does not support format 3.
	await 0 now 'new settings' set orders format=2
	on 0 now 1 'understands formats up to 2 only' set orders format=3
	replace 1 later # the replica first
	both_in_sync 0 now
	write
	replace 0 later # then the daemon of the running application
	both_in_sync 0 later
	write
	# The application still uses the former release's library.
	await 1 later 'librpmirror of member a understands formats up to 2 only' set orders format=3
	await 0 later 'librpmirror of member a understands formats up to 2 only' set orders format=3
	end
	begin 1 later # the other host serves while this host's application is upgraded
	both_in_sync 1 later
	write
	await 1 later 'new settings' set orders format=3
	grep -q '"format":3.*"next":true' register || fail "the register has another format"
	write
	on 0 later 0 '"format": *3' status orders --json
	on 0 later 1 'cannot be lowered' set orders format=2
	end
	"$RPMIRROR_LATER" meta dump "$work/a/data" >out
	grep -qE 'format *:? *3' out || fail "the metadata have another format"
	# A running part of the former release has no harmful effect, and reports the mismatch.
	coproc APP { RPMIRROR_SOCKET=$work/b.socket exec "$MIRROR_APP" 2>>app.log; }
	started+=("$APP_PID")
	tell 'format 3, and librpmirror of process .* understands 2 at most: upgrade librpmirror' map
	kill -9 "$APP_PID"
	stop 0
	"$RPMIRRORD" -c a.conf >a.out 2>old.log &
	started+=("$!")
	wait_until 30 grep -qE 'format 3, but this program understands formats 1 to 2: upgrade it' old.log ||
		fail "the former daemon does not say what is wrong: $(cat old.log)"
	kill "$!" && wait "$!" || fail "it ends with an error"
	"$RPMIRROR" meta check "$work/a/data" >out 2>&1 && fail "metadata of format 3 are taken for format 2"
	grep -q 'format 3, but this program understands formats 1 to 2: upgrade it' out || fail "meta check says $(cat out)"
	start 0 later
	begin 0 later
	both_in_sync 0 later
	write
	end
}

"test_$1"
