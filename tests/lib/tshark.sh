# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=dash
# Wireshark's dissector with its default preferences and those of softrnic(7): a connection at
# another protocol's port is decoded as iWARP, and a short Send is not decoded as RPC.
dissector() {
	HOME=/nonexistent tshark -2 -o tcp.try_heuristic_first:TRUE --disable-protocol rpcordma "$@" 2>/dev/null
}

# both_ways N -r FILE [OPTIONS]: prints the bytes of the Nth connection in FILE, counted from 0, as
# a receiver reassembles them: one line of hexadecimal digits for the initiator's bytes, and one for
# the responder's.
both_ways() {
	local n=$1
	shift
	dissector -q -z "follow,tcp,raw,$n" "$@" |
		awk '/^[0-9a-f]+$/ { printf "%s", $0 } /^\t[0-9a-f]+$/ { responder[n++] = $1 }
			END { print ""; for (i = 0; i < n; i++) printf "%s", responder[i]; print "" }'
}
