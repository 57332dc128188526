#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The unit of rpmirrord, and the properties that all units have in common. The units of rpma serve and rpmemd also have
# tests in the folders of these programs.
# shellcheck source=tests/system/lib/processes.sh
. "$(dirname "$0")/../lib/processes.sh"

test_rpmirrords_unit_is_one_and_gives_few_rights() {
	command -v systemd-analyze >/dev/null || exit 77
	sed "s#^ExecStart=[^ ]*#ExecStart=$RPMIRRORD#" "$RPMIRRORD_UNIT" >rpmirrord.service
	systemd-analyze verify --man=no ./rpmirrord.service >out 2>&1 || fail "verify: $(cat out)"
	! grep -q 'rpmirrord' out || fail "verify: $(cat out)"
	systemd-analyze security --offline=yes --threshold=30 ./rpmirrord.service >out 2>&1 ||
		fail "security: $(cat out)"
}

# systemd accepts a report only from the daemon itself, so the daemon must be the main process,
# without a shell around it.
test_every_unit_waits_for_the_daemons_own_report() {
	local unit
	for unit in "$RPMA_SOURCE"/contrib/systemd/*.service.in; do
		grep -qx 'Type=notify' "$unit" || fail "$unit does not wait for READY"
		grep -q '^ExecStart=@CMAKE_INSTALL_FULL_BINDIR@/rpm' "$unit" || fail "$unit starts something else"
		! grep -q '^NotifyAccess=' "$unit" || fail "$unit lets others report"
	done
}

"test_$1"
