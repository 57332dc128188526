# SPDX-License-Identifier: BSD-3-Clause
# Interoperation with the kernel's siw: the guest runs the pairs, and this script checks their logs
# and captures.
# shellcheck shell=bash
# shellcheck source=tests/lib/tshark.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/tshark.sh"

# recut NAME: writes the capture with one packet for each frame to $vm_out/NAME.pcapng.
recut() {
	"$vm_programs_dir/tests/system/decode/system_recut" "$vm_out/$1.pcap" "$vm_out/$1.pcapng" || die "$1 was not captured well"
}

# A heuristic dissector can mistake arbitrary payload for another protocol.
capture_fields() {
	dissector -r "$1" --disable-protocol iser --disable-protocol smb_direct --disable-protocol nvme-rdma -Y "$2" -T fields "${@:3}"
}

check_decodes() {
	local bad
	bad=$(capture_fields "$1" '_ws.malformed || _ws.expert.severity == 8388608 || iwarp_mpa.bad_length' -e frame.number)
	[ -z "$bad" ] || die "$1: tshark objects to frames $(echo "$bad" | tr '\n' ' ')"
}

# check_opcodes CAPTURE OPCODE...: all of these opcodes must occur, and no opcode except those of
# RFC 5040, from Write to Terminate.
check_opcodes() {
	local seen op
	seen=$(capture_fields "$1" iwarp_rdma.opcode -e iwarp_rdma.opcode | tr ',' '\n' | sort -u | tr '\n' ' ')
	for op in "${@:2}"; do
		[[ " $seen" == *" $op "* ]] || die "$1: no message $op, only $seen"
	done
	for op in $seen; do
		((op <= 7)) || die "$1: opcode $op towards siw"
	done
}

# Checks RFC 6581's bits B, C and D with A = 0: they are allowed in softrnic's request, but not in a
# reply.
check_consent() {
	local payload word
	capture_fields "$1" iwarp_mpa.rep -e tcp.payload >"$vm_out/replies"
	[ -s "$vm_out/replies" ] || die "$1: no MPA reply"
	while read -r payload; do
		word=$((16#${payload:40:8}))
		((word & 0x80000000)) || ((!(word & 0x4000c000))) ||
			die "$1: an answer with consent: ${payload:32:16}"
	done <"$vm_out/replies"
}

# Each pair makes four mistakes. A refusal by siw is a received Terminate (0x04......), a refusal by
# softrnic is a sent Terminate (0x05......), and 0x07...... is a receive that was too small.
check_terminates() {
	local pair=$1 log
	log=$vm_out/$pair.server
	[[ $pair == soft-* ]] || log=$vm_out/$pair.client
	[ "$(grep -c 'vendor_err 0x400' "$log")" -ge 4 ] || die "$log: siw's Terminates were not understood"
	[ "$(grep -c 'vendor_err 0x[57]00' "$log")" -ge 4 ] || die "$log: siw's mistakes were not found"
}

# Two softrnics exchange messages beyond RFC 5040, so check_opcodes must fail for their capture.
check_judges() {
	! (check_opcodes "$1" 2>/dev/null) || die "$1: no opcode beyond RFC 5040 between two softrnics"
	! (check_consent "$1" 2>/dev/null) || die "$1: no consent between two softrnics"
}

# check_capture CAPTURE OPCODE...: makes all checks of a capture between softrnic and siw. If a check
# ends the script, a copy of the capture remains, whose name no later run removes.
check_capture() {
	local copy
	copy=$1.$(date +%s)
	cp "$1" "$copy"
	check_decodes "$1"
	check_opcodes "$@"
	check_consent "$1"
	rm "$copy"
}

# vm_interop PAIRS: runs the pairs.
vm_interop() {
	local pair
	rm -f "$vm_out"/*.pcap "$vm_out"/*.pcapng
	vm_job interop $((150 + 90 * $(echo "$1" | wc -w))) "near-soft,${1// /,}" || return 1
	recut near-soft
	check_judges "$vm_out/near-soft.pcapng"
	for pair in $1; do
		recut "$pair"
		check_capture "$vm_out/$pair.pcapng" 0x00 0x01 0x02 0x03 0x07
		check_terminates "$pair"
		say "$pair: right"
	done
}

# vm_clients PAIRS: runs foreign programs, and Send with Invalidate, plain and solicited.
vm_clients() {
	local pair
	rm -f "$vm_out"/clients-*.pcap "$vm_out"/clients-*.pcapng
	vm_job clients $((60 + 150 * $(echo "$1" | wc -w))) "${1// /,}" || return 1
	for pair in $1; do
		recut "clients-$pair"
		check_capture "$vm_out/clients-$pair.pcapng" 0x00 0x01 0x02 0x04 0x06 0x07
		say "clients-$pair: right"
	done
}
