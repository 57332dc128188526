#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# An initiator vanishes together with its machine. Its pool must soon be free, with ssh and without ssh. Delayed bytes
# in the network must not overwrite bytes that the next initiator has made persistent. SYSTEM_ROUNDS: number of rounds
# (1).
# shellcheck source=tests/system/lib/processes.sh
. "$(dirname "$0")/../lib/processes.sh"
# shellcheck source=tests/system/lib/hosts.sh
. "$(dirname "$0")/../lib/hosts.sh"
PATH=$PATH:/usr/sbin:/sbin
ways=(ssh direct)

# The target is host 1, which has one pool for each way.
start_target() {
	local name
	mkdir pools
	for name in "${ways[@]}"; do
		printf 'PMEMPOOLSET\nOPTION NOHDRS\n8M %s/pools/%s\n' "$work" "$name" >"pools/$name.set"
	done
	for name in host_key key; do
		ssh-keygen -q -t ed25519 -N '' -f "$name"
	done
	cp key.pub authorized_keys
	printf 'HostKey %s/host_key\nAuthorizedKeysFile %s/authorized_keys\nStrictModes no\nPermitRootLogin yes\nPidFile none\n' \
		"$work" "$work" >sshd_config
	start_on 1 sshd.log unshare --mount sh -c "mount -t tmpfs tmpfs /run && mkdir /run/sshd &&
		exec $(command -v sshd) -D -e -f $work/sshd_config -o ListenAddress=10.77.0.1:2222"
	wait_until 20 grep -qs 'Server listening' sshd.log || fail "sshd does not start"
	(umask 077 && head -c 32 /dev/urandom | base64 >secret)
	start_on 1 listener.log "${daemon[@]}" --listen=10.77.0.1:7205 --secret-file "$work/secret"
	wait_until 20 grep -qs 'listening' listener.log || fail "rpmemd does not start"
	printf '#!/bin/sh\nexec ssh -F /dev/null -i %s/key -oUserKnownHostsFile=/dev/null -oStrictHostKeyChecking=no -oLogLevel=ERROR "$@"\n' \
		"$work" >ssh
	chmod 755 ssh
}

# fill HOST WAY BYTE [over]: fills the whole pool of that way with the byte.
fill() {
	local target=10.77.0.1:2222
	[ "$2" = ssh ] || target=rpma://10.77.0.1:7205
	start_on "$1" "$2.$3" "$RPMEM_FILL" "$target" "$2.set" "${@:3}"
	filler=$!
}

# holds WAY BYTE: succeeds if every byte of the pool is that byte.
holds() { [ -s "pools/$1" ] && [ "$(tr -d "$2" <"pools/$1" | wc -c)" = 0 ]; }

round() {
	local way first=()
	for way in "${ways[@]}"; do
		fill 2 "$way" 1
		first+=("$filler")
	done
	for way in "${ways[@]}"; do
		wait_until 20 holds "$way" 1 || fail "$way: nothing arrives"
	done
	network cut 1 2
	network cut 2 1
	kill -9 "${first[@]}"
	for way in "${ways[@]}"; do
		fill 3 "$way" 2 over
	done
	for way in "${ways[@]}"; do
		wait_until 40 grep -qs -e 'done' -e 'fill:' "$way.2" || fail "$way: the pool does not become free"
		grep -q 'done' "$way.2" || fail "$way: $(cat "$way.2")"
		holds "$way" 2 || fail "$way: not what was made persistent"
	done
	network heal '*' '*'
	sleep 3 # the kernel's next retransmissions
	for way in "${ways[@]}"; do
		holds "$way" 2 || fail "$way: bytes of the vanished initiator are over those of the next one"
		rm "pools/$way" "$way.1" "$way.2"
	done
}

test_the_pool_of_a_vanished_initiator_is_free_and_stays_the_next_ones() {
	local i tool
	for tool in sshd ssh ssh-keygen; do
		command -v "$tool" >/dev/null || { echo "SKIPPED: there is no $tool" && exit 77; }
	done
	daemon=(env SOFTRNIC_LIVENESS_MS=1500 "$RPMEMD" --poolset-dir "$work/pools" --log-file "$work/log" --log-level debug)
	logs+=(log)
	unset SSH_AUTH_SOCK
	export RPMEM_CMD="${daemon[*]}" RPMEM_SSH=$work/ssh RPMEM_ENABLE_SOCKETS=1 RPMEM_SECRET_FILE=$work/secret
	hosts_start 3
	start_target
	for ((i = 0; i < ${SYSTEM_ROUNDS:-1}; i++)); do
		round
	done
}

"test_$1"
