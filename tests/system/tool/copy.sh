#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# put and get: the bytes that arrive, and the reports if they cannot.
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/lib.sh"

test_files_of_every_size_come_back_as_they_went() {
	local size
	serve region --create --size 12M
	for size in 0 1 7 8 4095 4096 262144 262145 3000001 11534336; do
		random_file sent "$size"
		expect_ok "$rpma" put --offset 5 sent "$where"
		cmp -i 0:5 -n "$size" sent region || fail "the region differs from a file of $size bytes"
		expect_ok "$rpma" get --offset 5 --length "$size" "$where" back
		cmp sent back || fail "a file of $size bytes comes back different"
	done
}

test_what_was_put_survives_a_killed_server() {
	serve region --create --size 4M
	random_file sent 4M
	expect_ok "$rpma" put sent "$where"
	kill_server
	cmp sent region || fail "the file lost bytes"
	serve region
	expect_ok "$rpma" get "$where" back
	cmp sent back || fail "the region lost bytes"
}

test_the_rest_of_the_region_stays_as_it_is() {
	random_file region 1M
	cp region before
	serve region
	random_file sent 1000
	expect_ok "$rpma" put --offset 3000 sent "$where"
	cmp -n 3000 before region || fail "bytes before the offset changed"
	cmp -i 4000 before region || fail "bytes behind the file changed"
}

test_acknowledgements_grow_up_to_the_end() {
	serve region --create --size 8M
	random_file sent 5000000
	expect_ok "$rpma" put --offset 4096 --flush-every 1M --verbose sent "$where"
	grep -o '^flushed up to offset [0-9]*$' out | awk '{ print $5 }' >offsets
	[ "$(wc -l <offsets)" -ge 4 ] || fail "too few acknowledgements: $(cat out)"
	sort -nu offsets | cmp - offsets || fail "the offsets do not grow: $(cat offsets)"
	[ "$(tail -n 1 offsets)" = $((4096 + 5000000)) ] || fail "the last one is not the end"
}

# The put must flush exactly as often as requested, even below the size of a write.
test_flushes_come_as_often_as_asked_for() {
	local every
	serve region --create --size 40M
	random_file sent 1000000
	for every in 4K 10000 300000 0; do
		expect_ok "$rpma" put --verbose --flush-every $every sent "$where"
		cmp -n 1000000 sent region || fail "the region differs"
		grep -o '^flushed up to offset [0-9]*$' out | awk '{ print $5 }' >offsets
		case $every in
		4K) { seq 4096 4096 1000000 && echo 1000000; } | cmp - offsets ;;
		10000) seq 10000 10000 1000000 | cmp - offsets ;;
		300000) printf '%s\n' 300000 600000 900000 1000000 | cmp - offsets ;;
		0) echo 1000000 | cmp - offsets ;;
		esac || fail "with --flush-every $every: $(head -n 5 offsets) ... $(tail -n 1 offsets)"
	done
	random_file sent 33554433
	expect_ok "$rpma" put --flush-every 100000 sent "$where"
	grep -q 'verified: blake2b' out || fail "not verified: $(cat out)"
}

test_summaries_in_json_are_utf8_whatever_the_file_is_called() {
	local name
	serve region --create --size 1M
	for name in $'\xff\x80' $'\xc0\xaf' $'\xed\xa0\x80' $'\xf4\x90\x80\x80' $'cut\xe2\x82' $'two\nlines' 'gr\"n'; do
		echo content >"$name"
		expect_ok "$rpma" put --json "$name" "$where"
		perl -MJSON::PP -e 'local $/; decode_json(<STDIN>)' <out || fail "no JSON: $(cat -v out)"
	done
	echo content >$'\xc3\xbc\xe2\x82\xac\xf0\x9f\x92\xbe'
	expect_ok "$rpma" put --json $'\xc3\xbc\xe2\x82\xac\xf0\x9f\x92\xbe' "$where"
	grep -q $'"\xc3\xbc\xe2\x82\xac\xf0\x9f\x92\xbe"' out || fail "the name is not kept: $(cat -v out)"
}

# A signal would end the program without a reason, perhaps in the middle of a file that is
# overwritten in place.
test_a_limit_on_file_sizes_is_an_error() {
	random_file region 1M
	serve region
	echo old >target
	(ulimit -f 100 && expect 3 'target: cannot reserve 1 MiB on the disk: File too large' "$rpma" get "$where" target)
	[ "$(cat target)" = old ] || fail "the target became something else"
	(ulimit -f 100 && expect 3 'other: cannot reserve 1 MiB on the disk: File too large' \
		"$rpma" serve --create --size 1M --port 0 other)
	[ ! -e other ] || fail "a file is left"
}

test_summaries_in_json_tell_the_truth() {
	serve region --create --size 1M --region pool
	random_file sent 70000
	expect_ok "$rpma" put --json --offset 10 sent "$where"
	grep -qE '^\{"operation":"put","file":"sent","server":"127.0.0.1:[0-9]+","region":"pool","durability":"(file|dax)","offset":10,"bytes":70000,"transfer_seconds":[0-9.]+,"transfer_mib_per_s":[0-9.]+,"flushed":true,"verified":true,"digest":"blake2b","read_back_from":"(medium|cache|dax)","verify_seconds":[0-9.]+,"verify_mib_per_s":[0-9.]+\}$' out ||
		fail "unexpected summary: $(cat out)"
	expect_ok "$rpma" get --json --length 5 "$where" back
	grep -qE '^\{"operation":"get","file":"back",.*"bytes":5,' out || fail "unexpected summary: $(cat out)"
}

test_a_region_is_found_by_its_name_only() {
	serve region --create --size 1M --region right
	random_file sent 100
	expect 5 "does not serve a region 'wrong'; it serves 'right'" "$rpma" put --region wrong sent "$where"
	wait_until 5 grep -q 'refused client .*unknown region: wrong' serve.err ||
		fail "the server does not log the refusal"
	expect_ok "$rpma" put --region right sent "$where"
}

test_what_does_not_fit_is_refused_before_anything_is_written() {
	random_file region 8192
	cp region before
	serve region
	random_file sent 8193
	expect 5 'sent has 8193 bytes, but .* only 8192; serve a larger file' "$rpma" put sent "$where"
	expect 5 'sent has 8193 bytes, but from offset 8192 .* only 0' "$rpma" put -o 8192 sent "$where"
	expect 5 'offset 8193 is outside region' "$rpma" put -o 8193 sent "$where"
	grep -q "region 'region' of 8192 bytes" err || fail "bytes and KiB are mixed: $(cat err)"
	expect 5 'offset 8193 is outside region' "$rpma" get -o 8193 "$where" back
	expect 5 "2 bytes from offset 8191 reach past the end of region 'region' of 8192 bytes" \
		"$rpma" get -o 8191 -l 2 "$where" back
	cmp before region || fail "the region changed"
	[ ! -e back ] || fail "a file was left"
}

test_the_source_must_be_readable() {
	mkdir folder
	expect 3 'cannot open nope: No such file' "$rpma" put nope localhost
	expect 3 'folder is a directory' "$rpma" put folder localhost
}

test_the_target_must_be_a_file_that_can_be_written() {
	serve region --create --size 1M
	mkdir folder
	expect 3 'folder is a directory' "$rpma" get "$where" folder
	expect 3 'cannot create nowhere/back: No such file' "$rpma" get "$where" nowhere/back
}

test_an_absent_server_has_its_own_error() {
	local port
	serve region --create --size 1M
	port=${where##*:}
	stop_server
	random_file sent 100
	expect 4 "127.0.0.1:$port: the host refused the connection .*no program listens there: does the server run" "$rpma" put sent "127.0.0.1:$port"
	expect 4 "no such host 'nobody.invalid'" "$rpma" put sent nobody.invalid
}

# foreign WORDS [READS]: starts a program that accepts a connection, reads if READS is given,
# answers with WORDS, and closes.
foreign() {
	rm -f port
	perl -MIO::Socket::INET -e '
		my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1") or die;
		$| = 1; print $s->sockport, "\n";
		while (my $c = $s->accept) { sysread $c, my $r, 4096 if $ARGV[1]; print $c $ARGV[0]; close $c }' "$@" >port &
	started+=("$!")
	wait_until 10 test -s port
}

test_a_server_that_is_none_is_not_waited_for_forever() {
	local ended='accepted TCP, then ended or reset it without an answer: is it an RDMA server'
	random_file sent 100
	foreign '' 0
	expect 4 "127.0.0.1:$(cat port): no connection .*$ended" "$rpma" put -t 20 sent "127.0.0.1:$(cat port)"
	foreign '' 1
	expect 4 "127.0.0.1:$(cat port): no connection .*$ended" "$rpma" put -t 20 sent "127.0.0.1:$(cat port)"
	foreign "HTTP/1.1 400 Bad Request" 1
	expect 4 'does not speak iWARP' "$rpma" put -t 20 sent "127.0.0.1:$(cat port)"
	foreign "$(printf '220 hello%.0s' {1..20})" 0
	# The program closes while the request is unread, which resets the connection. The reset may
	# arrive before the put has read the words.
	expect 4 "does not speak iWARP|$ended" "$rpma" put -t 20 sent "127.0.0.1:$(cat port)"
}

test_ipv6_and_names_work() {
	serve region --create --size 1M --addr ::1
	[[ $where == "[::1]:"* ]] || fail "unexpected address $where"
	random_file sent 5000
	expect_ok "$rpma" put sent "$where"
	cmp -n 5000 sent region || fail "the region differs"
	serve second --create --size 1M
	expect_ok "$rpma" put sent "localhost:${where##*:}"
	cmp -n 5000 sent second || fail "the region differs"
}

# put_until_acknowledged OPTION ...: starts a put, waits for its first acknowledgement, and stores
# it in $first. The acknowledgement comes through a pipe, because polling a file can be too late.
put_until_acknowledged() {
	random_file sent 64M
	mkfifo pipe
	"$rpma" put --verbose --flush-every 256K "$@" sent "$where" >pipe 2>err &
	started+=("$!")
	exec 5<pipe
	read -r -u 5 first && [[ $first == flushed* ]] || fail "no acknowledgement: $(cat err)"
}

put_ends() { # sets $rc to its status; all acknowledgements are in ./acks
	{ echo "$first" && cat <&5; } >acks
	exec 5<&-
	rc=0
	wait "${started[-1]}" || rc=$?
}

test_a_server_killed_midway_ends_the_put() {
	local first rc
	serve region --create --size 64M
	put_until_acknowledged
	kill_server
	put_ends
	[ "$rc" = 1 ] || fail "put exits with $rc: $(cat err)"
	grep -v ' librpma: ' err >lines || :
	[ "$(wc -l <lines)" = 1 ] || fail "not one line: $(cat lines)"
	local acked
	acked=$(awk 'END { print $5 }' acks)
	cmp -n "$acked" sent region || fail "acknowledged bytes are missing"
}

# The duration of a get depends on its reader, which is slow here.
begin_slow_get() { # the get is under way, fd 5 is its output
	mkfifo pipe
	"$rpma" get "$where" - >pipe 2>err &
	getter=$!
	started+=("$getter")
	exec 5<pipe
	head -c 100 <&5 >/dev/null
}

end_get() { # sets $rc to its status
	rc=0
	cat <&5 >/dev/null
	exec 5<&-
	wait "$getter" || rc=$?
}

test_a_failed_get_does_not_advise_to_write() {
	local getter rc
	random_file region 64M
	serve region
	begin_slow_get
	kill_server
	end_get
	[ "$rc" = 1 ] || fail "get exits with $rc: $(cat err)"
	grep -q 'connect again' err || fail "no advice: $(cat err)"
	! grep -qi 'write again\|what was not flushed' err || fail "a reader is told to write: $(cat err)"
}

test_a_get_from_a_truncated_file_says_what_happened() {
	local getter rc
	random_file region 64M
	serve region
	begin_slow_get
	truncate -s 4096 region
	end_get
	[ "$rc" = 5 ] || fail "get exits with $rc: $(cat err)"
	grep -q "the memory behind region 'region' of $where is gone: its file was truncated while it was served, or a disk is full; read the region .* restart the server" err ||
		fail "get says: $(cat err)"
	! grep -q 'Terminate' err || fail "get says: $(cat err)"
}

test_a_put_into_a_file_that_is_truncated_meanwhile_says_what_happened() {
	local rc=0
	serve region --create --size 64M
	random_file sent 8M
	mkfifo pipe
	"$rpma" put --verbose --flush-every 1M - "$where" <pipe >out 2>err &
	started+=("$!")
	exec 5>pipe
	head -c 2M sent >&5
	wait_until 20 cmp -s -n 1M sent region || fail "nothing arrives: $(cat out err)"
	truncate -s 1M region
	cat sent >&5 2>/dev/null || :
	exec 5>&-
	wait "${started[-1]}" || rc=$?
	[ "$rc" = 5 ] || fail "put exits with $rc: $(cat err)"
	grep -qE "the memory behind region 'region' of $where is gone: its file was truncated|the file of region 'region' .* was truncated" err ||
		fail "put says: $(cat err)"
	! grep -q Terminate err || fail "put says: $(cat err)"
}

test_a_failed_get_leaves_what_was_there() {
	serve region --create --size 64M
	echo precious >back
	kill -STOP "$server"
	expect 4 'does not answer' "$rpma" get --timeout 1 "$where" back
	kill -CONT "$server"
	[ "$(cat back)" = precious ] || fail "the old file is gone"
	[ "$(find . -name 'back*' | wc -l)" = 1 ] || fail "a temporary file is left"
}

test_a_get_without_room_for_the_file_says_so() {
	local rc=0
	serve region --create --size 4M
	on_small_disk 1M bash -c '"$1" get "$2" disk/back; echo "exit $?"; ls disk' \
		test "$rpma" "$where" >out 2>err || rc=$?
	[ "$rc" = 0 ] || exit "$rc"
	grep -q 'rpma get: disk/back: not enough disk for 4 MiB' err || fail "says: $(cat err)"
	[ "$(cat out)" = "exit 3" ] || fail "unexpected result: $(cat out)"
}

# The moment of the kill varies, so the test repeats the kill until it interrupts a transfer.
test_a_server_killed_midway_ends_the_get_and_spares_the_old_file() {
	local round=0 rc hit=0
	random_file region 64M
	while [ "$round" -lt 9 ] || [ "$hit" = 0 ]; do
		serve region --verbose
		echo precious >back
		"$rpma" get "$where" back >out 2>err &
		started+=("$!")
		[ $((round % 3)) = 0 ] || wait_until 20 grep -q 'client 1 from .* connected' serve.err
		sleep "0.0$((round++ % 5))"
		kill_server
		rc=0
		wait "${started[-1]}" || rc=$?
		case "$rc" in
		0) cmp region back || fail "a complete file that differs" ;;
		*) [ "$(cat back)" = precious ] || fail "the old file is gone" ;;
		esac
		[ "$rc" != 1 ] || hit=1
		[ "$(find . -name '*back*' | wc -l)" = 1 ] || fail "a temporary file is left"
	done
}

test_a_stopped_server_is_given_up() {
	local first rc
	serve region --create --size 64M
	put_until_acknowledged --timeout 8
	kill -STOP "$server"
	put_ends
	[ "$rc" = 1 ] || fail "put exits with $rc: $(cat err)"
}

test_several_clients_write_side_by_side() {
	local i pids=()
	serve region --create --size 16M
	for i in 0 1 2 3 4 5 6 7; do
		random_file "sent$i" 2M
		"$rpma" put --offset "$((i * 2))M" "sent$i" "$where" >"out$i" 2>&1 &
		pids+=("$!")
		started+=("$!")
	done
	for i in 0 1 2 3 4 5 6 7; do
		wait "${pids[i]}" || fail "client $i: $(cat "out$i")"
		cmp -i "0:$((i * 2 << 20))" -n $((2 << 20)) "sent$i" region || fail "part $i differs"
	done
}

test_the_bar_appears_on_a_terminal_only() {
	serve region --create --size 64M
	random_file sent 64M
	expect_ok "$rpma" put sent "$where"
	[ ! -s err ] || fail "something was printed to a file: $(cat err)"
	script -qec "'$rpma' put sent $where" /dev/null </dev/null >terminal
	grep -q 'MiB/s' terminal || fail "nothing on the terminal"
	grep -q 'put \[' terminal || fail "no bar on the terminal: $(cat terminal)"
	grep -q 'verify \[' terminal || fail "verification is not shown: $(cat terminal)"
	grep -q 'ETA' terminal || fail "no estimate: $(cat terminal)"
	grep -qE 'put: 67108864 bytes .*, transferred in [0-9.]+ s, [0-9.]+ MiB/s, .* verified: blake2b, read back from [^,]* in [0-9.]+ s, [0-9.]+ MiB/s' terminal ||
		fail "the summary does not tell transfer and verification apart: $(cat terminal)"
}

# pieces FILE: prints the texts between two carriage returns or line ends, without the sequences
# that erase a line.
pieces() { tr '\r' '\n' <"$1" | sed 's/\x1b\[K//g'; }

test_the_bar_stays_on_one_line_of_a_narrow_terminal() {
	local columns
	serve region --create --size 64M
	random_file sent 64M
	for columns in 80 40 20 10; do
		script -qec "stty cols $columns; '$rpma' put sent $where" /dev/null </dev/null >terminal
		pieces terminal | grep -E '^(put|verify).*%' >bars || fail "no bar: $(cat terminal)"
		[ "$(wc -L <bars)" -lt $columns ] || fail "too wide for $columns: $(cat bars)"
	done
}

test_the_bar_follows_a_terminal_that_becomes_narrow() {
	serve region --create --size 64M
	random_file sent 2M
	cat >feed <<-'END'
		for i in 1 2 3 4 5 6; do cat sent; sleep 0.2; done
		stty cols 12 </dev/tty
		for i in 1 2 3 4 5 6; do sleep 0.2; cat sent; done
	END
	script -qec "stty cols 80; bash feed | '$rpma' put --no-verify - $where" /dev/null </dev/null >terminal
	pieces terminal | grep -E '^put [0-9.]+ M' | awk '{ print length }' >lengths
	[ "$(sort -n lengths | tail -n 1)" -gt 12 ] || fail "no bar on the wide terminal: $(cat -v terminal)"
	[ "$(tail -n 1 lengths)" -lt 12 ] || fail "it stays wide: $(cat -v terminal)"
}

test_lines_do_not_break_the_bar() {
	serve region --create --size 64M
	random_file sent 64M
	script -qec "'$rpma' put --verbose --flush-every 4M sent $where" /dev/null </dev/null >terminal
	grep -q 'put \[' terminal || fail "no bar: $(cat terminal)"
	[ "$(pieces terminal | grep -cx 'flushed up to offset [0-9]*')" = 16 ] ||
		fail "lines and bar are mixed: $(cat -v terminal)"
	# A bar must be erased before another line is written in its place.
	! grep -aE '(MiB/s|ETA [0-9:-]+)(\x1b\[K)?flushed' terminal || fail "mixed: $(cat -v terminal)"
}

# Standard output must have only JSON.
test_verbose_json_is_json() {
	serve region --create --size 4M
	random_file sent 3000000
	expect_ok "$rpma" put --verbose --json --flush-every 1M sent "$where"
	perl -MJSON::PP -e 'local $/; decode_json(<STDIN>)' <out || fail "no JSON: $(cat out)"
	grep -qE '^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\.[0-9]{3} rpma put: flushed up to offset 3000000$' err ||
		fail "no log with times on standard error: $(cat err)"
	serve other --create --size 1M --verbose --json
	expect_ok "$rpma" get --verbose --json "$where" back
	perl -MJSON::PP -e 'local $/; decode_json(<STDIN>)' <out || fail "no JSON: $(cat out)"
	wait_until 10 grep -qE '^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\.[0-9]{3} rpma serve: client 1 from' serve.err ||
		fail "the server's log has no times: $(cat serve.err)"
	! grep -v '^{' serve.out || fail "the server writes more than JSON: $(cat serve.out)"
}

"test_$1"
