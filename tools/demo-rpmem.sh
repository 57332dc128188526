#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Demonstrates a pool of libpmemobj with a copy that is reached by ssh. The target's daemon is killed while a program
# writes. The local pool is lost, and every note that was acknowledged is restored from the copy.
# This machine is both initiator and target. A separate sshd runs on the loopback, with keys that the script makes.
# usage: tools/demo-rpmem.sh BUILD_DIR
set -euo pipefail
export LC_ALL=C

build=$(realpath "${1:?usage: demo-rpmem.sh BUILD_DIR}")
note=$build/examples/rpmem-note
kill_after=200 # number of notes
PATH=$PATH:/usr/sbin:/sbin

exec 3>&2 # for fail(), even while the messages of the shell itself are discarded
step=0 dir='' sshd='' writer=''

say() {
	step=$((step + 1))
	printf '\n\033[1m%d. %s\033[0m\n' "$step" "$*"
}
tell() { printf '   %s\n' "$*"; }
fail() {
	printf '\ndemo: FAILED: %s\n' "$*" >&3
	exit 1
}

# End only processes that this script started, by their process ids.
cleanup() {
	local pid
	for pid in $writer $sshd; do
		kill "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	[ -z "$dir" ] || rm -rf "$dir"
}

for program in "$note" "$build/src/rpmemd/rpmemd" sshd ssh ssh-keygen pmempool hexdump; do
	command -v "$program" >/dev/null || fail "there is no $program"
done

# The sshd of root needs a folder in /run. Make the folder in a separate mount namespace, so that /run does not change
# for other programs.
if [ "$(id -u)" = 0 ] && [ "${2:-}" != inside ]; then
	exec unshare --mount --pid --fork --kill-child --mount-proc "$0" "$build" inside
fi
if [ "${2:-}" = inside ]; then
	mount -t tmpfs tmpfs /run
	mkdir /run/sshd
fi

trap cleanup EXIT
dir=$(mktemp -d "$build/demo.XXXXXX")
case "$(df --output=fstype "$dir" | tail -n 1)" in
tmpfs | ramfs) fail "$dir is in memory; the demo needs a build tree on a real disk" ;;
esac

# Takes a port that is free now. Another program may take the port first, so try several ports.
start_sshd() {
	local port try
	ssh-keygen -q -t ed25519 -N '' -f "$dir/host_key"
	ssh-keygen -q -t ed25519 -N '' -f "$dir/key"
	cp "$dir/key.pub" "$dir/authorized_keys"
	for try in 1 2 3 4 5; do
		port=$((20000 + (RANDOM + $$ + try) % 12000))
		"$(command -v sshd)" -D -e -f /dev/null -h "$dir/host_key" -o "Port=$port" -o ListenAddress=127.0.0.1 \
			-o "AuthorizedKeysFile=$dir/authorized_keys" -o PasswordAuthentication=no -o StrictModes=no \
			-o UsePAM=no -o PidFile=none 2>"$dir/sshd.log" &
		sshd=$!
		cat >"$dir/ssh_config" <<-CONFIG
			Host target
			HostName 127.0.0.1
			Port $port
			IdentityFile $dir/key
			IdentitiesOnly yes
			UserKnownHostsFile $dir/known_hosts
			StrictHostKeyChecking accept-new
			LogLevel ERROR
		CONFIG
		sshd_answers && return
		wait "$sshd" || :
	done
	fail "sshd does not start: $(cat "$dir/sshd.log")"
}

sshd_answers() {
	for _ in $(seq 200); do
		! "$RPMEM_SSH" target true </dev/null >/dev/null 2>&1 || return 0
		kill -0 "$sshd" 2>/dev/null || return 1
		sleep 0.1
	done
	return 1
}

# Makes librpmem and pmempool use the programs of this build tree, as they use installed packages.
use_build_tree() {
	printf '#!/bin/sh\nexec ssh -F "%s/ssh_config" "$@"\n' "$dir" >"$dir/ssh"
	chmod 755 "$dir/ssh"
	unset "${!RPMEM_@}"
	export RPMEM_SSH=$dir/ssh RPMEM_ENABLE_SOCKETS=1
	export RPMEM_CMD="$build/src/rpmemd/rpmemd --config=$dir/target/rpmemd.conf"
	export LD_LIBRARY_PATH=$build/src/rpmem
}

make_pool_sets() {
	mkdir "$dir/initiator" "$dir/target"
	printf 'poolset-dir = %s/target\nuse-syslog = no\nlog-file = %s/target/rpmemd.log\n' "$dir" "$dir" >"$dir/target/rpmemd.conf"
	printf 'PMEMPOOLSET\n32M %s\n' "$dir/target/copy.part" >"$dir/target/copy.set"
	printf 'PMEMPOOLSET\n32M %s\nREPLICA target copy.set\n' "$dir/initiator/pool.part" >"$dir/initiator/pool.set"
	cd "$dir/initiator"
	sed 's/^/   initiator: /' pool.set
	sed 's/^/   target:    /' "$dir/target/copy.set"
}

# Prints the process id of the daemon of the open pool. The daemon is a descendant of this script's sshd.
daemon() {
	local pid
	for pid in $(pgrep -x rpmemd); do
		! tr '\0' '\n' <"/proc/$pid/cmdline" | grep -F "$dir/target" >/dev/null || echo "$pid"
	done
}

# Reads each acknowledgement when it arrives. After the number kill_after, kills the daemon.
write_and_kill() {
	local line acks=0
	acked=0
	mkfifo "$dir/acks"
	(ulimit -c 0 && exec "$note" pool.set - < <(seq -f 'note number %.0f' 1000000)) >"$dir/acks" 2>"$dir/writer.log" &
	writer=$!
	while read -r line; do
		case $line in
		"edition "*)
			acked=${line#edition }
			acked=${acked%%:*}
			acks=$((acks + 1))
			[ "$acks" -ne "$kill_after" ] || kill -9 $(daemon)
			;;
		esac
	done <"$dir/acks"
	wait "$writer" || :
	writer=''
	[ "$acks" -ge "$kill_after" ] || fail "the program ended after $acks notes: $(cat "$dir/writer.log")"
	tell "the program ended with its target, after $acks acknowledged notes: the last was edition $acked"
}

edition_now() { "$note" pool.set | sed -n 's/^edition \([0-9]*\): .*/\1/p'; }

printf '\033[1mA persistent memory pool with a copy on another machine\033[0m (%s)\n' "$dir"
use_build_tree
start_sshd

say "Two pool sets: the local pool has a replica at a target, which is reached through ssh"
make_pool_sets

say "pmempool, as Debian has it, creates both; a program of libpmemobj writes a note"
pmempool create obj --layout note pool.set
"$note" pool.set 'hello, other end' | sed 's/^/   /'
at=$(grep -obam1 'hello, other end' "$dir/target/copy.part" | cut -d: -f1) || fail "the copy does not have it"
tell "the target's file has:"
hexdump -C -s "$at" -n 16 "$dir/target/copy.part" | sed -n '1s/^/   /p'

say "While the program writes one note after the other, rpmemd is killed with SIGKILL"
write_and_kill 2>/dev/null # discard the shell's message "Killed"

say "The local pool is lost, and restored from the copy: pmempool sync"
rm pool.part
pmempool sync pool.set
tell "$("$note" pool.set)"
restored=$(edition_now)
[ "$restored" -ge "$acked" ] || fail "edition $acked was acknowledged, and the copy has $restored"

say "The copy is lost, and made anew"
rm "$dir/target/copy.part"
pmempool sync pool.set
"$note" pool.set 'and on it goes' | sed 's/^/   /'
grep -qa 'and on it goes' "$dir/target/copy.part" || fail "the new copy does not have it"

printf '\n\033[1mEvery note that was acknowledged was in the copy.\033[0m (%d s)\n' "$SECONDS"
