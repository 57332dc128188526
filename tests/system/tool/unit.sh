#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The unit for systemd.
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/lib.sh"

test_the_unit_is_one_and_gives_few_rights() {
	command -v systemd-analyze >/dev/null || exit 77
	# Makes an instance of the unit that starts the build tree's program.
	sed "s#^ExecStart=[^ ]*#ExecStart=$rpma#" "$RPMA_UNIT" >rpma-serve@pool.service
	systemd-analyze verify --man=no ./rpma-serve@pool.service >out 2>&1 || fail "verify: $(cat out)"
	! grep -q 'rpma-serve' out || fail "verify: $(cat out)"
	systemd-analyze security --offline=yes --threshold=30 ./rpma-serve@pool.service >out 2>&1 ||
		fail "security: $(cat out)"
}

# Runs the unit's command lines with the variables that systemd would set.
test_the_units_commands_make_and_serve_a_file() {
	local line
	mkdir credentials
	echo 'a secret of enough bytes' >credentials/secret
	chmod 440 credentials/secret
	export CREDENTIALS_DIRECTORY=$work/credentials RPMA_SIZE=1M RPMA_OPTIONS='--port 0'
	line=$(sed -n 's/^ExecStartPre=//p' "$RPMA_UNIT" | sed 's/%i/pool/g')
	eval "$line"
	[ "$(stat -c %s pool)" = 1048576 ] || fail "no file was made"
	echo kept | dd of=pool conv=notrunc status=none
	eval "$line"
	[ "$(head -c 4 pool)" = kept ] || fail "the file was made again"
	line=$(sed -n 's/^ExecStart=[^ ]* //p' "$RPMA_UNIT" | sed 's/%i/pool/g')
	: >serve.out
	eval "exec '$rpma' $line" >serve.out 2>serve.err </dev/null &
	server=$!
	started+=("$server")
	wait_until 20 server_is_up_or_gone
	grep -q "^serving region 'pool' at 127.0.0.1:" serve.out || fail "it does not serve"
}

"test_$1"
