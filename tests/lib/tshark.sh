# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Wireshark's dissector without anybody's preferences, and with softrnic(7)'s: a connection whose
# port is another protocol's is iWARP nevertheless, and a short Send is not RPC.
dissector() {
	HOME=/nonexistent tshark -2 -o tcp.try_heuristic_first:TRUE --disable-protocol rpcordma "$@" 2>/dev/null
}
