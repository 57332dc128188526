#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# put makes the server read back the written bytes.
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/lib.sh"

test_what_was_put_is_read_back_and_verified() {
	local size
	serve region --create --size 40M
	for size in 1 4097 16777216 16777217 40000000; do
		random_file sent "$size"
		expect_ok "$rpma" put --offset 3 sent "$where"
		grep -qE 'flushed to persistence: yes, verified: blake2b, read back from (the|persistent) ' out ||
			fail "does not verify $size bytes: $(cat out)"
	done
	expect_ok "$rpma" put --no-verify sent "$where"
	grep -q 'verified: no (--no-verify)$' out || fail "claims to have verified: $(cat out)"
	expect_ok "$rpma" put --no-verify --json sent "$where"
	grep -q '"verified":false}$' out || fail "claims to have verified: $(cat out)"
	: >empty
	expect_ok "$rpma" put empty "$where"
	grep -q 'verified: no (nothing was sent)$' out || fail "claims to have verified: $(cat out)"
}

# During the put another process overwrites bytes of the served file again and again.
test_what_is_not_as_it_was_sent_fails_the_put() {
	local at
	serve region --create --size 40M
	head -c 40M /dev/zero >sent
	for at in 20000000 25000000 30000000; do
		perl -e 'open(F, "+<", "region") or die;
			while (1) { seek(F, $ARGV[0], 0); syswrite(F, "x") }' $at &
		started+=("$!")
	done
	wait_until 20 grep -q x region
	expect 1 "verification failed: the bytes from 16777216 to 33554432 of region 'region' of $where are not" \
		"$rpma" put sent "$where"
	expect_ok "$rpma" put --no-verify sent "$where"
}

"test_$1"
