#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Foreign verbs programs on the software RNIC, each with its own verification. One ctest for each
# test_ function and each setting of the checksums.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

test_devices() {
	need ibv_devices ibv_devinfo
	client devices ibv_devices
	said devices 'softrnic0'
	client devinfo ibv_devinfo -v -d softrnic0
	if [ "${SOFTRNIC_IDENTITY:-roce}" = iwarp ]; then
		said devinfo 'transport:.*iWARP'
	else
		said devinfo 'transport:.*InfiniBand'
		said devinfo 'GID\[ *3\]:.*, RoCE v2'
	fi
	said devinfo 'state:.*PORT_ACTIVE'
	said devinfo 'link_layer:.*Ethernet'
}

ping_client() {
	local name=$1
	shift
	client "$name" rping -c -V "$@"
	silent_about "$name" 'completion failed|mismatch'
}

# The launcher sets defaults for time limits, and keeps limits that the user has set.
test_the_launcher_gives_programs_time() {
	[ "$(soft sh -c 'echo $SOFTRNIC_CONNECT_MS')" = 60000 ] || fail "a connect ends sooner"
	[ "$(SOFTRNIC_CONNECT_MS=7 soft sh -c 'echo $SOFTRNIC_CONNECT_MS')" = 7 ] || fail "the user's value is lost"
}

test_rping() {
	need rping
	local port size
	for size in 64 4000 60000; do
		port=$(free_port)
		serve server $port rping -s -a 127.0.0.1 -p $port -V -C 10 -S $size
		ping_client client -a 127.0.0.1 -p $port -C 10 -S $size
		served
	done
}

test_rping_without_any_right() {
	need rping
	local port status
	port=$(free_port)
	serve server $port rping -s -P -a 127.0.0.1 -p $port
	status=$(cat /proc/"$(pgrep -P "$server")"/status)
	grep -qE '^NoNewPrivs:\s*1' <<<"$status" || fail "it may get rights"
	! grep -qE '^Uid:\s*0' <<<"$status" || fail "it is root"
	! grep -qE '^Cap(Prm|Eff|Bnd):.*[1-9a-f]' <<<"$status" || [ "$(id -u)" != 0 ] || fail "it has rights"
	ping_client client -a 127.0.0.1 -p $port -C 10 -S 60000
	stop_server
}

# Clients start one after the other, because the server can hold only one request that it has not
# accepted yet. stdbuf makes the server print each line immediately, so that a line shows that the
# server has accepted a client.
test_rping_serves_many() {
	need rping
	local port clients=() i
	port=$(free_port)
	serve server $port rping -s -P -a 127.0.0.1 -p $port -S 20000
	for i in 1 2 3 4; do
		client client$i stdbuf -oL rping -c -V -v -a 127.0.0.1 -p $port -C 2000 -S 20000 &
		clients+=($!)
		wait_until_said client$i 'ping data'
	done
	for i in "${clients[@]}"; do
		wait "$i" || fail "a client failed"
	done
	for i in 1 2 3 4; do
		silent_about client$i 'completion failed|mismatch'
	done
	stop_server
}

test_rping_over_ipv6() {
	need rping
	[ -e /proc/net/if_inet6 ] || exit 77
	local port
	port=$(free_port)
	serve server $port rping -s -a ::1 -p $port -V -C 3
	ping_client client -a ::1 -p $port -C 3
	served
}

test_endpoints() {
	need rdma_server rdma_client
	local port
	port=$(free_port)
	serve server $port rdma_server -p $port
	client client rdma_client -s 127.0.0.1 -p $port
	served
	said client 'end 0'
}

test_endpoints_without_inline() {
	need rdma_xserver rdma_xclient
	local port
	port=$(free_port)
	serve server $port rdma_xserver -p $port
	client client rdma_xclient -s 127.0.0.1 -p $port
	served
	said client 'end 0'
}

# ucmatose_messages CONNECTIONS SIZE: runs ucmatose with CONNECTIONS connections and messages of
# SIZE bytes.
ucmatose_messages() {
	need ucmatose
	local port
	port=$(free_port)
	serve server $port ucmatose -p $port -c $1 -C 10 -S $2
	client client ucmatose -s 127.0.0.1 -p $port -c $1 -C 10 -S $2
	served
	said client 'return status 0'
	said server 'return status 0'
}
test_ucmatose() {
	ucmatose_messages 1 1
	ucmatose_messages 20 3000
	ucmatose_messages 3 200000
}

# udaddy's port is always 7174, so the test uses a separate network namespace.
test_udaddy() {
	need udaddy
	own_network
	export SOFTRNIC_IDENTITY=roce
	serve server 7174 udaddy -c 3 -C 10 -S 1000
	client client udaddy -s 10.77.0.1 -c 3 -C 10 -S 1000
	served
	said client 'return status 0'
	said server 'return status 0'
}

# Both ends make their queue pairs by ibv_create_qp() and connect them by rdma_cm.
test_rping_with_queue_pairs_of_its_own() {
	need rping
	local port
	export SOFTRNIC_IDENTITY=roce
	port=$(free_port)
	serve server $port rping -s -q -a 127.0.0.1 -p $port -V -C 10
	client client rping -c -q -a 127.0.0.1 -p $port -V -C 10
	served
}

# cmtime's server never ends by itself.
test_cmtime() {
	need cmtime
	local port
	port=$(free_port)
	serve server $port cmtime -p $port -c 100
	client client cmtime -s 127.0.0.1 -p $port -c 100
	said client 'connect'
	stop_server
}

# fi_pair PROVIDER ENDPOINT-TYPE SIZE ...: runs a pair of libfabric's programs, which compare the
# data because of -c. They use the next port for the channel of their set-up.
fi_pair() {
	need fi_pingpong fi_info
	own_network
	local provider=$1 type=$2 port size
	shift 2
	for size; do
		port=$(free_port)
		serve server $port fi_pingpong -p "$provider" -e $type -c -I 20 -S $size -B $port
		client client fi_pingpong -p "$provider" -e $type -c -I 20 -S $size -P $port 10.77.0.1
		said client 'MB/sec'
		"$fi_server_ends"
	done
}

# Both sides have compared the data when they report. With ofi_rxm the server sometimes waits for
# the last message without end, because on a disconnect event it destroys the queue pair together
# with unread completions.
fi_server_reports() {
	for _ in {1..200}; do
		! grep -q 'MB/sec' "$scratch/server.log" || break
		sleep 0.05
	done
	said server 'MB/sec'
	kill -TERM "$server" 2>/dev/null || :
	wait "$server" || :
}

test_libfabric_messages() { fi_server_ends=served fi_pair verbs msg 1 200000; }
test_libfabric_datagrams() { fi_server_ends=fi_server_reports fi_pair 'verbs;ofi_rxm' rdm 1 200000; }
# These endpoints are datagram queue pairs, which only a RoCE device supports.
test_libfabric_unreliable() {
	export SOFTRNIC_IDENTITY=roce
	fi_server_ends=served fi_pair verbs dgram 1 1000
}

run_test "$1"
