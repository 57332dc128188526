#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Both ends prove that they have a secret; before these proofs a client cannot reach the server's
# memory.
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/lib.sh"

make_secrets() {
	echo 'a secret of enough bytes' >secret
	printf 'a secret of enough bytes' >same
	echo 'another of enough bytes' >other
	chmod 600 secret same other
	random_file data 100000
}

test_with_the_same_secret_everything_works() {
	make_secrets
	serve region --create --size 1M --secret-file secret
	expect_ok "$rpma" put --secret-file same data "$where"
	cmp -n 100000 data region || fail "the region differs"
	expect_ok "$rpma" get --secret-file same --length 100000 "$where" back
	cmp data back || fail "the copy differs"
	expect_ok "$rpma" ping --secret-file same --count 10 "$where"
	expect_ok "$rpma" info --secret-file same "$where"
	grep -q 'has proved the secret' out || fail "info says: $(cat out)"
}

test_an_end_without_the_secret_gets_the_reason() {
	make_secrets
	cp data before
	serve region --create --size 1M --secret-file secret
	for command in "put data $where" "get $where back" "ping $where" "info $where"; do
		# shellcheck disable=SC2086 # words
		expect 5 'requires a secret: give the secret file .*--secret-file' "$rpma" $command
	done
	grep -q 'refused client 1 from 127.0.0.1: it offers no secret' serve.err ||
		fail "the server does not log the refusal"
	stop_server
	serve region
	expect 5 'serves without a secret and proves none' "$rpma" put --secret-file secret data "$where"
	grep -q 'offers a secret, and this server has none' serve.err ||
		fail "the server does not log the refusal"
}

test_different_secrets_are_reported_and_nothing_is_written() {
	make_secrets
	random_file region 1M
	cp region before
	serve region --secret-file secret
	expect 5 'the secrets differ: 127.0.0.1:[0-9]+ does not accept the proof' \
		"$rpma" put --secret-file other data "$where"
	grep -q 'does not know the secret' serve.err || fail "the server does not log the refusal"
	cmp before region || fail "the region changed"
	expect_ok "$rpma" put --secret-file secret data "$where"
}

test_a_server_that_proves_nothing_is_not_believed() {
	local mode
	make_secrets
	for mode in trusting lying; do
		"$RPMA_IMPOSTOR" "$mode" >port 2>impostor.err &
		started+=("$!")
		wait_until 20 test -s port
		case "$mode" in
		trusting) expect 5 'serves without a secret and proves none' \
			"$rpma" put -S secret data "127.0.0.1:$(cat port)" ;;
		lying) expect 5 "cannot prove this client's secret" \
			"$rpma" put -S secret data "127.0.0.1:$(cat port)" ;;
		esac
		wait "${started[-1]}" || fail "the impostor: $(cat impostor.err)"
		rm port
	done
}

test_secret_files_that_are_none_are_refused_at_both_ends() {
	make_secrets
	head -c 15 secret >short
	head -c 4097 /dev/zero >long
	printf 'exactly 16 bytes\n' >shortest
	head -c 4096 /dev/zero >longest
	cp secret open
	cp secret group
	chmod 600 short long shortest longest
	chmod 644 open
	chmod 640 group
	mkfifo -m 600 pipe
	local end
	for end in 'serve --port 0 data' 'put data 127.0.0.1:1'; do
		# shellcheck disable=SC2086 # words
		set -- $end
		expect 3 'secret file short has less than 16 bytes; .*makes a good one' "$rpma" "$@" -S short
		expect 3 'secret file long has more than 4096 bytes' "$rpma" "$@" -S long
		expect 3 'secret file open is open to others .*mode 0644.*chmod 600 open' "$rpma" "$@" -S open
		expect 3 'secret file group is open to others .*mode 0640' "$rpma" "$@" -S group
		expect 3 'secret file pipe is not a regular file' "$rpma" "$@" -S pipe
		expect 3 'cannot open secret file nope: No such file' "$rpma" "$@" -S nope
	done
	serve region --create --size 1M -S shortest
	stop_server
	serve region -S longest
}

# A service manager closes the folder of credentials as a whole; an access list on a credential
# shows as bits of the group.
test_a_credential_may_be_readable_to_its_group() {
	make_secrets
	mkdir credentials
	cp secret credentials/secret
	chmod 440 credentials/secret
	CREDENTIALS_DIRECTORY=$work/credentials
	export CREDENTIALS_DIRECTORY
	serve region --create --size 1M --secret-file "$work/credentials/secret"
	chmod 444 credentials/secret
	expect 3 'open to others' "$rpma" serve --port 0 -S "$work/credentials/secret" region
}

request() { # ACCESS REGION: a hello with an offer to prove, in hex
	printf '52504d4105%02x01%02x' "$1" "${#2}"
	printf '%s' "$2" | od -An -v -tx1 | tr -d ' \n'
}

test_names_of_regions_are_not_listed_without_a_proof() {
	local prove=5 answer
	make_secrets
	serve region --create --size 1M --secret-file secret
	for name in region wrong; do
		answer=$("$RPMA_STRANGER" 127.0.0.1 "${where##*:}" "$(request 1 "$name")")
		[ "$answer" = "$prove" ] || fail "the answer about '$name' is $answer"
	done
	expect 5 "does not serve a region 'wrong'; it serves 'region'" \
		"$rpma" put -S secret -r wrong data "$where"
}

# The client ends when the server closes the connection.
test_a_client_that_proves_nothing_is_dropped_after_a_while() {
	local begun=$SECONDS
	make_secrets
	serve region --create --size 1M --secret-file secret
	"$RPMA_STRANGER" 127.0.0.1 "${where##*:}" "$(request 2 region)" >out
	[ $((SECONDS - begun)) -ge 3 ] || fail "it was dropped at once"
	[ $((SECONDS - begun)) -le 60 ] || fail "it was dropped after $((SECONDS - begun)) s"
}

test_clients_without_a_proof_keep_no_other_out() {
	local i port strangers=()
	make_secrets
	serve region --create --size 1M --secret-file secret --verbose
	port=${where##*:}
	for ((i = 0; i < 40; i++)); do
		"$RPMA_STRANGER" 127.0.0.1 "$port" "$(request 2 region)" >"stranger$i" 2>&1 &
		strangers+=("$!")
		started+=("$!")
	done
	for ((i = 0; i < 40; i++)); do
		wait_until 60 test -s "stranger$i" || fail "a stranger got no answer"
	done
	for ((i = 0; i < 5; i++)); do
		expect_ok "$rpma" put -S secret data "$where"
	done
	wait_until 20 grep -q 'from 127.0.0.1 has not proved the secret and is closed to make room' serve.err ||
		fail "one address may have as many as it likes"
	wait "${strangers[@]}" || :
	expect_ok "$rpma" put -S secret data "$where"
}

keep() { # WHICH: the result of a write with a descriptor that lacks this right
	"$RPMA_KEEPER" "$where" secret region "$1" <go >result 2>keeper.err &
	started+=("$!")
	exec 4>go
	wait_until 20 grep -q "client $2: Connection closed" serve.err
	echo >&4
	exec 4>&-
	wait "${started[-1]}" || fail "keeper: $(cat keeper.err)"
	[ "$(cat result)" = failed ] || fail "the write: $(cat result)"
}

test_a_registration_ends_with_its_connection_and_grants_no_more_than_asked() {
	make_secrets
	mkfifo go
	random_file region 4096
	cp region before
	serve region --secret-file secret --verbose
	keep own 1
	keep old 3
	cmp before region || fail "the region changed"
}

"test_$1"
