#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The units that write metrics: systemd must accept them, they must grant few rights, and the programs must accept their
# commands. The test executes each command unchanged, except for the folder of the file. usage: units.sh
# shellcheck source=tests/system/lib/processes.sh
. "$(dirname "$0")/../lib/processes.sh"

# shellcheck disable=SC2153 # set by CMakeLists.txt
units=$RPMA_SOURCE/contrib/prometheus
logs=(out err)
declare -A programs=([rpmirror]=$RPMIRROR [rpma]=$RPMA_TOOL [rpmemd]=$RPMEMD)

test_systemd_accepts_them_and_they_give_few_rights() {
	command -v systemd-analyze >/dev/null || exit 77
	local unit
	for unit in rpmirror-metrics rpma-metrics@ rpmemd-metrics; do
		sed 's#^ExecStart=[^ ]*#ExecStart=/bin/true#' "$units/$unit.service.in" >"$unit.service"
		cp "$units/$unit.timer" .
		systemd-analyze verify --man=no "./$unit.service" "./$unit.timer" >out 2>&1 || fail "verify: $(cat out)"
		! grep -q "$unit" out || fail "verify: $(cat out)"
		systemd-analyze security --offline=yes --threshold=30 "./$unit.service" >out 2>&1 || fail "$(tail -n 1 out)"
	done
}

# run_unit UNIT CODES...: runs the unit's command, which must end with one of the codes that count
# as success for the unit.
run_unit() {
	local unit=$1 words got=0 code
	shift
	words=$(sed -n 's/^ExecStart=@CMAKE_INSTALL_FULL_BINDIR@\///p' "$units/$unit.service.in" |
		sed "s#/var/lib/prometheus/node-exporter#$work#; s#%i#127.0.0.1:1#g; s#%S#$work#; s#\$RPMA_OPTIONS##")
	read -ra words <<<"$words"
	"${programs[${words[0]}]}" "${words[@]:1}" >out 2>err </dev/null || got=$?
	code=" 0 $(sed -n 's/^SuccessExitStatus=//p' "$units/$unit.service.in") "
	[[ $code = *" $got "* ]] || fail "the command of $unit ends with $got, which is not among$code"
}

test_their_commands_write_a_file() {
	export RPMIRROR_SOCKET=$work/none
	mkdir rpmemd
	run_unit rpmirror-metrics
	grep -qx 'rpmirror_up 0' rpmirror.prom || fail "no metric"
	run_unit rpma-metrics@
	grep -qx 'rpma_up{server="127.0.0.1:1"} 0' rpma-127.0.0.1:1.prom || fail "no metric"
	run_unit rpmemd-metrics
	grep -qx 'rpmemd_pools 0' rpmemd.prom || fail "no metric"
	[ "$(stat -c %a ./*.prom | sort -u)" = 644 ] || fail "another user cannot read them"
}

# Checks the metrics of a server, a set and pools: the alarms, the dashboard, the manual pages and
# the programs must use the same names.
test_alarms_dashboard_pages_and_programs_agree() {
	printf 'PMEMPOOLSET\n2M %s/part\n' "$work" >pool.set
	cp "$RPMA_SOURCE/tests/system/prometheus/status.json" status.answer
	sed -i "s#/pm/orders#$work#" status.answer
	mkfifo ready
	python3 "$RPMA_SOURCE/tests/system/mirror/tool_peer.py" "$work/socket" >ready &
	started+=($!)
	read -r _ <ready
	"$RPMA_TOOL" serve --port 0 --create --size 1M region >serve.out 2>err &
	started+=($!)
	wait_until 20 test -s serve.out || fail "nothing is served"
	local at
	at=$(sed -nE '1s/.* at ([^ ]*:[0-9]+): .*/\1/p' serve.out)
	"$RPMIRROR" status --openmetrics --socket "$work/socket" >om0
	"$RPMA_TOOL" info --openmetrics "$at" >om1
	"$RPMA_TOOL" info --openmetrics "$at" >om1 # with the free room: the first request started this check
	"$RPMEMD" --poolset-dir "$work" --openmetrics --listen=127.0.0.1:1 >om2
	python3 "$RPMA_SOURCE/tests/system/prometheus/names.py" "$RPMA_SOURCE" om0 om1 om2 >out 2>err || fail "names"
}

"test_$1"
