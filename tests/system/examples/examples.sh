#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Each example does what the tutorial describes.
# shellcheck source=tests/system/examples/lib.sh
. "$(dirname "$0")/lib.sh"

test_connect_introduces_both() {
	serve connect
	client 0 connect "alice in chains"
	server_ends 0
	says server "the client says: alice in chains"
	says client "the server says: welcome, I am the server"
	says server "Connection closed"
	says client "Connection closed"
}

test_connect_turns_the_nameless_away() {
	serve connect
	client 1 connect
	server_ends 0
	says server "a client without a name is turned away"
	says client "Connection rejected"
	says client "the server says: tell me your name"
}

test_read_shows_the_servers_text() {
	serve read "water level 4.20 m"
	client 0 read
	server_ends 0
	says client "it reads: water level 4.20 m"
}

test_write_flush_fills_the_file() {
	serve write-flush page
	client 0 write-flush "to be kept"
	server_ends 0
	says client "durable: to be kept"
	[ "$(head -c 11 page | tr '\0' '\n')" = "to be kept" ] || fail "the file has something else"
}

test_write_flush_does_not_call_memory_durable() {
	local file
	file=$(mktemp -p /dev/shm rpma-example-XXXXXX)
	serve write-flush "$file"
	client 1 write-flush "to be kept"
	rm -f "$file"
	server_ends 0
	complains client "memory there is volatile"
	! grep -q durable client.out || fail "it says durable"
}

test_write_flush_refuses_what_does_not_fit() {
	serve write-flush page
	client 1 write-flush "$(printf '%5000s' x)"
	complains client "longer than 4095 bytes"
	client 0 write-flush short
	server_ends 0
}

test_atomic_flag_counts_only_whole_records() {
	local text
	for text in one two; do
		serve atomic-flag log
		client 0 atomic-flag $text
		server_ends 0
	done
	serve atomic-flag log
	client 1 atomic-flag lost crash
	server_ends 0
	complains client "crashing before the commit of record 2"
	grep -qaF lost log || fail "the record that was not committed did not even arrive"
	"$RPMA_EXAMPLES/atomic-flag" reader log >client.out 2>client.err || fail "the reader complains"
	says client "record 0: one"
	says client "record 1: two"
	says client "2 records, all whole"
	! grep -q lost client.out || fail "the reader shows a record that was not committed"
}

test_atomic_flag_reader_finds_a_damaged_record() {
	serve atomic-flag log
	client 0 atomic-flag genuine
	server_ends 0
	printf forged_ | dd of=log bs=1 seek=80 conv=notrunc status=none
	! "$RPMA_EXAMPLES/atomic-flag" reader log >client.out 2>client.err ||
		fail "the reader did not notice"
	complains client "record 0 is counted but damaged"
}

test_batch_verify_commits_and_verifies_lines() {
	serve batch-verify lines
	client 0 batch-verify "the first" second
	server_ends 0
	says client "committed: 2 lines"
	grep -q "^verified: 2 lines, read back from " client.out || fail "nothing was verified"
	[ "$(od -An -tu8 -N8 lines | tr -d ' ')" = 2 ] || fail "the file counts something else"
	[ "$(dd if=lines bs=4096 skip=1 count=1 status=none | tr -d '\0')" = "the first" ] ||
		fail "the first line is not in the file"
	[ "$(dd if=lines bs=4096 skip=2 count=1 status=none | tr -d '\0')" = second ] ||
		fail "the second line is not in the file"
}

test_batch_verify_finds_a_file_with_something_else() {
	serve batch-verify lines
	printf stray | dd of=lines bs=4096 seek=5 conv=notrunc status=none
	client 1 batch-verify line
	server_ends 0
	says client "committed: 1 lines"
	complains client "the file of the server has something else"
}

test_message_answers_every_word() {
	local words=(several words go there "and back")
	serve message
	client 0 message "${words[@]}"
	server_ends 0
	[ "$(cat client.out)" = "$(printf '%s\n' "several -> SEVERAL" "words -> WORDS" "go -> GO" \
		"there -> THERE" "and back -> AND BACK")" ] || fail "wrong answers"
}

test_immediate_rings_for_every_slot() {
	serve immediate
	client 0 immediate "the first" second third
	server_ends 0
	says server "slot 0: the first"
	says server "slot 1: second"
	says server "slot 2: third"
	says client "3 slots filled"
}

test_srq_takes_the_messages_of_two_clients() {
	local other
	serve srq
	"$RPMA_EXAMPLES/srq" client "$addr" "$port" a1 a2 a3 >other.out 2>&1 </dev/null &
	other=$!
	started+=("$other")
	wait_until 20 grep -q "client 0 is here" server.out || fail "the first client does not come"
	client 0 srq b1 b2 b3 b4 b5 b6 b7
	wait "$other" || fail "the first client fails: $(cat other.out)"
	server_ends 0
	says client "sent 7 words"
	[ "$(grep -x 'client 0: a[123]' server.out)" = "$(printf 'client 0: a%d\n' 1 2 3)" ] ||
		fail "not what the first one sent"
	[ "$(grep -x 'client 1: b[1-7]' server.out)" = "$(printf 'client 1: b%d\n' 1 2 3 4 5 6 7)" ] ||
		fail "not what the second one sent"
}

test_srq_client_keeps_to_its_credits() {
	serve srq
	client 1 srq 1 2 3 4 5 6 7 8
	complains client "takes 7 words at most"
}

test_many_connections_are_served_by_one_thread() {
	serve many 60
	client 0 many 60
	server_ends 0
	says client "60 connections, each with its own answer"
	says server "60 connections came and went, 60 at one time"
}

test_reconnect_loses_nothing_in_a_restart() {
	local pid i
	serve reconnect records
	"$RPMA_EXAMPLES/reconnect" client "$addr" "$port" 3000 1 >client.out 2>client.err </dev/null &
	pid=$!
	started+=("$pid")
	wait_until 20 grep -qx "acknowledged 100" client.out || fail "the client does not get on"
	kill -9 "$server"
	wait_until 20 grep -q "^lost the connection" client.out || fail "the client does not notice"
	launch reconnect records || fail "the server cannot be started again"
	wait "$pid" || fail "the client fails"
	kill -9 "$server"
	says client "all 3000 records are durable"
	[ "$(grep -c '^connected, sending from record' client.out)" = 2 ] || fail "not two connections"
	[ "$(grep '^connected' client.out | tail -n 1 | tr -dc 0-9)" -gt 100 ] ||
		fail "what was acknowledged was sent again"
	for ((i = 1; i <= 3000; i++)); do
		echo "record $i"
	done >wanted
	grep -aoE 'record [0-9]+' records | cmp - wanted || fail "the file has other records"
}

test_reconnect_server_outlives_a_client() {
	serve reconnect records
	client 0 reconnect 10 1
	client 0 reconnect 20 1
	says client "all 20 records are durable"
	! is_gone "$server" || fail "the server is gone"
}

test_gpspm_server_flushes_on_demand() {
	serve gpspm file
	client 0 gpspm 4090 "across two pages"
	server_ends 0
	says client "durable: 16 bytes at 4090"
	says server "flush 16 bytes at 4090: Success"
	says client "a range that is not there: Invalid argument"
	[ "$(tail -c +4091 file | head -c 16)" = "across two pages" ] || fail "it is not in the file"
}

test_each_program_reports_why_no_peer_answers() {
	local name words
	port=9 # the discard port: no program listens there
	while read -ra words; do
		name=${words[0]}
		client 1 "${words[@]}"
		grep -q "rejected\|refused" client.err client.out || fail "$name does not say why"
	done <<-TEXT
		connect me
		read
		write-flush x
		atomic-flag x
		message x
		srq x
		many
		gpspm 0 x
	TEXT
}

test_everyone_explains_its_usage() {
	local name
	for name in connect read write-flush atomic-flag message srq many reconnect gpspm; do
		! "$RPMA_EXAMPLES/$name" >client.out 2>client.err || fail "$name does something"
		complains client "^usage: $name server ADDRESS PORT"
		complains client "^usage: $name client ADDRESS PORT"
	done
}

"test_$1"
