#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# persist_calls.sh PROGRAM: counts the system calls that a write + persistent flush makes at both
# ends only for the write-back. The count is the difference between a run of many and a run of few
# flushes.
set -eu
program=$1
case $(stat -f -c %T .) in
tmpfs | ramfs) echo "no file here can be made durable"; exit 77 ;;
esac
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
few=50 many=250

# run KIND COUNT: prints one line for each kind of system call, with the number of calls.
run() {
	strace -f -c -o "$dir/counts" \
		-e trace=msync,statx,fstat,newfstatat,fcntl,fsync,fdatasync,sync_file_range,futex \
		"$program" "$1" "$2" >&2
	awk '$4 ~ /^[0-9]+$/ && $NF != "total" { print $NF, $4 }' "$dir/counts"
}

# per_hundred KIND CALL: prints the number of calls for a hundred flushes.
per_hundred() {
	awk -v call="$2" -v flushes=$((many - few)) '
		$1 == call { n = FILENAME ~ /many$/ ? n + $2 : n - $2 }
		END { printf "%.0f", n * 100 / flushes }' "$dir/$1.few" "$dir/$1.many"
}

# expect WHAT NUMBER LEAST MOST: fails if NUMBER is below LEAST or above MOST.
failed=0
expect() {
	echo "$1: $2 for 100 flushes"
	[ "$2" -ge "$3" ] && [ "$2" -le "$4" ] || { echo "expected $3 to $4"; failed=1; }
}

run_all() {
	for kind in file memory; do
		run $kind $few >"$dir/$kind.few"
		run $kind $many >"$dir/$kind.many"
	done
}

# Prints how many of a hundred flushes one thread received, wrote back and answered without a call
# for a lock, so that no other thread had to be woken. Most flushes are of this kind, because the
# engine's threads are awake.
by_one_thread() {
	SOFTRNIC_SHM=0 strace -f -o "$dir/trace" \
		-e trace=recvfrom,recvmsg,sendto,sendmsg,msync,futex "$program" file $many >&2
	awk -v flushes=$many '
		$2 ~ /^recv/ { last[$1] = "recv" }
		$2 ~ /^futex/ { last[$1] = "" }
		$2 ~ /^msync/ { last[$1] = last[$1] == "recv" ? "msync" : "" }
		$2 ~ /^send/ { n += last[$1] == "msync"; last[$1] = "" }
		END { printf "%.0f", n * 100 / flushes }' "$dir/trace"
}

futexes() {
	echo $(($(per_hundred file futex) - $(per_hundred memory futex)))
}

run_all
expect "file: msync" "$(per_hundred file msync)" 100 100
expect "memory: msync" "$(per_hundred memory msync)" 0 0
# Connecting and closing a socket also calls statx() (base/ownfd.h), and not always equally often.
expect "file: statx" "$(per_hundred file statx)" 98 102
expect "memory: statx" "$(per_hundred memory statx)" -2 2
for call in fsync fdatasync sync_file_range; do
	expect "file: $call" "$(per_hundred file $call)" 0 0
	expect "memory: $call" "$(per_hundred memory $call)" 0 0
done
# The engine must not call fstat() on the file, because each write-back would then also write the
# inode.
for call in fstat newfstatat; do
	expect "file: $call" "$(per_hundred file $call)" -5 5
	expect "memory: $call" "$(per_hundred memory $call)" -5 5
done
for again in 1 2 3 4 5 6; do
	one=$(by_one_thread)
	[ "$one" -lt 80 ] || break
done
expect "file: received, written back and answered by one thread" "$one" 80 100
# A wait reads the flags of a queue's eventfd, and before each write() and read() the library checks
# whether the program has closed that eventfd (base/ownfd.h). A thread that is about to sleep is not
# signalled, so the number of calls can be smaller. Contention of locks and the number of waits
# depend on the scheduler (0 to 350 calls of futex() in runs of the same program). So the best run
# of each number counts, and the script makes as many runs as fit into the time, because a busy
# machine disturbs most runs.
least=80 most=320 contended=300 patience_s=60

# number WHAT: prints the number of futex() calls, or of fcntl() calls of the KIND.
number() {
	case $1 in
	futex) futexes ;;
	*) per_hundred "$1" fcntl ;;
	esac
}

is_calm() {
	case $1 in
	futex) [ "$2" -ge -100 ] && [ "$2" -le $contended ] ;;
	*) [ "$2" -ge $least ] && [ "$2" -le $most ] ;;
	esac
}

left="file memory futex" end=$(($(date +%s) + patience_s))
while :; do
	disturbed=
	for what in $left; do
		n=$(number "$what")
		is_calm "$what" "$n" || disturbed="$disturbed $what"
		echo "$what ($([ "$what" = futex ] && echo more than memory || echo fcntl)): $n for 100 flushes"
	done
	left=$disturbed
	[ -n "$left" ] && [ "$(date +%s)" -lt $end ] || break
	run_all
done
[ -z "$left" ] || {
	echo "no calm run in $patience_s s:$left; expected fcntl $least to $most, futex -100 to $contended"
	failed=1
}
exit $failed
