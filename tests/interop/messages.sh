#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Mistakes of users: `softrnic run` names the cause of each on standard error, without any setting.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# told TEXT [VARIABLE=VALUE ...] PROGRAM [ARGUMENT ...]: runs the program, whose output must contain
# a line with TEXT.
told() {
	local text=$1
	shift
	soft env "$@" >"$scratch/told.log" 2>&1 || :
	said told "$text"
}

test_settings() {
	need ibv_devinfo
	told 'SOFTRNIC_IDENTITY=infiniband ignored: expected roce or iwarp' SOFTRNIC_IDENTITY=infiniband ibv_devinfo
	told 'SOFTRNIC_QP_PORTS=10-20 ignored: expected' SOFTRNIC_QP_PORTS=10-20 ibv_devinfo
	told 'SOFTRNIC_QP_PORTS=garbage ignored: expected' SOFTRNIC_QP_PORTS=garbage ibv_devinfo
	told 'SOFTRNIC_GIDS=garbage ignored: expected IP addresses' SOFTRNIC_GIDS=garbage ibv_devinfo
	told 'SOFTRNIC_RETRY_MS=abc ignored: expected a number' SOFTRNIC_RETRY_MS=abc ibv_devinfo
	told 'transport:.*InfiniBand' SOFTRNIC_IDENTITY=RoCE ibv_devinfo
}

# SOFTRNIC_LOG replaces the level.
test_level() {
	need ibv_devinfo
	local log=$scratch/level.log
	soft env SOFTRNIC_LOG= SOFTRNIC_RETRY_MS=abc ibv_devinfo >"$log" 2>&1
	! grep -q SOFTRNIC_RETRY_MS "$log" || fail "an empty SOFTRNIC_LOG does not end the messages"
}

test_addresses() {
	need ibv_rc_pingpong
	told 'SOFTRNIC_GIDS=192.0.2.1 is no address of this host' SOFTRNIC_GIDS=192.0.2.1 ibv_rc_pingpong -g 0 -p "$(free_port)"
}

# ends TEXT SERVER -- CLIENT: runs both ends, which must fail; one of them must say TEXT.
ends() {
	local text=$1 port server_words=()
	shift
	while [ "$1" != -- ]; do
		server_words+=("$1")
		shift
	done
	shift
	port=$(free_port)
	serve server "$port" "${server_words[@]}" -p "$port"
	! soft "$@" -p "$port" 127.0.0.1 >"$scratch/client.log" 2>&1 || fail "the client succeeded"
	wait "$server" && fail "the server succeeded"
	grep -qE -- "$text" "$scratch"/{server,client}.log || fail "no end said: $text"
}

# The server has the only port.
test_ports() {
	need ibv_rc_pingpong
	local port
	port=$(free_port)
	export SOFTRNIC_QP_PORTS=$((port + 1))-$((port + 1))
	serve server "$port" ibv_rc_pingpong -g 0 -p "$port"
	told "no port for a queue pair: .* 256 queue pairs .* SOFTRNIC_QP_PORTS=$SOFTRNIC_QP_PORTS" ibv_rc_pingpong -g 0 -p "$port" 127.0.0.1
	stop_server
}

# Row 4 of the table is an IPv6 address, row 0 an IPv4 address.
test_families() {
	need ibv_rc_pingpong
	ends 'not both of IPv4 or both of IPv6: use the index of another row' ibv_rc_pingpong -g 0 -- ibv_rc_pingpong -g 4
}

# Only the client posts a request without having received one.
test_types() {
	need ibv_rc_pingpong ibv_uc_pingpong
	export SOFTRNIC_RETRY_MS=1000
	ends 'make both of the same type' timeout 5 ibv_uc_pingpong -g 0 -- timeout 5 ibv_rc_pingpong -g 0
	said client 'no connection with its peer 0x[0-9a-f]{6} within the retry time'
}

run_test "$1"
