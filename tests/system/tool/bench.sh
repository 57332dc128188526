#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# rpma bench.
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/lib.sh"

works=(write_flush_visible write_flush_persistent read atomic_write writes_flush_visible
	batch_flush_visible batch_flush_persistent)

test_every_kind_of_work_has_a_row() {
	local row
	serve region --create --size 1M
	expect_ok "$rpma" bench --count 20 --size 64,4K --depth 1,4 --batch 5 --flush-every 7 "$where"
	head -n 1 out | grep -qE "^bench 127.0.0.1:[0-9]+, region 'region' \(its scratch page\), durability (file|dax)$" ||
		fail "unexpected head: $(cat out)"
	sed -n 2p out | grep -qE '^device softrnic0, CRC (on|off), polling for' ||
		fail "it does not say what carries it: $(cat out)"
	[ "$(grep -cE '^(64 bytes|4 KiB), depth (1|4)$' out)" = 4 ] || fail "not four groups: $(cat out)"
	for row in 'write \+ flush visible' 'write \+ flush persistent' 'read' \
		'7 writes \+ flush visible' 'batch of 5, visible' 'batch of 5, persistent'; do
		[ "$(grep -cE "^  $row +([0-9]+\.[0-9]{2} +){3}[0-9]+ +[0-9]+\.[0-9] +[0-9]+\.[0-9]{2}$" out)" = 4 ] ||
			fail "not four rows of '$row': $(cat out)"
	done
	[ "$(grep -c '^  atomic write of 8 bytes ' out)" = 2 ] || fail "atomic write: $(cat out)"
	[ ! -s err ] || fail "something is on stderr: $(cat err)"
}

# The numbers of a row must be consistent: the rates, the percentiles and the ratio.
test_rows_in_json_agree_with_themselves() {
	serve region --create --size 4096
	expect_ok "$rpma" bench --json --count 300 --size 1M,64 --depth 2 --batch 3 --flush-every 4 "$where"
	perl -MJSON::PP -e '
		my $all = decode_json(<STDIN>);
		my (%seen, %visible);
		die "head" unless $all->{region} eq "region" && $all->{scratch} && !$all->{wait} &&
			$all->{device} eq "softrnic0" && $all->{first_link} && $all->{link} && defined $all->{crc};
		for my $r (@{$all->{rows}}) {
			$seen{$r->{work}}++;
			my $visible = $visible{$r->{size}} //= $r->{p50_us};
			my $rate = $r->{count} * $r->{writes} / $r->{seconds};
			die "count" unless $r->{count} == 300 && $r->{depth} == 2;
			die "writes" unless $r->{writes} == ($r->{work} =~ /^batch/ ? 3 : $r->{work} =~ /^writes/ ? 4 : 1);
			die "percentiles" unless 0 < $r->{p50_us} && $r->{p50_us} <= $r->{p99_us} && $r->{p99_us} <= $r->{p999_us};
			die "rate" unless abs($r->{ops_s} / $rate - 1) < 0.01;
			die "bytes" unless abs($r->{bytes_s} / $r->{size} / $rate - 1) < 0.01;
			die "ratio" unless $r->{work} eq "atomic_write" || abs($r->{ratio} / ($r->{p50_us} / $visible) - 1) < 0.05;
		}
		for (@ARGV) {
			die $_ unless $seen{$_} == ($_ eq "atomic_write" ? 1 : 2);
		}' "${works[@]}" <out || fail "unexpected: $(cat out)"
}

processor_ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

test_waiting_takes_no_processor_while_the_server_is_silent() {
	local bench before
	serve region --create --size 1M
	expect_ok "$rpma" bench --wait --count 20 --work read --size 8 --depth 1 "$where"
	grep -q 'waiting for completions' out || fail "says: $(cat out)"
	"$rpma" bench --wait --duration 60 --work read --size 8 --depth 1 "$where" >out 2>err &
	bench=$!
	started+=("$bench")
	wait_until 20 client_is_connected
	kill -STOP "$server"
	sleep 0.5
	before=$(processor_ticks "$bench")
	sleep 1
	[ $(($(processor_ticks "$bench") - before)) -lt 10 ] || fail "it uses the processor while it waits"
}

test_crc_is_reported() {
	SOFTRNIC_CRC=on serve region --create --size 1M
	expect_ok "$rpma" bench --count 5 --work read --size 8 --depth 1 "$where"
	grep -q 'CRC on' out || fail "says: $(cat out)"
}

# The report must name the links that carried the rows, even if the connection left TCP between two
# rows.
test_the_link_that_carried_it_is_reported() {
	serve region --create --size 1M
	SOFTRNIC_SHM=0 expect_ok "$rpma" bench --count 5 --work read --size 8 --depth 1 "$where"
	[ "$(tail -n 1 out)" = "link tcp" ] || fail "says: $(cat out)"
	expect_ok "$rpma" bench --count 5 --work read --size 8 --depth 1 "$where"
	tail -n 1 out | grep -qxE 'link (tcp, then )?shm' || fail "says: $(cat out)"
	stop_server
	export SOFTRNIC_SHM_AFTER=20000 # number of messages: more than the bench sends before its rows
	serve region
	expect_ok "$rpma" bench --count 30000 --work read --size 8 --depth 16 "$where"
	[ "$(tail -n 1 out)" = "link tcp, then shm" ] || fail "says: $(cat out)"
}

test_a_duration_ends_a_row() {
	serve region --create --size 1M
	expect_ok timeout 60 "$rpma" bench --json --duration 1 --work read --size 8 --depth 1 "$where"
	perl -MJSON::PP -e '
		my ($row, $more) = @{decode_json(<>)->{rows}};
		die "rows" if $more || $row->{work} ne "read";
		die "time" unless $row->{seconds} >= 1 && $row->{count} > 1;
		die "ratio" if exists $row->{ratio};' out || fail "unexpected: $(cat out)"
}

test_the_region_is_left_alone() {
	random_file region 64K
	cp region before
	serve region
	expect_ok "$rpma" bench --count 5 --size 8,1M --depth 1,8 "$where:region"
	cmp before region || fail "the region changed"
	[ "$(find . -name '*region*' | wc -l)" = 1 ] || fail "something is left beside the file"
	expect 5 "larger than the server's scratch page of 1048576 bytes; --overwrite" \
		"$rpma" bench --size 64,1048577 "$where"
}

test_a_region_is_overwritten_when_that_is_asked_for_by_name() {
	serve pool --create --size 4M
	random_file data 5000
	expect_ok "$rpma" put data "$where"
	expect 2 "overwrite needs the region's name" "$rpma" bench --overwrite "$where"
	expect_ok "$rpma" ls "$where"
	grep -qE '^pool .* 5000 ' out || fail "the file is not there any more: $(cat out)"
	expect_ok "$rpma" bench --overwrite --count 4 --size 2M --depth 1,2 "$where:pool"
	head -n 1 out | grep -q "region 'pool', durability" || fail "unexpected head: $(cat out)"
	expect_ok "$rpma" ls "$where"
	! grep -qE '^pool .* 5000 ' out || fail "the lost file is still listed: $(cat out)"
	[ "$(head -c 5000 pool | tr -d Z | wc -c)" = 0 ] || fail "the region does not hold what was written"
	expect 5 "larger than region 'pool' of 4194304 bytes" \
		"$rpma" bench --overwrite --size 4194305 "$where:pool"
}

test_persistence_is_not_claimed_for_volatile_memory() {
	local name=/dev/shm/rpma-test-$$
	[ "$(stat -f -c %T /dev/shm)" = tmpfs ] || fail "/dev/shm is no tmpfs here"
	head -c 1M /dev/zero >"$name"
	# shellcheck disable=SC2064 # the name is known now
	trap "rm -f $name $name.rpma; cleanup" EXIT
	serve "$name" --allow-volatile
	expect_ok "$rpma" bench --count 5 --size 8 --depth 1 "$where"
	grep -q 'durability volatile$' out || fail "says: $(cat out)"
	[ "$(grep -c 'persistent  *not possible: the server cannot persist this memory$' out)" = 2 ] ||
		fail "says: $(cat out)"
	expect_ok "$rpma" bench --json --count 5 --size 8 --depth 1 "$where"
	! grep -q persistent out || fail "JSON has a persistent row: $(cat out)"
}

test_failures_have_the_exit_codes_of_all() {
	expect 4 'refused the connection' "$rpma" bench 127.0.0.1:1
	serve region --create --size 1M
	expect 5 "does not serve a region 'other'" "$rpma" bench "$where:other"
	"$rpma" bench --duration 60 --work read "$where" >/dev/null 2>bench.err &
	local bench=$!
	started+=("$bench")
	wait_until 20 client_is_connected
	! is_gone "$bench" || fail "it ended by itself: $(cat bench.err)"
	kill_server
	rc=0
	wait "$bench" || rc=$?
	[ "$rc" = 1 ] || fail "it ends with $rc after the server was killed: $(cat bench.err)"
	[ "$(wc -l <bench.err)" = 1 ] || fail "not one line: $(cat bench.err)"
}

client_is_connected() {
	kill -USR1 "$server"
	grep -q 'total, 1 clients now' serve.out
}

test_the_bar_appears_on_a_terminal_only() {
	serve region --create --size 1M
	script -qec "'$rpma' bench --duration 1 --work read --size 8,64 --depth 1 $where" /dev/null </dev/null >terminal
	grep -q 'bench \[.*%.*ETA' terminal || fail "no bar on the terminal: $(cat terminal)"
	! grep -q 'MiB/s' terminal || fail "a rate of a time: $(cat terminal)"
	grep -q '64 bytes, depth 1' terminal || fail "no table on the terminal: $(cat terminal)"
}

"test_$1"
