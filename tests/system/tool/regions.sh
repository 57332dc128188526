#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Several files at one server, its counters, and limits for an address.
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/lib.sh"

test_each_file_is_a_region_under_its_own_name() {
	mkdir folder
	serve folder/a -r first -r second --create --size 1M folder/b c
	grep -cE "^serving region '(first|second|a)' at $where: 1 MiB of (folder/b|c|folder/a), " serve.out |
		grep -qx 3 || fail "unexpected announcement: $(cat serve.out)"
	local name
	for name in first second a; do
		random_file "sent-$name" 1M
		expect_ok "$rpma" put --region "$name" "sent-$name" "$where"
	done
	expect_ok "$rpma" get --region second "$where" back
	cmp sent-second back || fail "the second region comes back different"
	cmp sent-first folder/b || fail "'first' is not the first file"
	cmp sent-second c || fail "'second' is not the second file"
	cmp sent-a folder/a || fail "'a' is not the file of that name"
}

test_a_client_has_to_choose_among_several() {
	serve a --create --size 1M b
	random_file data 100
	expect 5 "serves several regions, and none was named: choose one, as in $where:NAME; 'rpma info $where' lists them" \
		"$rpma" put data "$where"
	expect 5 "does not serve a region 'c'; 'rpma info $where' lists" "$rpma" put -r c data "$where"
}

test_the_announcement_of_several_is_a_list() {
	serve b --create --size 1M --json a
	perl -MJSON::PP -e '
		my $all = decode_json(<>);
		die "regions" unless @{$all->{regions}} == 2;
		die "names" unless join(",", map { $_->{region} } @{$all->{regions}}) eq "a,b";
		die "size" unless $all->{regions}[1]{size} == 1 << 20;
		die "secret" if $all->{secret};' serve.out || fail "unexpected announcement: $(cat serve.out)"
}

test_files_that_cannot_be_served_together_are_refused() {
	mkdir x
	head -c 4096 /dev/zero >a
	expect 2 "two regions are named 'a'" "$rpma" serve --port 0 a x/a
	expect 2 'more --region options than files' "$rpma" serve --port 0 -r 1 -r 2 a
	expect 2 'more than 32 regions' "$rpma" serve --port 0 $(seq 33)
	expect 3 'a is being served already' "$rpma" serve --port 0 -r 1 a a
}

test_when_one_file_fails_none_is_left() {
	expect 3 'nowhere/b: No such file' "$rpma" serve --port 0 --create --size 1M a nowhere/b
	[ ! -e a ] || fail "the first file is left"
}

test_the_most_that_can_be_served_are_listed() {
	# shellcheck disable=SC2046 # words
	serve r32 --create --size 4096 $(seq -f 'r%g' 31)
	expect_ok "$rpma" info "$where"
	[ "$(grep -cE "^region 'r[0-9]+': 4 KiB, durability (file|dax)$" out)" = 32 ] ||
		fail "unexpected list: $(cat out)"
}

test_clients_beyond_the_limit_of_an_address_get_the_reason() {
	serve file --create --size 1M --addr :: --max-per-address 1 --verbose
	local port=${where##*:}
	"$rpma" ping --count 1000000 "127.0.0.1:$port" >/dev/null 2>&1 &
	started+=("$!")
	random_file data 100
	wait_until 20 grep -q 'client 1 from 127.0.0.1 connected' serve.err || fail "ping does not connect"
	expect 5 'serves as many clients from this address as it may' "$rpma" put data "127.0.0.1:$port"
	grep -q 'refused client .* from 127.0.0.1: it exceeds the number of clients that may be served from one address' serve.err ||
		fail "the server does not log the refusal"
	expect_ok "$rpma" put data "[::1]:$port"
	kill -9 "${started[-1]}"
	wait_until 20 "$rpma" put data "127.0.0.1:$port" >out 2>&1 || fail "the place is never free again"
}

signal_and_read() { # PATTERN
	: >serve.out
	kill -USR1 "$server"
	wait_until 20 grep -qE "$1" serve.out || fail "no counters: $(cat serve.out)"
}

test_counters_are_printed_on_sigusr1() {
	serve file --create --size 1M
	random_file data 1000
	expect_ok "$rpma" put data "$where"
	"$rpma" ping --count 1000000 "$where" >/dev/null 2>&1 &
	started+=("$!")
	wait_until 20 counted_two
	grep -qE "^client 2 from 127.0.0.1, region 'file', scratch:( [a-z_]+=[0-9]+)+$" serve.out ||
		fail "no line for the client: $(cat serve.out)"
	stop_server
}

counted_two() {
	signal_and_read '^total'
	grep -qE '^total, 1 clients now, 2 ever:( [a-z_]+=[0-9]+)+$' serve.out
}

test_counters_in_json_include_those_that_are_gone() {
	serve file --create --size 1M --json
	random_file data 100000
	expect_ok "$rpma" put data "$where"
	expect_ok "$rpma" put data "$where"
	expect_ok "$rpma" put data "$where"
	wait_until 20 all_gone
	perl -MJSON::PP -e '
		my $all = decode_json(<>);
		die "clients" if @{$all->{clients}};
		die "ever" unless $all->{total}{ever} == 3;
		die "bytes" unless grep { $_ >= 300000 } values %{$all->{total}{counters}};' serve.out ||
		fail "unexpected counters: $(cat serve.out)"
}

all_gone() {
	signal_and_read '^\{"clients"'
	grep -q '"now":0' serve.out
}

"test_$1"
