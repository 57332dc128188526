#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Command lines, help texts, manual pages, and ping.
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/lib.sh"

test_wrong_command_lines_exit_with_2() {
	local command
	expect 2 "there is no command 'fetch'" "$rpma" fetch
	for command in serve put get ls ping bench; do
		expect 2 '' "$rpma" "$command"
		expect 2 "unrecognized option '--bogus'" "$rpma" "$command" --bogus
	done
	expect 2 "unrecognized option '--bogus'" "$rpma" info --bogus
	expect 2 'expected one operand at most' "$rpma" info a b
	expect 2 "'host:0': the port is not a number" "$rpma" info host:0
	expect 2 "'host:pool' names a region, but this command takes a server" "$rpma" info host:pool
	expect 2 'too many operands' "$rpma" put a b c
	expect 2 "'host:0': the port is not a number" "$rpma" put a host:0
	expect 2 "'host:65536': the port is not a number" "$rpma" put a host:65536
	expect 2 "':7204': the host name is empty" "$rpma" put a :7204
	expect 2 'an IPv6 address in brackets' "$rpma" put a '[::1'
	expect 2 'an IPv6 address in brackets' "$rpma" get '[host]:1' a
	expect 2 "offset: '5X' is not a size" "$rpma" put -o 5X a host
	expect 2 "offset: '-1' is not a size" "$rpma" put -o -1 a host
	expect 2 "offset: '9223372036854775808' is not a size" "$rpma" put -o 9223372036854775808 a host
	expect 2 "length: '8388608T' is not a size" "$rpma" get -l 8388608T host a
	expect 2 "timeout: '0' is not" "$rpma" put -t 0 a host
	expect 2 'longer than 44 characters' "$rpma" put -r "$(printf 'x%.0s' {1..45})" a host
	expect 2 "count: '0' is not" "$rpma" ping -c 0 host
	expect 2 "size: '0' is not" "$rpma" ping -s 0 host
	expect 2 "work: 'reads' is not a kind" "$rpma" bench -w read,reads host
	expect 2 "size: '' is not a size" "$rpma" bench -s 64,,4K host
	expect 2 "size: '0' is not a size" "$rpma" bench -s 64,0 host
	expect 2 "size: more than 32" "$rpma" bench -s "$(printf '8,%.0s' {1..32})8" host
	expect 2 "depth: '1025' is not" "$rpma" bench -d 1,1025 host
	expect 2 "batch: '0' is not" "$rpma" bench -b 0 host
	expect 2 "flush-every: '1025' is not" "$rpma" bench -f 1025 host
	expect 2 "duration: '0' is not" "$rpma" bench -D 0 host
	expect 2 "count: 'x' is not" "$rpma" bench -c x host
	expect 2 '33792 operations would be outstanding' "$rpma" bench -d 1024 -b 32 -w batch_flush_visible host
	expect 2 'create needs --size' "$rpma" serve --create file
	expect 2 "port: '70000' is not" "$rpma" serve --port 70000 file
	expect 2 "max-clients: '0' is not" "$rpma" serve --max-clients 0 file
	expect 2 "max-per-address: 'many' is not" "$rpma" serve --max-per-address many file
}

# foreign WORDS: sets a port at which another program accepts, and sends WORDS.
foreign() {
	rm -f foreign.port
	python3 -c '
import socket, sys
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
held = []
while True:
    held.append(s.accept()[0])
    held[-1].sendall(sys.argv[1].encode())
' "$1" >foreign.port &
	started+=("$!")
	wait_until 10 test -s foreign.port
	foreign=127.0.0.1:$(cat foreign.port)
}

test_a_port_of_another_program_is_called_so() {
	foreign 'SSH-2.0-x
'
	expect 4 "cannot connect to $foreign: .*the program that listens there does not speak iWARP" "$rpma" ls "$foreign"
	foreign ''
	expect 4 "$foreign does not answer: .*accepted the TCP connection, and then sent no answer" "$rpma" ls -t 1 "$foreign"
}

# --help and the manual page must name the same options: each option of one must be in the other.
test_help_goes_to_stdout_and_matches_the_manual() {
	local command page
	expect_ok "$rpma" --help
	for command in serve put get ls ping bench info; do
		grep -q "^  rpma $command " out || fail "--help does not name $command"
		grep -q "^\.It Cm $command\$" "$RPMA_SOURCE/doc/man/1/rpma.1" ||
			fail "rpma(1) does not name $command"
	done
	expect_ok "$rpma" --version
	for command in serve put get ls ping bench info; do
		page=$RPMA_SOURCE/doc/man/1/rpma-$command.1
		expect_ok "$rpma" "$command" --help
		grep -q "^usage: rpma $command" out || fail "no usage line"
		# Format of a line of --help: " -x, --long ARG text"; of a line of the manual: ".It
		# Fl x , Fl -long Ar arg"
		sed -nE 's/^ +(-(.), )?--([a-z-]+)( ([A-Z]+))? .*/\2 \3 \5/p' out | sort >said
		sed -nE 's/^\.It Fl ((.) , Fl )?-([a-z-]+)( Ar ([a-z-]+))?$/\2 \3 \5/p' "$page" | sort >written
		[ "$(wc -l <said)" -ge 5 ] || fail "few options: $(cat said)"
		diff <(sed -E 's/ [A-Z]+$/ X/' said) <(sed -E 's/ [a-z]+$/ X/' written) ||
			fail "rpma-$command(1) and --help differ"
	done
}

test_output_that_cannot_be_written_is_an_error() {
	"$rpma" put --help >/dev/full 2>err && fail "does not notice a full device"
	grep -q 'cannot write the output' err || fail "says: $(cat err)"
}

test_a_complete_put_whose_output_is_lost_says_so() {
	serve region --create --size 1M
	random_file file 100K
	local rc=0
	"$rpma" put file "$where" >/dev/full 2>err || rc=$?
	[ $rc = 3 ] || fail "exits with $rc"
	grep -q 'cannot write the output: .*; the put itself is complete$' err || fail "says: $(cat err)"
	expect_ok "$rpma" get "$where" copy
	cmp file copy || fail "the copy differs"
}

test_ping_measures_all_four_kinds() {
	serve region --create --size 1M
	expect_ok "$rpma" ping --count 50 --size 64 "$where"
	head -n 1 out | grep -qE "^ping 127.0.0.1:[0-9]+, region 'region', durability (file|dax), 64 bytes" ||
		fail "unexpected head: $(cat out)"
	local kind
	for kind in 'write' 'write \+ flush visible' 'write \+ flush persistent' 'read'; do
		grep -qE "^$kind +50( +[0-9]+\.[0-9]){4}\$" out || fail "no line for '$kind': $(cat out)"
	done
	# In each line min <= median <= p99 <= max must hold.
	awk 'NF > 5 && $(NF-4) == 50 && !($(NF-3) <= $(NF-2) && $(NF-2) <= $(NF-1) && $(NF-1) <= $NF) { exit 1 }' out ||
		fail "the columns are not in order: $(cat out)"
}

test_ping_in_json_and_in_any_size() {
	serve region --create --size 4096
	expect_ok "$rpma" ping --json --count 5 --size 1M "$where"
	grep -qE '^\{"server":"127.0.0.1:[0-9]+","region":"region","durability":"(file|dax)","size":1048576,"write":\{"count":5,"min_us":[0-9.]+,"median_us":[0-9.]+,"p99_us":[0-9.]+,"max_us":[0-9.]+\},"write_flush_visible":\{.*\},"write_flush_persistent":\{.*\},"read":\{.*\},"link":"shm"\}$' out ||
		fail "unexpected output: $(cat out)"
	expect 5 "larger than the server's scratch page of 1048576 bytes" "$rpma" ping --size 1048577 "$where"
}

test_ping_names_the_link() {
	serve region --create --size 4096
	expect_ok "$rpma" ping --count 20 "$where"
	[ "$(tail -n 1 out)" = "link shm" ] || fail "unexpected end: $(cat out)"
	SOFTRNIC_SHM=0 expect_ok "$rpma" ping --count 20 "$where"
	[ "$(tail -n 1 out)" = "link tcp" ] || fail "unexpected end: $(cat out)"
}

test_ping_leaves_the_region_alone() {
	random_file region 64K
	cp region before
	serve region
	expect_ok "$rpma" ping --count 20 --size 4096 "$where"
	cmp before region || fail "the region changed"
	[ "$(find . -name '*region*' | wc -l)" = 1 ] || fail "something is left beside the file"
}

"test_$1"
