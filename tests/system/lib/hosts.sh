# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Several hosts on one machine: network namespaces at a switch that cuts links, and loses and delays frames
# (switch_main.c). Include this file after processes.sh, which ends the started processes. The hosts have the addresses
# 10.77.0.1, 10.77.0.2 and so on. Needs root, or the right to make user namespaces; otherwise the test is skipped.
: "${SYSTEM_SWITCH:?the program system_switch}"
host_pids=()
# Descriptors that started processes must not inherit: the ends of pipes at which the script waits
# for a close.
private_fds=()

# hosts_start COUNT: starts COUNT hosts and the switch between them.
hosts_start() {
	local i k
	unshare -n true 2>/dev/null || { echo "SKIPPED: no network namespaces for this user" && exit 77; }
	for ((i = 1; i <= $1; i++)); do
		unshare -n sleep infinity &
		host_pids[i]=$!
		started+=($!)
	done
	for ((i = 1; i <= $1; i++)); do
		wait_until 10 has_own_network "${host_pids[i]}" || fail "host $i has no network of its own"
	done
	mkfifo orders answers
	"$SYSTEM_SWITCH" "${host_pids[@]:1}" <orders >answers 2>switch.log &
	started+=($!)
	logs+=(switch.log)
	exec {orders}>orders {answers}<answers
	expect_answer ready
	for ((i = 1; i <= $1; i++)); do
		on "$i" ip link set lo up
		on "$i" ip addr add "10.77.0.$i/24" dev eth0
		on "$i" ip link set eth0 up
		# Neighbours are set without ARP, because a host would seem unreachable after a lost
		# ARP frame.
		for ((k = 1; k <= $1; k++)); do
			[ "$i" = "$k" ] || on "$i" ip neigh add "10.77.0.$k" lladdr "02:00:00:00:00:0$k" dev eth0 nud permanent
		done
	done
}

has_own_network() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }

# on HOST COMMAND...: runs the command on that host.
on() {
	local host=$1
	shift
	nsenter -t "${host_pids[host]}" -n "$@"
}

# start_on HOST LOG COMMAND...: starts the command in the background; $! is its process id.
start_on() {
	local host=$1 log=$2
	shift 2
	(
		for fd in "${private_fds[@]}"; do exec {fd}>&-; done
		exec nsenter -t "${host_pids[host]}" -n "$@"
	) >"$log" 2>&1 &
	started+=($!)
	logs+=("$log")
}

# network WORD FROM TO [VALUE]: gives an order to system_switch. The order has taken effect when the
# function returns.
network() {
	echo "$*" >&"$orders"
	expect_answer ok
}

expect_answer() {
	local line
	read -r -t 10 -u "$answers" line && [ "$line" = "$1" ] || fail "the switch does not answer $1: ${line:-}"
}
