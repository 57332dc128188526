#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# rpma info.
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/lib.sh"

test_providers_are_listed_with_reasons() {
	expect_ok "$rpma" info
	grep -qE '^softrnic +softrnic0 +yes +[^ ]' out || fail "no softrnic: $(cat out)"
	grep -qE '^verbs +[^ ]+ +(yes|no) +[^ ]' out || fail "no verbs: $(cat out)"
	grep -qE '^capabilities: softrnic, flush, .*verify' out || fail "no capabilities: $(cat out)"
	expect_ok "$rpma" info --json
	perl -MJSON::PP -e '
		my $all = decode_json(<>);
		my ($soft) = grep { $_->{provider} eq "softrnic" } @{$all->{providers}};
		die "softrnic" unless $soft->{usable} && $soft->{device} && $soft->{why};
		die "verify" unless grep { $_ eq "verify" } @{$all->{capabilities}};' out ||
		fail "unexpected JSON: $(cat out)"
}

test_the_backing_of_a_path_is_reported_with_the_reason() {
	random_file file 5000
	expect_ok "$rpma" info ./file
	grep -qE '^./file: durability (file|dax)$' out || fail "says: $(cat out)"
	[ "$(sed -n 2p out | wc -c)" -gt 10 ] || fail "gives no reason: $(cat out)"
	chmod 400 file
	expect_ok "$rpma" info file
	expect_ok "$rpma" info .
	grep -qE '^.: durability (file|dax)$' out || fail "says: $(cat out)"
	[ "$(find . -newer file -type f | grep -cv -e out -e err)" = 0 ] || fail "something is left: $(ls)"
	expect_ok "$rpma" info /dev/shm
	grep -q '^/dev/shm: durability volatile$' out || fail "says: $(cat out)"
	grep -q tmpfs out || fail "gives no reason: $(cat out)"
	expect_ok "$rpma" info --json file
	grep -qE '^\{"path":"file","size":5000,"durability":"(file|dax)","why":".+"\}$' out ||
		fail "unexpected JSON: $(cat out)"
}

test_paths_that_back_nothing_are_refused() {
	mkfifo pipe
	: >empty
	expect 3 'No such file' "$rpma" info ./nope
	expect 3 'neither a file nor a folder' "$rpma" info pipe
	expect 3 'is empty; ask about its folder' "$rpma" info empty
}

test_the_capabilities_of_a_server_are_reported() {
	serve region --create --size 1M
	expect_ok "$rpma" info "$where"
	grep -qx "server $where, without a secret" out || fail "says: $(cat out)"
	grep -qE '^capabilities: softrnic, flush, .*verify' out || fail "says: $(cat out)"
	grep -qx 'link tcp' out || fail "names no link: $(cat out)"
	grep -qx 'shared memory: once it has carried some messages' out || fail "says: $(cat out)"
	grep -qE "^region 'region': 1 MiB, durability (file|dax)$" out || fail "says: $(cat out)"
	expect_ok "$rpma" info --json "$where"
	perl -MJSON::PP -e '
		my $all = decode_json(<>);
		die "capabilities" unless grep { $_ eq "flush" } @{$all->{capabilities}};
		die "regions" unless $all->{regions}[0]{region} eq "region";
		die "size" unless $all->{regions}[0]{size} == 1 << 20;
		die "link" unless $all->{link} eq "tcp" && $all->{shared_memory};' out || fail "unexpected: $(cat out)"
	SOFTRNIC_SHM=0 expect_ok "$rpma" info "$where"
	grep -qx 'shared memory: not offered by both ends' out || fail "says: $(cat out)"
	stop_server
	expect 4 'refused the connection' "$rpma" info "$where"
}

"test_$1"
