# SPDX-License-Identifier: BSD-3-Clause
# Sourced: runs a foreign server and its clients on the software RNIC.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin # the folders of tgtd and ip

: "${SOFTRNIC:?the launcher}" "${INTEROP_PORTS:=11000}"
launcher=$SOFTRNIC
scratch=$(mktemp -d ${SCRATCH_IN:+-p "$SCRATCH_IN"})
started=()

clean_up() {
	for pid in "${started[@]}"; do
		kill -TERM "$pid" 2>/dev/null || : # the process of timeout(1), which forwards the signal
	done
	rm -rf "$scratch"
}
trap clean_up EXIT

fail() {
	printf 'FAILED: %s\n' "$*" >&2
	for log in "$scratch"/*.log; do
		[ ! -s "$log" ] || { printf -- '-- %s\n' "${log##*/}" && tail -n 20 "$log"; } >&2
	done
	exit 1
}

# The programs need no privilege: root runs them as a user without rights, and other users run them
# so that they cannot gain rights. The programs also lock no memory.
as_user=(setpriv --no-new-privs)
drop_rights() {
	ulimit -l 0
	[ "$(id -u)" = 0 ] && [ -z "${KEEP_RIGHTS:-}${OWN_NETWORK_OF_USER:-}" ] || return 0
	as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --inh-caps=-all
		--bounding-set=-all)
	chown 65534 "$scratch"
	"${as_user[@]}" test -x "$SOFTRNIC" || copy_software
}

# Copies the programs from the build tree to a folder that every user can read, as if installed.
copy_software() {
	local from to=$scratch/software
	from=$(dirname "$SOFTRNIC")
	mkdir -p "$to/lib/softrnic-dropin"
	cp "$SOFTRNIC" "$to/softrnic"
	cp "$from/libsoftrnic-verbs.so" "$(ldd "$from/libsoftrnic-verbs.so" |
		awk '/libsoftrnic\.so/ { print $3 }')" "$to/lib"
	cp -P "$from"/dropin/*.so* "$to/lib/softrnic-dropin"
	ln -s softrnic-dropin/../libsoftrnic-verbs.so lib/softrnic-dropin "$to"
	export LD_LIBRARY_PATH=$to/lib
	SOFTRNIC=$to/softrnic
}

# Gives the test a separate network namespace. It has another address in addition to loopback,
# because some programs do not use loopback.
own_network() {
	local how=-n
	if [ -z "${OWN_NETWORK:-}" ]; then
		[ "$(id -u)" = 0 ] && unshare $how true 2>/dev/null || { how=-Urn && export OWN_NETWORK_OF_USER=1; }
		unshare $how true || exit 77
		rm -rf "$scratch"
		SOFTRNIC=$launcher OWN_NETWORK=1 exec env -u LD_LIBRARY_PATH unshare $how bash "$0" "$test_name"
	fi
	ip link set lo up
	ip link add own0 type veth peer name own1 || ip link add own0 type dummy || exit 77
	ip address add 10.77.0.1/24 dev own0
	ip link set own0 up
	ip link set own1 up 2>/dev/null || :
}

# need PROGRAM...: skips the test if a program is not installed.
need() {
	local program
	for program; do
		command -v "$program" >/dev/null || {
			echo "$program is not installed" >&2
			exit 77
		}
	done
}

# second_host, called after own_network: makes a second network namespace at the other end of the
# wire, with the address 10.77.0.2 and its own loopback. $there is the id of a process in it.
second_host() {
	need nsenter
	unshare -n sleep 700 &
	there=$!
	started+=("$there")
	for _ in {1..100}; do
		[ "$(readlink /proc/$there/ns/net)" = "$(readlink /proc/self/ns/net)" ] || break
		sleep 0.02
	done
	ip link set own1 netns "$there" || exit 77
	nsenter -t "$there" -n ip link set lo up
	nsenter -t "$there" -n ip address add 10.77.0.2/24 dev own1
	nsenter -t "$there" -n ip link set own1 up
}

# is_listening PORT: succeeds if a program listens on the TCP port, at the second host if
# at_second_host is set.
is_listening() {
	local hex proc=/proc/${at_second_host:-self}/net
	hex=$(printf ':%04X' "$1")
	awk -v port="$hex" '$4 == "0A" && index($2, port) == length($2) - 4 { found = 1 }
		END { exit !found }' "$proc/tcp" "$proc/tcp6"
}

# Chooses a port that is free together with the next two ports. Each test has a separate range of
# ports.
free_port() {
	local port
	for _ in {1..100}; do
		port=$((INTEROP_PORTS + RANDOM % 98))
		is_listening $port || is_listening $((port + 1)) || is_listening $((port + 2)) || {
			echo $port
			return
		}
	done
	fail "no free port"
}

# shellcheck disable=SC2086 # any number of flags
soft() { timeout "${PAIR_LIMIT_S:-40}" "${as_user[@]}" "$SOFTRNIC" run $SOFTRNIC_RUN_FLAGS -- "$@"; }

# behind NAME PROGRAM ...: runs the program in the background, at the second host if at_second_host
# is a process there. $! is the program's own process.
behind() {
	local name=$1 at=()
	shift
	[ -z "${at_second_host:-}" ] || at=(nsenter -t "$at_second_host" -n)
	# shellcheck disable=SC2086 # any number of flags
	"${at[@]}" timeout -k 1 "${PAIR_LIMIT_S:-40}" "${as_user[@]}" "$SOFTRNIC" run $SOFTRNIC_RUN_FLAGS -- "$@" >"$scratch/$name.log" 2>&1 &
	started+=($!)
}

# await_listener PORT: waits until $server listens on the port. Fails if it ends first, or takes too
# long.
await_listener() {
	for _ in {1..200}; do
		! is_listening "$1" || return 0
		kill -0 "$server" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

# serve NAME PORT PROGRAM ...: runs the program in the background, and waits until it listens.
# $server is its process.
serve() {
	local name=$1 port=$2
	shift 2
	behind "$name" "$@"
	server=$!
	await_listener "$port" || fail "$name ended before it listened on port $port, or does not listen"
}

# client NAME PROGRAM ...: runs the program, which must succeed.
client() {
	local name=$1
	shift
	soft "$@" >"$scratch/$name.log" 2>&1 || fail "$name: status $?"
}

# run_pair PROGRAM ARGUMENT ...: runs a server, and a client with the same arguments and the
# server's address as the last one. Returns whether both succeeded; status_server and status_client
# are their exit codes.
run_pair() {
	local port
	need "$1"
	port=$(free_port) status_server=0 status_client=0
	serve server "$port" "$@" -p "$port"
	soft "$@" -p "$port" 127.0.0.1 >"$scratch/client.log" 2>&1 || status_client=$?
	wait "$server" || status_server=$?
	[ "$status_server$status_client" = 00 ]
}

# repeat_pair IS_CHANCE PROGRAM ARGUMENT ...: runs a pair. If the pair fails, and the function
# IS_CHANCE reports that chance was the cause, the pair runs again.
repeat_pair() {
	local is_chance=$1
	shift
	for _ in {1..8}; do
		! run_pair "$@" || return 0
		"$is_chance" || fail "$*: server $status_server, client $status_client"
	done
	fail "$*: failed eight times: server $status_server, client $status_client"
}

# On a busy machine perftest can fail to measure the rate of the processor's counter.
has_no_rate() { grep -q "Can't produce a report" "$scratch"/{server,client}.log; }

served() { wait "$server" || fail "the server ended with status $?"; }

# stop_server: for a server that never ends by itself. It must still run, and must end by a signal.
stop_server() {
	kill -TERM "$server" || fail "the server is gone"
	wait "$server" || :
}

# said NAME TEXT: fails the test unless the program's output contains a line with TEXT.
said() { grep -qE -- "$2" "$scratch/$1.log" || fail "$1 did not say: $2"; }
# wait_until_said NAME TEXT: waits until the program's output contains a line with TEXT.
wait_until_said() {
	for _ in {1..400}; do
		! grep -qE -- "$2" "$scratch/$1.log" || return 0
		sleep 0.05
	done
	fail "$1 did not say in 20 s: $2"
}
silent_about() { ! grep -qE -- "$2" "$scratch/$1.log" || fail "$1 said: $2"; }

# refused NAME TEXT PROGRAM ...: the program must fail with this text, and not by a signal.
refused() {
	local name=$1 text=$2 status=0
	shift 2
	soft "$@" >"$scratch/$name.log" 2>&1 || status=$?
	[ "$status" -ne 0 ] || fail "$name succeeded"
	{ [ "$status" -lt 124 ] || [ "$status" -gt 192 ]; } || fail "$name: status $status"
	said "$name" "$text"
}

run_test() {
	test_name=$1
	drop_rights
	"test_$1"
	echo "passed: $1"
}
