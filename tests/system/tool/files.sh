#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A region that holds a file: put and get by name, ls, the files that survive, and continuing after
# a failure.
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/lib.sh"

list() { # REGION: sets $line to the region's line of ls
	expect_ok "$rpma" ls "$where"
	line=$(grep -E "^$1 " out) || fail "no line for '$1': $(cat out)"
}

holds() { # REGION FILE: ls must show length, time and digest of FILE, and get must return it
	local digest time
	list "$1"
	digest=$(b2sum -l 256 <"$2")
	time=$(date -u -r "$2" +%Y-%m-%dT%H:%M:%SZ)
	grep -qE " +$(stat -c %s "$2") +$time +${digest%% *}$" <<<"$line" || fail "ls shows: $line"
	rm -f back
	expect_ok "$rpma" get "$where:$1" back
	cmp "$2" back || fail "something else comes back"
	grep -q 'verified: blake2b$' out || fail "get has not verified: $(cat out)"
}

holds_bytes() { # REGION
	list "$1"
	grep -qE ' +- +- +-$' <<<"$line" || fail "ls shows: $line"
}

test_get_returns_the_file_that_was_put_and_not_the_region() {
	local size
	serve pool --create --size 40M log
	holds_bytes pool
	for size in 9000000 0 1 16777216 33554433; do
		random_file sent $size
		touch -d '2026-03-04 05:06:07 UTC' sent
		expect_ok "$rpma" put sent "$where:pool"
		holds pool sent
	done
	holds_bytes log
	[ "$(stat -c %s pool)" = $((40 << 20)) ] || fail "the region became another size"
}

test_what_a_region_holds_is_known_after_a_restart_of_the_server() {
	serve pool --create --size 4M
	random_file sent 3000000
	expect_ok "$rpma" put sent "$where:pool"
	kill_server
	serve pool
	holds pool sent
}

test_ls_in_json_and_of_one_region() {
	serve b --create --size 1M a
	random_file sent 5000
	touch -d '2026-03-04 05:06:07.123456789 UTC' sent
	expect_ok "$rpma" put sent "$where:b"
	expect_ok "$rpma" ls --json "$where"
	B2=$(b2sum -l 256 <sent) perl -MJSON::PP -e '
		my $r = decode_json(<>)->{regions};
		die "names" unless join(",", map { $_->{region} } @$r) eq "a,b";
		die "raw" if $r->[0]{file};
		my $f = $r->[1]{file};
		die "whole" unless $f->{whole} && $f->{length} == 5000;
		die "time" unless $f->{time} eq "2026-03-04T05:06:07Z" && $f->{time_ns} % 1000000000 == 123456789;
		die "size" unless $r->[1]{size} == 1 << 20;
		die "digest" unless index($ENV{B2}, $f->{blake2b_256}) == 0;' out || fail "unexpected: $(cat out)"
	expect_ok "$rpma" ls "$where:a"
	[ "$(wc -l <out)" = 2 ] && grep -q '^a ' out || fail "unexpected list: $(cat out)"
	expect 5 "$where does not serve a region 'c'" "$rpma" ls "$where:c"
}

test_names_follow_the_host_and_its_port() {
	local port
	serve pool --create --size 1M 7 a:b
	port=${where##*:}
	random_file sent 100
	expect_ok "$rpma" put sent "localhost:$port:7"
	holds 7 sent
	expect_ok "$rpma" put sent "127.0.0.1:$port:a:b"
	holds a:b sent
	expect_ok "$rpma" put --region pool sent "127.0.0.1:$port:pool"
	expect 2 "two regions" "$rpma" put --region pool sent "127.0.0.1:$port:7"
	expect 2 'name of 1 to 44' "$rpma" put sent "127.0.0.1:$port:"
	# The address has no port, so the get uses the default port, where no program listens.
	expect 4 'localhost:7204' env RPMA_PROVIDER=softrnic "$rpma" get localhost:pool back
	expect 4 '\[::1\]:7204' "$rpma" get '[::1]:pool' back
	serve other --create --size 1M --addr ::1
	expect_ok "$rpma" put sent "$where:other"
	cmp -n 100 sent other || fail "IPv6 with a port and a name brings something else"
}

test_a_stream_is_a_file_of_the_length_that_it_had() {
	serve pool --create --size 4M
	random_file sent 3000000
	"$rpma" put - "$where:pool" < <(cat sent) >out 2>err || fail "$(cat err)"
	expect_ok "$rpma" get "$where:pool" back
	cmp sent back || fail "something else comes back"
	"$rpma" get "$where:pool" - 2>err | cmp - sent || fail "something else comes back: $(cat err)"
}

test_bytes_at_an_offset_make_no_file_and_spoil_only_what_they_overwrite() {
	serve pool --create --size 4M
	random_file sent 1000000
	random_file bytes 1000
	expect_ok "$rpma" put sent "$where:pool"
	expect_ok "$rpma" put --offset 1000000 bytes "$where:pool"
	holds pool sent
	expect_ok "$rpma" get --offset 1000000 --length 1000 "$where:pool" back
	cmp bytes back || fail "the bytes are others"
	grep -q 'verified: no (--offset and --length read bytes as they are)$' out || fail "get says: $(cat out)"
	expect_ok "$rpma" put --offset 999999 bytes "$where:pool"
	holds_bytes pool
	expect_ok "$rpma" get "$where:pool" back
	[ "$(stat -c %s back)" = $((4 << 20)) ] || fail "get does not return the region"
	grep -q 'verified: no (the region does not hold a file as rpma put left it, so there is no digest to compare with)$' out ||
		fail "get says: $(cat out)"
	expect_ok "$rpma" put sent "$where:pool"
	kill_server
	serve pool
	holds pool sent
	expect_ok "$rpma" put --offset 0 bytes "$where:pool"
	kill_server
	serve pool
	holds_bytes pool
}

test_a_file_that_was_changed_elsewhere_is_not_returned() {
	serve pool --create --size 1M
	random_file sent 500000
	expect_ok "$rpma" put sent "$where:pool"
	echo precious >back
	printf x | dd of=pool bs=1 seek=499999 conv=notrunc status=none
	expect 1 "verification failed: region 'pool' of $where does not hold the file that was put there" \
		"$rpma" get "$where:pool" back
	[ "$(cat back)" = precious ] || fail "the target was replaced"
	expect_ok "$rpma" get --offset 0 "$where:pool" back
	[ "$(stat -c %s back)" = 1048576 ] || fail "the bytes cannot be got"
}

# begin_put OPTION...: starts a put of ./sent that hangs in the middle, because the server is
# stopped.
begin_put() {
	mkfifo pipe
	"$rpma" put --verbose --flush-every 1M "$@" sent "$where:pool" >pipe 2>err &
	putter=$!
	started+=("$putter")
	exec 5<pipe
	read -r -u 5 first && [[ $first == flushed* ]] || fail "no acknowledgement: $(cat err)"
}

end_put() { # sets $rc to its status, and $acked to the last acknowledged offset
	rc=0
	acked=$({ echo "$first" && cat <&5; } | awk 'END { print $5 }')
	exec 5<&-
	rm pipe
	wait "$putter" || rc=$?
}

# fail_put: kills the server in the middle of a put of ./sent. At least the bytes up to $acked were
# stored.
fail_put() {
	local first rc putter
	random_file old 2000000
	random_file sent 128M
	serve pool --create --size 128M
	expect_ok "$rpma" put old "$where:pool"
	begin_put
	kill_server
	end_put
	[ "$rc" = 1 ] || fail "put exits with $rc: $(cat err)"
}

test_a_put_that_failed_says_how_far_it_came_and_leaves_no_old_file() {
	local acked
	fail_put
	grep -v ' librpma: ' err >lines
	grep -qE "; all bytes are flushed up to offset $acked; --resume goes on from there$" lines || fail "put says: $(cat lines)"
	[ "$(wc -l <lines)" = 1 ] || fail "not one line: $(cat lines)"
	cmp -n "$acked" sent pool || fail "acknowledged bytes are missing"
	serve pool
	list pool
	grep -qE " +134217728 +[^ ]+ +not whole$" <<<"$line" || fail "ls shows: $line"
	expect 5 "region 'pool' of $where holds a file that is not whole" "$rpma" get "$where:pool" back
	[ ! -e back ] || fail "something came back"
}

test_a_failed_put_of_bytes_or_of_a_stream_offers_no_resume() {
	local first rc acked putter
	random_file sent 64M
	serve pool --create --size 65M
	begin_put --offset 5
	kill_server
	end_put
	grep -qE "; all bytes are flushed up to offset $acked$" err || fail "put says: $(cat err)"
	serve pool
	mkfifo stream
	"$rpma" put - "$where:pool" <stream >out 2>err &
	putter=$!
	started+=("$putter")
	exec 6>stream
	head -c 1M sent >&6
	wait_until 20 cmp -s -n 500000 sent pool || fail "nothing arrives: $(cat err)"
	kill_server
	exec 6>&-
	wait "$putter" && fail "put claims success"
	grep -qE '; nothing is flushed$' err || fail "put says: $(cat err)"
}

test_resume_goes_on_where_it_failed() {
	local acked at
	fail_put
	serve pool
	expect_ok "$rpma" put --resume --json sent "$where:pool"
	at=$(sed -nE 's/.*"resumed_at":([0-9]+),.*"verified":true.*/\1/p' out)
	[ -n "$at" ] && [ "$at" -ge "$acked" ] || fail "resumed at '$at', flushed up to $acked: $(cat out)"
	cmp sent pool || fail "the region differs"
	holds pool sent
	expect 5 "nothing to resume in region 'pool' of $where: it holds a whole file" \
		"$rpma" put --resume sent "$where:pool"
}

test_resume_refuses_another_file() {
	local acked
	fail_put
	serve pool
	cp -p sent other
	touch -d '2026-03-04 05:06:07 UTC' other
	expect 5 'nothing to resume .*the times differ' "$rpma" put --resume other "$where:pool"
	head -c 1000 sent >shorter && touch -r sent shorter
	expect 5 'nothing to resume .*the lengths differ' "$rpma" put --resume shorter "$where:pool"
	expect 2 'resume does not go with --offset' "$rpma" put --resume -o 5 sent "$where:pool"
	expect 2 'resume does not go with --no-verify' "$rpma" put --resume --no-verify sent "$where:pool"
	"$rpma" put --resume - "$where:pool" < <(cat sent) >out 2>err && fail "a stream cannot be resumed"
	grep -q 'standard input and pipes cannot be read from an offset on' err || fail "says: $(cat err)"
	expect_ok "$rpma" put --resume sent "$where:pool"
	holds pool sent
}

# With --resume the put reads back the bytes at the server, and keeps only bytes that are right.
test_resume_does_not_believe_what_was_damaged() {
	local acked at
	fail_put
	printf 'damaged' | dd of=pool bs=1 seek=1500000 conv=notrunc status=none
	serve pool
	expect_ok "$rpma" put --resume --json sent "$where:pool"
	at=$(sed -nE 's/.*"resumed_at":([0-9]+),.*/\1/p' out)
	[ "$at" = 1048576 ] || fail "resumed at '$at': $(cat out)"
	cmp sent pool || fail "the damage is still there"
}

test_nothing_to_resume_where_no_put_failed() {
	serve pool --create --size 1M
	random_file sent 1000
	expect 5 'nothing to resume .*no put of a file has failed there' "$rpma" put --resume sent "$where:pool"
}

test_one_file_is_put_at_a_time() {
	local first rc acked putter
	random_file sent 64M
	random_file other 1000
	serve pool --create --size 128M
	mkfifo stream
	"$rpma" put - "$where:pool" <stream >slow.out 2>slow.err &
	putter=$!
	started+=("$putter")
	exec 6>stream
	head -c 1M sent >&6
	wait_until 20 cmp -s -n 500000 sent pool || fail "nothing arrives: $(cat slow.err)"
	expect 5 "another client writes to region 'pool' of $where; try again later" "$rpma" put other "$where:pool"
	expect 5 'another client writes' "$rpma" put --offset 5 other "$where:pool"
	list pool
	grep -q ' not whole$' <<<"$line" || fail "ls shows: $line"
	tail -c +1048577 sent >&6
	exec 6>&-
	wait "$putter" || fail "$(cat slow.err)"
	expect_ok "$rpma" get "$where:pool" back
	cmp sent back || fail "something else comes back"
	expect_ok "$rpma" put other "$where:pool"
	holds pool other
}

# Before the first byte is written, the disk must have the record that the file is no longer whole.
test_the_record_is_on_the_disk_before_the_first_byte() {
	random_file old 1000
	serve pool --create --size 1M
	[ ! -e pool.rpma ] || fail "there is a record of nothing"
	expect_ok "$rpma" put old "$where:pool"
	[ "$(head -c 8 pool.rpma)" = RPMAHOLD ] && [ "$(stat -c %s pool.rpma)" = 2656 ] ||
		fail "the record is no record: $(xxd pool.rpma)"
	mkfifo stream
	"$rpma" put - "$where:pool" <stream >out 2>err &
	started+=("$!")
	exec 6>stream
	printf x >&6
	wait_until 20 record_says 1 || fail "the record says $(od -An -tu4 -j 12 -N 4 pool.rpma)"
	cmp -n 1000 old pool || fail "bytes came before"
	exec 6>&-
	wait "${started[-1]}" || fail "$(cat err)"
	record_says 2 || fail "the record says $(od -An -tu4 -j 12 -N 4 pool.rpma)"
	[ "$(find . -name 'pool*' | wc -l)" = 2 ] || fail "something is left: $(ls)"
}

record_says() { [ "$(od -An -tu4 -j 12 -N 4 pool.rpma | tr -d ' ')" = "$1" ]; }

# Each time the record must be synced, then renamed, and then its folder must be synced.
test_the_record_is_stored_durably() {
	serve pool --create --size 1M
	strace -f -e trace=fsync,rename -o trace -p "$server" 2>strace.err &
	started+=("$!")
	wait_until 10 grep -q attached strace.err || exit 77 # strace is missing, or is not permitted to trace
	random_file sent 1000
	expect_ok "$rpma" put --no-verify sent "$where:pool"
	grep -oE '(fsync|rename)\(.*' trace | grep -A1 -B1 rename | grep -oE '^(fsync|rename)' | tr '\n' ' ' >calls
	grep -q 'fsync rename fsync .*fsync rename fsync' calls || fail "calls: $(cat trace)"
}

test_a_record_that_is_damaged_or_of_another_file_is_worth_nothing() {
	local at
	serve pool --create --size 1M
	random_file sent 1000
	expect_ok "$rpma" put sent "$where:pool"
	stop_server
	cp pool.rpma good
	for at in 0 8 12 20 33 41 50 81; do
		cp good pool.rpma
		printf '\377' | dd of=pool.rpma bs=1 seek=$at conv=notrunc status=none
		serve pool
		holds_bytes pool
		grep -q "the record of its content cannot be read: .*pool.rpma: it is damaged" serve.err || fail "says: $(cat serve.err)"
		stop_server
	done
	head -c 83 good >pool.rpma
	serve pool
	holds_bytes pool
	stop_server
	cp good pool.rpma
	cp pool copy && mv copy pool
	serve pool
	holds_bytes pool
	[ ! -s serve.err ] || fail "says: $(cat serve.err)"
	stop_server
	rm pool
	serve pool --create --size 1M
	holds_bytes pool
}

test_a_record_has_the_mode_of_its_file() {
	echo 'a secret of enough bytes' >secret
	chmod 600 secret
	random_file sent 1000
	serve pool --create --size 1M --secret-file secret
	expect_ok "$rpma" put --secret-file secret sent "$where:pool"
	[ "$(stat -c %a pool.rpma)" = 600 ] || fail "its mode is $(stat -c %a pool.rpma)"
	expect_ok "$rpma" get --secret-file secret "$where:pool" back
	cmp sent back || fail "something else comes back"
	expect_ok "$rpma" ls --secret-file secret "$where"
	grep -qE '^pool .* 1000 ' out || fail "ls shows: $(cat out)"
}

test_a_record_that_cannot_be_stored_refuses_the_put_and_keeps_the_file() {
	serve pool --create --size 1M
	random_file sent 1000
	random_file other 1000
	expect_ok "$rpma" put sent "$where:pool"
	rm pool.rpma
	mkdir -p pool.rpma/x
	expect 5 "cannot write the record of region 'pool'" "$rpma" put other "$where:pool"
	grep -q "the record of its content cannot be written to .*pool.rpma" serve.err || fail "the server says: $(cat serve.err)"
	cmp -n 1000 sent pool || fail "bytes were written"
	holds pool sent
}

"test_$1"
