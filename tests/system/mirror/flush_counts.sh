#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# How often the application's process calls the kernel to send, for a flush: once a replica, however
# many ranges it has.
: "${MIRROR_HOSTS:?} ${MIRROR_FLUSHES:?}"
# shellcheck source=tests/system/lib/processes.sh
. "$RPMA_SOURCE/tests/system/lib/processes.sh"
# shellcheck source=tests/system/mirror/lib.sh
. "$RPMA_SOURCE/tests/system/mirror/lib.sh"

command -v strace >/dev/null || { echo "there is no strace" && exit 77; }
strace -o /dev/null true 2>/dev/null || { echo "processes cannot be traced here" && exit 77; }

few=200 many=1200

# sends COUNT RANGES: how often the program sends in all.
sends() {
	RPMIRROR_SOCKET=${sockets[0]} strace -f -c -e trace=sendto,sendmsg,write,writev -o "$work/calls" \
		"$MIRROR_FLUSHES" "$1" "$2" >"$work/out" 2>&1 || { cat "$work/out" && fail "flushes $*"; }
	awk '$NF ~ /^(sendto|sendmsg|writev)$/ { sum += $4 } END { print sum + 0 }' "$work/calls"
}

for replicas in 1 2; do
	hosts_begin $((replicas + 1)) 4194304
	for ranges in 1 64; do
		less=$(sends "$few" "$ranges")
		more=$(sends "$many" "$ranges")
		each=$(((more - less) * 100 / (many - few)))
		echo "$replicas replicas, $ranges ranges: $each hundredths of a call that sends, a flush"
		# Heartbeats and the daemon's are among them, while tracing makes all slow.
		[ "$each" -ge $((replicas * 95)) ] || fail "fewer than there are replicas: what was sent?"
		[ "$each" -le $((replicas * 100 + 60)) ] || fail "more than one call a replica"
	done
	hosts_end
done
