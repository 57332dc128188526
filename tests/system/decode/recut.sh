#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# recut.sh RECUT WITH_A_HOLE CAPTURE...: after RECUT the connections of a capture have the same bytes, and each packet
# ends at the end of a frame. RECUT refuses an incomplete capture.
set -euo pipefail
# shellcheck source=tests/lib/tshark.sh
. "$(dirname "$0")/../../lib/tshark.sh"
recut=$1 with_a_hole=$2
shift 2
command -v tshark >/dev/null || {
	echo "tshark is not installed"
	exit 77
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

connections() { dissector -r "$1" -Y 'tcp.flags.syn==1 && tcp.flags.ack==0' | wc -l; }
bytes() { # FILE: the bytes of each connection in each direction
	local i n
	n=$(connections "$1")
	for ((i = 0; i < n; i++)); do both_ways "$i" -r "$1"; done
}

for capture; do
	"$recut" "$capture" "$tmp/recut.pcapng"
	bytes "$capture" >"$tmp/before"
	bytes "$tmp/recut.pcapng" >"$tmp/after"
	[ "$(wc -c <"$tmp/after")" -gt 100 ] || {
		echo "FAILED: $capture has no bytes"
		exit 1
	}
	cmp "$tmp/before" "$tmp/after" || {
		echo "FAILED: $capture has other bytes"
		exit 1
	}
	# In the rewritten capture no FPDU is reassembled from several packets.
	[ "$(dissector -r "$tmp/recut.pcapng" -Y tcp.reassembled_in | wc -l)" = 0 ] || {
		echo "FAILED: a frame of $capture is in several packets"
		exit 1
	}
done

! "$recut" "$with_a_hole" "$tmp/recut.pcapng" 2>"$tmp/err" && grep -q 'bytes are missing' "$tmp/err" || {
	echo "FAILED: the hole in $with_a_hole was not noticed"
	exit 1
}
