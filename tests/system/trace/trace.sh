#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# SOFTRNIC_TRACE with real programs.
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/../tool/lib.sh"
export RPMA_PROVIDER=softrnic
unset SOFTRNIC_TRACE
logs+=(err fields)

command -v tshark >/dev/null || {
	echo "tshark is not installed"
	exit 77
}

# shellcheck source=tests/lib/tshark.sh
. "$(dirname "$0")/../../lib/tshark.sh"
checks=(-o ip.check_checksum:TRUE -o tcp.check_checksum:TRUE)
shark() { dissector "${checks[@]}" "$@"; }

# expect_clean FILE CONNECTIONS: the trace must have CONNECTIONS complete connections, and the
# dissector must report no error. (Wireshark 4.0 supports only revision 1 of MPA, and reports the
# newer revision in the details of a frame.)
expect_clean() {
	local file=$1 got
	shark -r "$file" -T fields -E separator='|' -e _ws.expert.message -e iwarp_mpa.req -e iwarp_mpa.rep \
		-e tcp.flags -e iwarp_rdma.opcode >fields || fail "tshark cannot read $file"
	grep -iE 'malformed|retransm|out-of-order|previous segment|unseen|window|checksum|reused|duplicate' fields &&
		fail "tshark objects to something in $file"
	got=$(awk -F'|' '{ req += $2 != ""; rep += $3 != ""; syn += $4 ~ /0*2$/ && $4 !~ /12$/; rdmap += $5 != "" }
		END { print req, rep, syn, (rdmap > '"$2"') }' fields)
	[ "$got" = "$2 $2 $2 1" ] ||
		fail "$file has requests, replies, SYNs, and RDMAP: $got instead of $2 connections"
}

put_and_get() { # WHERE
	random_file in 700000
	expect_ok "$rpma" put in "$1"
	expect_ok "$rpma" get "$1" back
	cmp -n 700000 in back || fail "what came back is not what went"
}

test_processes_share_a_file_in_which_each_connection_is_once() {
	export SOFTRNIC_TRACE=t.pcapng
	serve pool --create --size 1M
	put_and_get "$where"
	stop_server
	expect_clean t.pcapng 2
	[ "$(stat -c %a t.pcapng)" = 600 ] || fail "others may read the trace"
}

# The trace must have bytes that are transferred through shared memory in the same form as bytes
# over TCP.
test_rings_in_shared_memory_are_traced() {
	export SOFTRNIC_TRACE=t.pcapng SOFTRNIC_SHM=1 SOFTRNIC_SHM_AFTER=0
	serve pool --create --size 1M
	SOFTRNIC_LOG=info expect_ok "$rpma" ping -c 50 "$where"
	grep -q "receives through shared memory" err || fail "there are no rings"
	put_and_get "$where"
	stop_server
	expect_clean t.pcapng 3
	[ "$(stat -c %s t.pcapng)" -gt 1400000 ] || fail "the trace lacks what was put and got"
}

test_processes_may_have_files_of_their_own() {
	export SOFTRNIC_TRACE=t-%p.pcapng
	serve pool --create --size 1M
	put_and_get "$where"
	stop_server
	[ "$(echo t-*.pcapng | wc -w)" = 3 ] || fail "there are $(ls)"
	expect_clean "t-$server.pcapng" 2
	rm "t-$server.pcapng"
	for file in t-*.pcapng; do expect_clean "$file" 1; done
}

# Dissectors recognise other protocols, such as PCP and IRC, by these ports.
test_a_port_of_another_protocol_does_not_matter() {
	local port
	export SOFTRNIC_TRACE=t.pcapng
	for port in 44321 44322 48049 48898 57000; do
		try_serve pool --create --size 1M --port "$port" && break
		grep -q 'in use' serve.err || fail "the server says $(cat serve.err)"
	done
	[ "${where##*:}" = "$port" ] || fail "it listens at $where"
	put_and_get "$where"
	stop_server
	expect_clean t.pcapng 2
}

test_ipv6_is_understood() {
	local crc
	[ "$(cat /proc/sys/net/ipv6/conf/lo/disable_ipv6)" = 0 ] || {
		echo "SKIPPED: no IPv6 here"
		exit 77
	}
	for crc in on off; do
		export SOFTRNIC_CRC=$crc SOFTRNIC_TRACE=$crc.pcapng
		serve "$crc" --create --size 1M --addr ::1
		put_and_get "$where"
		stop_server
		expect_clean $crc.pcapng 2
		[ "$(shark -r $crc.pcapng -Y 'ipv6.src==::1' | wc -l)" -gt 10 ] || fail "no IPv6 in it"
	done
}

kernel_saw_the_end() { # in both directions
	[ "$(tcpdump -r kernel.pcap 'tcp[tcpflags] & tcp-fin != 0' 2>/dev/null | wc -l)" -ge 2 ]
}

# The trace is compared byte by byte with a capture of the kernel, which can contain
# retransmissions.
test_the_trace_has_the_bytes_that_a_capture_has() {
	local file tcpdump
	serve pool --create --size 1M
	tcpdump -i lo -B 65536 -U --immediate-mode -w kernel.pcap "tcp port ${where##*:}" 2>dump.err &
	tcpdump=$!
	started+=("$tcpdump")
	wait_until 10 grep -q '^tcpdump: listening' dump.err || {
		echo "SKIPPED: this user may not capture"
		exit 77
	}
	random_file in 300000
	# The kernel's capture lacks bytes that are transferred through shared memory, so rings are
	# off.
	SOFTRNIC_SHM=0 SOFTRNIC_TRACE=t.pcapng expect_ok "$rpma" put in "$where"
	wait_until 20 kernel_saw_the_end || fail "the capture has no end"
	kill -INT "$tcpdump"
	wait "$tcpdump" || fail "tcpdump: $(cat dump.err)"
	stop_server
	for file in t.pcapng kernel.pcap; do
		both_ways 0 -r "$file" "${checks[@]}" >"$file.bytes"
		[ "$(wc -c <"$file.bytes")" -gt 600000 ] || fail "$file has no bytes"
	done
	cmp t.pcapng.bytes kernel.pcap.bytes || fail "the trace has other bytes"
}

test_no_privilege_is_needed() {
	[ "$(id -u)" = 0 ] || exit 0 # other users have no privilege in the other tests either
	chmod 777 .
	setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all --inh-caps -all \
		test -x "$rpma" -a -w . || {
		echo "SKIPPED: nobody else may come here"
		exit 77
	}
	serve pool --create --size 1M
	random_file in 5000
	chmod 644 in
	SOFTRNIC_TRACE=t.pcapng expect_ok setpriv --reuid 65534 --regid 65534 --clear-groups \
		--bounding-set -all --inh-caps -all "$rpma" put in "$where"
	stop_server
	[ "$(stat -c %u t.pcapng)" = 65534 ] || fail "it is somebody else's"
	expect_clean t.pcapng 1
}

test_a_full_disk_ends_the_trace_and_not_the_program() {
	serve pool --create --size 1M
	random_file in 700000
	expect_ok on_small_disk 300k bash -c "SOFTRNIC_TRACE=disk/t.pcapng '$rpma' put in $where && cp disk/t.pcapng ."
	stop_server
	[ "$(grep -c 'tracing stops' err)" = 1 ] || fail "not one word about it"
	grep -q 'writing to .*disk/t.pcapng: No space left' err || fail "not the reason"
	cmp -n 700000 in pool || fail "the data suffered"
	shark -r t.pcapng >packets || fail "the trace is damaged: $(cat packets)"
	[ "$(wc -l <packets)" -gt 4 ] || fail "the trace is empty"
}

test_a_bad_path_is_reported_and_the_program_goes_on() {
	serve pool --create --size 1M
	random_file in 5000
	SOFTRNIC_TRACE=no/where.pcapng expect_ok "$rpma" put in "$where"
	[ "$(wc -l <err)" = 1 ] || fail "not one line"
	grep -q 'no connection is traced: SOFTRNIC_TRACE=.*no/where.pcapng: No such file' err ||
		fail "does not say why"
	stop_server
}

# The caller of such a program must not be able to read what the program sends, or to write files
# with the program's rights.
test_programs_with_more_rights_than_their_user_are_not_traced() {
	[ "$(id -u)" = 0 ] || {
		echo "SKIPPED: needs root"
		exit 77
	}
	cp "$rpma" suid
	chown 65534 suid
	chmod 4755 suid
	chmod 777 .
	serve pool --create --size 1M
	SOFTRNIC_TRACE=$PWD/t.pcapng ./suid info "$where" >out 2>err || {
		echo "SKIPPED: set-user-ID programs do not run here: $(cat err)"
		exit 77
	}
	[ ! -e t.pcapng ] || fail "it was traced"
	cp "$rpma" plain
	SOFTRNIC_TRACE=$PWD/t.pcapng expect_ok ./plain info "$where"
	[ -s t.pcapng ] || fail "the others are not either"
	stop_server
}

"test_$1"
