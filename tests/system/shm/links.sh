#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The link of a connection whose ends are on one machine, but in containers or of different users. If rings in shared
# memory are impossible, the connection uses TCP and prints no message.
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/../tool/lib.sh"
export RPMA_PROVIDER=softrnic SOFTRNIC_SHM=1 SOFTRNIC_SHM_AFTER=0
unset SOFTRNIC_SHM_UIDS SOFTRNIC_LOG
# In a process namespace the leak sanitizer does not find the threads in /proc, because their ids
# differ, and prints a message.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

# Users other than root must be able to read the program and its libraries, as in most build trees.
as_other() { setpriv --reuid 4242 --regid 4242 --clear-groups "$@"; }

[ "$(id -u)" = 0 ] || {
	echo "not root: no other users and no name spaces"
	exit 77
}
chmod 755 .

# by TCP|rings COMMAND...: the command runs a ping, which must use that link and print no error;
# afterwards bytes are copied in both directions.
by() {
	local want=$1 link
	shift
	"$@" "$rpma" ping -c 200 "$where" >out 2>err </dev/null || fail "ping exits with $?"
	[ ! -s err ] || fail "ping says $(cat err)"
	link=$(sed -n 's/^link //p' out)
	case "$want:$link" in
	TCP:TCP | TCP:tcp) ;;
	rings:TCP | rings:tcp) fail "it stays on TCP" ;;
	rings:?*) ;;
	*) fail "the link is '$link' instead of $want" ;;
	esac
}

# because REASON COMMAND...: the log of the end that connects must have this reason for staying on
# TCP.
because() {
	local reason=$1
	shift
	SOFTRNIC_LOG=info "$@" "$rpma" ping -c 200 "$where" >out 2>err </dev/null || fail "ping exits with $?"
	grep -q "stays on TCP: $reason" err || fail "the reason is not '$reason'"
}

bytes_go_there_and_back() { # COMMAND...
	head -c 700000 /dev/urandom >in
	"$@" "$rpma" put - "$where" <in >out 2>err || fail "put exits with $?: $(cat err)"
	"$@" "$rpma" get "$where" - >back 2>err || fail "get exits with $?: $(cat err)"
	cmp -n 700000 in back || fail "what came back is not what went"
}

need() { "$@" true 2>/dev/null || {
	echo "not possible here: $*"
	exit 77
}; }

logs+=(err)
test_processes_of_one_user_have_rings() {
	serve pool --create --size 1M
	by rings
	bytes_go_there_and_back
	[ ! -s serve.err ] || fail "the server says something"
}

test_a_name_space_of_processes_and_mounts_is_no_obstacle() {
	need unshare -m -p -f
	serve pool --create --size 1M
	by rings unshare -m -p -f --kill-child
	bytes_go_there_and_back unshare -m -p -f --kill-child
}

# In a user namespace each end sees the other end's user as the one user that stands for all unknown
# users.
test_an_unknown_user_of_a_name_space_of_users_stays_on_tcp() {
	need unshare -U
	serve pool --create --size 1M
	by TCP unshare -U
	because "the peer belongs to another user" unshare -U
	SOFTRNIC_SHM_UIDS=0,65534 by TCP unshare -U
	bytes_go_there_and_back unshare -U
}

test_another_user_stays_on_tcp() {
	need as_other
	as_other "$rpma" --version >/dev/null 2>&1 || {
		echo "others cannot run the program of this build tree"
		exit 77
	}
	serve pool --create --size 1M
	by TCP as_other
	because "the peer belongs to another user" as_other
	bytes_go_there_and_back as_other
	[ ! -s serve.err ] || fail "the server says something"
}

test_another_user_has_rings_if_both_ends_permit_it() {
	need as_other
	as_other "$rpma" --version >/dev/null 2>&1 || exit 77
	SOFTRNIC_SHM_UIDS=4242 serve pool --create --size 1M
	SOFTRNIC_SHM_UIDS=0 by rings as_other
	by TCP as_other
}

# Both ends see 127.0.0.1, as they would through a forwarded port, and offer rings. But the name of
# the socket belongs to another namespace.
test_another_name_space_of_networks_stays_on_tcp() {
	local port
	need unshare -n
	unshare -n sleep 1000 &
	inside=$!
	started+=("$inside")
	wait_until 20 is_in_another_network "$inside" || fail "no name space"
	nsenter -n -t "$inside" ip link set lo up
	rpma_inside=(nsenter -n -t "$inside" "$rpma")
	: >serve.out
	"${rpma_inside[@]}" serve --port 0 --create --size 1M pool >>serve.out 2>serve.err </dev/null &
	server=$!
	started+=("$server")
	wait_until 20 server_is_up_or_gone
	where=$(sed -nE '1s/.* at ([^ ]*:[0-9]+): .*/\1/p' serve.out)
	[ -n "$where" ] || fail "the server announced nothing"
	port=${where##*:}
	python3 "$(dirname "$0")/forward.py" "$inside" "$port" >forward.out &
	started+=("$!")
	wait_until 20 test -s forward.out || fail "nothing forwards"
	where=127.0.0.1:$(cat forward.out)
	by TCP
	because "the peer's Unix socket is not of this network namespace"
	bytes_go_there_and_back
	[ ! -s serve.err ] || fail "the server says something"
}
is_in_another_network() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }

# --- an end that is killed at any call during the change to rings -----------------------------

# The system calls at which each end is killed, and the number of calls of each kind for which this
# is tried.
initiator_steps=(connect sendmsg sendto recvmsg fcntl mmap madvise)
responder_steps=(accept4 socket bind listen sendmsg sendto recvmsg memfd_create ftruncate fcntl mmap madvise)
tries=2

# traced WHAT NUMBER COMMAND...: the command gets SIGKILL at its NUMBER-th call of this kind. The
# file `trace` lists its calls.
traced() {
	strace -f -qq -o trace -e "trace=connect,$1" -e "inject=$1:signal=KILL:when=$2" "${@:3}"
}

can_kill() {
	traced write 1 true 2>/dev/null
	! traced write 1 echo >/dev/null 2>&1 || {
		echo "strace cannot kill here"
		exit 77
	}
}

# calls_before_tcp CALL: prints how many of these calls the client makes before it connects to the
# server.
calls_before_tcp() {
	awk -v call="$1" '/connect\(.*AF_INET/ { exit } $2 ~ "^" call "\\(" { n++ } END { print n + 0 }' all_calls
}

server_has_no_rings() { ! grep -q memfd:softrnic "/proc/$server/maps"; }
server_fds() { find "/proc/$server/fd" | wc -l; }
server_has_fds() { [ "$(server_fds)" -le "$1" ]; }
server_is_traced() { grep -q '^TracerPid:[[:space:]]*[1-9]' "/proc/$server/status"; }

# Only kills after the client's TCP connect count, because the change to rings begins after it.
test_a_client_that_is_killed_on_the_way_leaves_nothing() {
	local call number first before killed=0 code
	can_kill
	serve pool --create --size 1M
	by rings
	wait_until 20 server_has_no_rings || fail "rings are left"
	before=$(server_fds)
	strace -f -qq -o all_calls -e "trace=$(IFS=,; echo "${initiator_steps[*]}")" "$rpma" ping -c 20 "$where" \
		>out 2>err </dev/null
	for call in "${initiator_steps[@]}"; do
		first=$(($(calls_before_tcp "$call") + 1))
		for ((number = first; number < first + tries; number++)); do
			code=0
			traced "$call" "$number" "$rpma" ping -c 20 "$where" >out 2>err </dev/null || code=$?
			[ "$code" != 137 ] || ! grep -q 'connect(.*AF_INET' trace || killed=$((killed + 1))
		done
	done
	echo "$killed clients were killed on the way"
	[ "$killed" -ge 10 ] || fail "only $killed clients were killed on the way"
	wait_until 20 server_has_no_rings || fail "rings of killed clients are left"
	wait_until 20 server_has_fds "$before" || fail "descriptors of killed clients are left"
	by rings
	bytes_go_there_and_back
}

# kill_server_at CALL NUMBER: kills a server at its NUMBER-th call of this kind after it listens,
# while a client connects. Sets code; it is 0 if the server was not killed.
kill_server_at() {
	local tracer
	serve pool
	strace -f -qq -o trace -e "trace=$1" -e "inject=$1:signal=KILL:when=$2" -p "$server" 2>trace.err &
	tracer=$!
	started+=("$tracer")
	wait_until 20 server_is_traced || fail "the server is not traced: $(cat trace.err)"
	code=0
	timeout 20 "$rpma" ping -c 20 "$where" >out 2>err </dev/null || code=$?
	kill -9 "$server" 2>/dev/null || :
	wait "$server" "$tracer" 2>/dev/null || :
}

test_a_server_that_is_killed_on_the_way_ends_its_client() {
	local call number code killed=0
	can_kill
	serve pool --create --size 1M
	kill_server
	for call in "${responder_steps[@]}"; do
		for ((number = 1; number <= tries; number++)); do
			kill_server_at "$call" "$number"
			[ "$code" != 0 ] || break # the server makes no further call of this kind
			killed=$((killed + 1))
			[ "$code" -lt 124 ] || fail "at $call $number the client ends with $code"
			[ "$(wc -l <err)" = 1 ] || fail "at $call $number the client says: $(cat err)"
		done
	done
	echo "$killed servers were killed on the way"
	[ "$killed" -ge 10 ] || fail "only $killed servers were killed on the way"
}

"test_$1"
