#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Counts the system calls of a persist and of a read in the calling thread. A count is the difference between runs of
# 100 and of 1100 operations, which excludes the cost of the start and the end.
set -euo pipefail
command -v strace >/dev/null || { echo "skipped: there is no strace"; exit 77; }
dir=$(mktemp -d "$PWD/counts.XXXXXX")
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export RPMEM_SPIN_US=1000000 # always spin for a completion, also if it comes late

calls() { # NAME SIZE N [read]: the number of calls of that system call
	local name=$1
	shift
	strace -qq -e trace="$name" -o trace "$COUNT_PERSISTS" "$@" >/dev/null 2>err || {
		grep -q 'PTRACE\|ptrace' err && { echo "skipped: strace cannot trace here"; exit 77; }
		cat err >&2
		exit 1
	}
	wc -l <trace
}

expect() { # WHAT NAME LIMIT SIZE [read]: at most LIMIT calls in 100 operations
	local what=$1 name=$2 limit=$3 few many
	shift 3
	few=$(calls "$name" "$1" 100 "${@:2}")
	many=$(calls "$name" "$1" 1100 "${@:2}")
	printf '%s: %s.%02d %s each\n' "$what" $(((many - few) / 1000)) $(((many - few) % 1000 / 10)) "$name"
	[ $(((many - few) / 10)) -le "$limit" ] || { echo "FAILED: more than $limit in 100" >&2; exit 1; }
}

for shm in 0 1; do
	export SOFTRNIC_SHM=$shm
	[ $shm = 0 ] && link="over TCP" || link="over rings"
	expect "persist of 64 bytes $link" sendmsg,sendto,write,writev 102 64
	expect "persist of 4096 bytes $link" sendmsg,sendto,write,writev 102 4096
	expect "read of 64 bytes $link" sendmsg,sendto,write,writev 102 64 read
	# An operation must not map, open or register anything.
	expect "persist of 64 bytes $link" mmap,munmap,openat,open,brk,madvise 2 64
	expect "read of 64 bytes $link" mmap,munmap,openat,open,brk,madvise 2 64 read
done
