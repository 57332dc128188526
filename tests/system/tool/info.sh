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
	grep -qx 'shared memory: offered, starts after some messages' out || fail "says: $(cat out)"
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

has_line() { # LINES ON STANDARD INPUT: each is in `out`
	local line
	while read -r line; do
		grep -qE "^$line$" out || fail "no line $line: $(cat out)"
	done
}

test_a_server_is_watched_by_its_metrics() {
	serve region --create --size 1M
	random_file data 5000
	expect_ok "$rpma" put data "$where"
	expect_ok "$rpma" info "$where" --openmetrics
	expect_ok "$rpma" info "$where" --openmetrics # the first request started the check of the disk
	[ "$(tail -n 1 out)" = '# EOF' ] || fail "no end: $(cat out)"
	has_line <<-END
		rpma_up\{server="$where"\} 1
		rpma_secret_refused\{server="$where"\} 0
		rpma_serve_clients\{server="$where"\} 0
		rpma_serve_served_clients_total\{server="$where"\} 1
		rpma_serve_flushes_total\{server="$where"\} [1-9][0-9]*
		rpma_serve_writebacks_total\{server="$where"\} [1-9][0-9]*
		rpma_serve_writeback_failures_total\{server="$where"\} 0
		rpma_serve_region_size_bytes\{server="$where",region="region"\} 1048576
		rpma_serve_region_usable\{server="$where",region="region"\} 1
		rpma_serve_filesystem_avail_bytes\{server="$where",region="region"\} [1-9][0-9]*
	END
	expect_ok "$rpma" info "$where" --check
	grep -qE "^RPMA OK - server $where, 1 regions, .* \\| 'answer'=[0-9.]+s;;;0 .*'writeback_failures'=0;;1;0$" out || fail "says: $(cat out)"
	mv region elsewhere
	wait_until 20 region_is_lost || fail "a file without its name is usable: $(cat out)"
	local got=0
	"$rpma" info "$where" --check >out 2>err || got=$?
	[ $got = 2 ] && grep -q '^RPMA CRITICAL - .* 1 of them without their file' out || fail "exits with $got: $(cat out err)"
	expect_ok "$rpma" info "$where" --textfile rpma.prom
	[ ! -s out ] && grep -qx "# TYPE rpma_serve_flushes_total counter" rpma.prom || fail "not the collector's form"
	if command -v promtool >/dev/null; then
		promtool check metrics <rpma.prom >lint 2>&1 || fail "promtool: $(cat lint)"
	fi
	stop_server
	expect 4 'refused the connection' "$rpma" info "$where" --textfile rpma.prom
	[ "$(grep -v '^#' rpma.prom)" = "rpma_up{server=\"$where\"} 0
rpma_secret_refused{server=\"$where\"} 0" ] || fail "not known as down: $(cat rpma.prom)"
	got=0
	"$rpma" info "$where" --check >out 2>err || got=$?
	[ $got = 2 ] && grep -q '^RPMA CRITICAL - .*refused the connection' out || fail "exits with $got: $(cat out err)"
}

region_is_lost() {
	"$rpma" info "$where" --openmetrics >out 2>err && grep -qE '^rpma_serve_region_usable.* 0$' out
}

test_a_refused_secret_is_a_metric() {
	echo 'a secret of enough bytes' >secret
	echo 'a secret of other bytes.' >other
	chmod 600 secret other
	serve region --create --size 1M --secret-file secret
	expect 5 'secret' "$rpma" info -S other "$where" --openmetrics
	has_line <<-END
		rpma_up\{server="$where"\} 1
		rpma_secret_refused\{server="$where"\} 1
	END
	! grep -q rpma_serve out || fail "a client without the secret sees counters"
	expect 5 'secret' "$rpma" info "$where" --openmetrics
	has_line <<<"rpma_secret_refused\\{server=\"$where\"\\} 1"
	expect_ok "$rpma" info -S secret "$where" --openmetrics
	has_line <<<"rpma_serve_refusals_total\\{server=\"$where\"\\} [1-9]"
}

test_metrics_need_a_server() {
	expect 2 'need an operand, HOST' "$rpma" info --openmetrics
	expect 2 'do not go together' "$rpma" info --openmetrics --textfile x localhost
	expect 3 'need an operand, HOST' "$rpma" info --check
}

"test_$1"
