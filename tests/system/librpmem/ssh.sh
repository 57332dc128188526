#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ssh.sh PROGRAM: runs test_ssh with a separate sshd, which has new keys and a free port, and ends with the test.
set -euo pipefail
program=$(realpath "$1")
PATH=$PATH:/usr/sbin:/sbin
for tool in sshd ssh ssh-keygen; do
	command -v "$tool" >/dev/null || { echo "skipped: there is no $tool"; exit 77; }
done

# root's sshd needs a folder in /run. The script makes the folder in a mount namespace, which no
# other process sees.
if [ "$(id -u)" = 0 ] && [ "${2:-}" != inside ]; then
	unshare --mount true 2>/dev/null || { echo "skipped: no mount name space"; exit 77; }
	exec unshare --mount --pid --fork --kill-child --mount-proc "$0" "$program" inside
fi
if [ "${2:-}" = inside ]; then
	mount -t tmpfs tmpfs /run
	mkdir /run/sshd
fi

dir=$(mktemp -d "$PWD/ssh.XXXXXX")
sshd=''
cleanup() {
	[ -z "$sshd" ] || { kill "$sshd" 2>/dev/null && wait "$sshd" 2>/dev/null; } || :
	rm -rf "$dir"
}
trap cleanup EXIT

for key in host_key key strange_key; do
	ssh-keygen -q -t ed25519 -N '' -f "$dir/$key"
done
cp "$dir/key.pub" "$dir/authorized_keys"
cat >"$dir/sshd_config" <<END
HostKey $dir/host_key
AuthorizedKeysFile $dir/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
PidFile none
END
has_ipv6() { [ -e /proc/net/if_inet6 ] && grep -q ' lo$' /proc/net/if_inet6; }

# Chooses a free port. Another program can take the port first, so the script tries several ports.
start_sshd() {
	local listen
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		port=$((20000 + RANDOM % 12000))
		listen=(-o "ListenAddress=127.0.0.1:$port")
		! has_ipv6 || listen+=(-o "ListenAddress=[::1]:$port")
		: >"$dir/sshd.log"
		"$(command -v sshd)" -D -e -f "$dir/sshd_config" "${listen[@]}" 2>"$dir/sshd.log" &
		sshd=$!
		for _ in $(seq 500); do
			grep -q 'Cannot bind\|already in use\|fatal' "$dir/sshd.log" && break
			[ "$(grep -c 'Server listening' "$dir/sshd.log")" != "$((${#listen[@]} / 2))" ] || return 0
			kill -0 "$sshd" 2>/dev/null || break
			sleep 0.02
		done
		kill "$sshd" 2>/dev/null || :
		wait "$sshd" 2>/dev/null || :
		sshd=''
	done
	cat "$dir/sshd.log" >&2
	return 1
}
start_sshd || { echo "sshd does not start" >&2; exit 1; }

cat >"$dir/ssh_config" <<END
Match originalhost stranger
	IdentityFile $dir/strange_key
Match !originalhost stranger
	IdentityFile $dir/key
Host the-target stranger
	HostName 127.0.0.1
	Port $port
Host *
	IdentitiesOnly yes
	UserKnownHostsFile /dev/null
	StrictHostKeyChecking no
	LogLevel ERROR
END
printf '#!/bin/sh\nexec ssh -F %s/ssh_config "$@"\n' "$dir" >"$dir/ssh"
chmod +x "$dir/ssh"
export PLACE_SSH=$dir/ssh PLACE_PORT=$port
! has_ipv6 || export PLACE_IPV6=1
unset SSH_AUTH_SOCK
"$program"
