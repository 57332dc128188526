# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Functions for tests of mirrored sets in shell: hosts of one set on this machine (mirror_hosts).
# Include ../lib/processes.sh first. MIRROR_HOSTS is the program.

# hosts_begin COUNT [SIZE [LEASE_MS [yes|no [REGISTER]]]]: starts hosts, which end with the script.
# Host i has sockets[i], files[i] and the process ids daemons[i]; $register is the register's uri.
# The leases of these sets are short, and the machine can be slow. An expired lease must not end an
# application, so the application gets an error instead.
export RPMIRROR_ON_FENCED=${RPMIRROR_ON_FENCED:-error}
hosts_begin() {
	local line name socket file pid
	coproc HOSTS { exec "$MIRROR_HOSTS" "$@" 2>"$work/hosts.log"; }
	# shellcheck disable=SC2034 # for the script
	hosts_pid=$HOSTS_PID
	started+=("$HOSTS_PID")
	logs+=("$work/hosts.log")
	sockets=() files=() daemons=()
	while read -r line <&"${HOSTS[0]}"; do
		case $line in
		"ready "*)
			# shellcheck disable=SC2034 # for the script
			register=${line#ready }
			return
			;;
		[a-h]" /"*)
			read -r name socket file pid <<<"$line"
			sockets+=("$socket") files+=("$file") daemons+=("$pid")
			;;
		esac
	done
	fail "the hosts do not start ($name)"
}

# hosts_ask COMMAND...: gives a command to mirror_hosts, and prints its answer.
hosts_ask() {
	local line
	echo "$*" >&"${HOSTS[1]}"
	read -r -t 60 line <&"${HOSTS[0]}" || fail "no answer to '$*'"
	echo "$line"
}

# Ends all hosts, and waits until they have ended.
hosts_end() {
	exec {HOSTS[1]}>&-
	wait "$hosts_pid" || fail "the hosts have failed"
}
