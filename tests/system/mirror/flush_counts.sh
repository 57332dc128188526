#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Counts the cost of a flush: calls that send, write-backs at both ends, and instructions until the flush is posted.
# Also counts the cost of the first store to an extent of a direct mapping. The bounds are slightly above the present
# cost.
: "${MIRROR_HOSTS:?} ${MIRROR_FLUSHES:?}"
# shellcheck source=tests/system/lib/processes.sh
. "$RPMA_SOURCE/tests/system/lib/processes.sh"
# shellcheck source=tests/system/mirror/lib.sh
. "$RPMA_SOURCE/tests/system/mirror/lib.sh"

command -v strace >/dev/null || { echo "there is no strace" && exit 77; }
strace -o /dev/null true 2>/dev/null || { echo "processes cannot be traced here" && exit 77; }

few=200 many=700

# at_most WHAT COUNT BOUND: fails the test if the count is above the bound.
at_most() {
	echo "$1: $2 of at most $3"
	[ "$2" -le "$3" ] || fail "$1: more than it may be"
}

# calls_of FILE NAME|NAME...: prints the number of calls with one of these names.
calls_of() { awk -v names="^($2)\$" '$NF ~ names { sum += $4 } END { print sum + 0 }' "$1"; }

# trace_flushes -c|-T COUNT RANGES [BYTES]: traces COUNT flushes. $work/calls has the calls of the
# program, $work/replica those of the first replica's daemon. With -c the files are tables of
# counts, otherwise they have each call.
trace_flushes() {
	local tracer how=$1
	shift
	strace -f "$how" -e trace=msync,fdatasync -o "$work/replica" -p "${daemons[1]}" 2>"$work/attached" &
	tracer=$!
	until grep -q attached "$work/attached"; do
		kill -0 "$tracer" || fail "the daemon cannot be traced: $(cat "$work/attached")"
		sleep 0.01
	done
	RPMIRROR_SOCKET=${sockets[0]} strace -f "$how" -e trace=sendto,sendmsg,write,writev,msync,fdatasync \
		-o "$work/calls" "$MIRROR_FLUSHES" "$@" >"$work/out" 2>&1 || { cat "$work/out" && fail "flushes $*"; }
	kill -INT "$tracer"
	wait "$tracer" || :
}

# Sets $sends, and the numbers of write-backs $own and $theirs, in hundredths for each flush. Each
# number is the difference of two runs, because both include the start and the end.
count_calls() {
	local n
	for n in "$few" "$many"; do
		trace_flushes -c "$n" "$1"
		sends=$(($(calls_of "$work/calls" 'sendto|sendmsg|writev') - ${sends:-0}))
		own=$(($(calls_of "$work/calls" 'msync|fdatasync') - ${own:-0}))
		theirs=$(($(calls_of "$work/replica" 'msync|fdatasync') - ${theirs:-0}))
	done
	sends=$((sends * 100 / (many - few))) own=$((own * 100 / (many - few))) theirs=$((theirs * 100 / (many - few)))
}

on_disk=1
[ "$(stat -f -c %T "$work")" != tmpfs ] || on_disk=0

for replicas in 1 2; do
	hosts_begin $((replicas + 1)) 4194304
	for ranges in 1 64; do
		unset sends own theirs
		count_calls "$ranges"
		# The sends include heartbeats and sends of the daemon, because the trace slows all
		# threads.
		[ "$sends" -ge $((replicas * 95)) ] || fail "fewer than there are replicas: what was sent?"
		at_most "$replicas replicas, $ranges ranges: calls that send, of 100 flushes" "$sends" $((replicas * 100 + 60))
		if [ "$own" -lt $((on_disk * 95)) ] || [ "$theirs" -lt $((on_disk * 95)) ]; then
			fail "$own and $theirs write-backs of 100 flushes: what is durable?"
		fi
		at_most "  write-backs here" "$own" $((on_disk * 105))
		at_most "  write-backs at a replica" "$theirs" $((on_disk * 105))
	done
	hosts_end
done

# count_large RANGES BYTES GROUPS: large flushes are sent in parts of 512 KiB or 256 ranges, but are
# written back as a whole on this host, and in groups of 4 MiB at the replica. Writes of metadata
# are not counted, because they are smaller.
count_large() {
	local count=6
	trace_flushes -T $count "$1" "$2"
	own=$(grep -c 'fdatasync(' "$work/calls")
	theirs=$(sed -n 's/.*msync(0x[0-9a-f]*, \([0-9]*\).*/\1/p' "$work/replica" | awk '$1 > 65536 { n++ } END { print n + 0 }')
	echo "$count flushes of $1 ranges of $2 bytes"
	if [ "$own" -lt $((on_disk * count)) ] || [ "$theirs" -lt $((on_disk * count)) ]; then
		fail "$own and $theirs write-backs: what is durable?"
	fi
	at_most "  write-backs here" "$own" $((on_disk * count))
	at_most "  write-backs at a replica" "$theirs" $((on_disk * count * $3))
}
hosts_begin 2 16777216
count_large 1 $((8 << 20)) 2
count_large 64 $((16 << 10)) 1
hosts_end

# Prints the number of system calls of the thread that stores, from one fault to the next. Calls for
# locks are not counted, and neither is madvise(), which splits the folios of an extent.
hosts_begin 2 134217728
RPMIRROR_SOCKET=${sockets[0]} strace -f -o "$work/calls" "$MIRROR_FLUSHES" 50 0 >"$work/out" 2>&1 ||
	{ cat "$work/out" && fail "stores"; }
hosts_end
read -r faults calls < <(awk '
	/--- SIGSEGV/ { if (!thread) thread = $1; if ($1 == thread) { if (n++) sum += calls; calls = 0 } next }
	$1 == thread && $2 !~ /^(<\.\.\.|futex|madvise|---)/ { calls++ }
	END { print n, sum + 0 }' "$work/calls")
[ "$faults" -ge 40 ] || fail "only $faults of 50 stores to cold extents have faulted"
at_most "calls of 100 first stores to an extent" $((calls * 100 / (faults - 1))) 730

[ "${INSTRUCTIONS:-no}" = yes ] || exit 0
command -v valgrind >/dev/null || { echo "there is no valgrind: instructions are not counted" && exit 0; }

# count_instructions RANGES: sets $instructions to the instructions until 100 flushes of RANGES
# ranges are posted.
count_instructions() {
	hosts_begin $(($1 + 1)) 4194304
	RPMIRROR_SOCKET=${sockets[0]} valgrind -q --tool=callgrind --toggle-collect=rpmirror_flush_start \
		--callgrind-out-file="$work/callgrind" "$MIRROR_FLUSHES" 100 "$2" >"$work/out" 2>&1 ||
		{ cat "$work/out" && fail "flushes $2"; }
	hosts_end
	instructions=$(awk '/^totals:/ { print $2 }' "$work/callgrind")
}
count_instructions 1 1
one=$instructions
at_most "instructions of a flush until it is posted" $((one / 100)) 8500
count_instructions 2 1
at_most "  for a further replica" $(((instructions - one) / 100)) 5700
count_instructions 1 64
at_most "  for a further range" $(((instructions - one) / 6300)) 1400
