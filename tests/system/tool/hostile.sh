#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Clients of `rpma serve` that try to harm other clients.
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/lib.sh"

test_no_client_takes_a_region_away_from_the_others() {
	random_file data 100000
	serve file --create --size 1M
	expect_ok "$rpma" put data "$where"
	timeout 60 "$RPMA_REVOKER" "${where##*:}" >answers || fail "the client was not served"
	[ "$(grep -c 'STag cannot be invalidated' answers)" = 3 ] || fail "answered: $(cat answers)"
	random_file data 100000
	expect_ok "$rpma" put data "$where"
	expect_ok "$rpma" get "$where" back
	cmp -n 100000 data back || fail "what was put is not what is got"
	expect_ok "$rpma" ping -c 10 "$where"
}

test_strangers_fill_no_log() {
	local begin=$SECONDS lines
	serve file --create --size 1M
	for _ in $(seq 60); do
		"$RPMA_STRANGER" 127.0.0.1 "${where##*:}" 00 >answer || fail "no answer"
	done
	lines=$(grep -c 'refused client .* sends a malformed request' serve.err)
	[ "$lines" -ge 5 ] && [ "$lines" -le $((5 * ((SECONDS - begin) / 10 + 2))) ] ||
		fail "$lines lines after $((SECONDS - begin)) s: $(tail -n 3 serve.err)"
}

"test_$1"
