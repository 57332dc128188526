#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Applications and daemons come to each point at which a process can be killed (core/killpoint.h) that
# the tests of the metadata alone do not reach: no point is a name only.
set -euo pipefail
: "${KILLPOINTS:?} ${MIRROR_TEST:?}"

log=$(mktemp)
trap 'rm -f "$log" "$log.out"' EXIT
if ! MIRROR_KILL_LOG=$log "$MIRROR_TEST" >"$log.out" 2>&1; then
	cat "$log.out"
	exit 1
fi
missed=$(comm -23 <("$KILLPOINTS" --elsewhere | sort) <(sort -u "$log"))
[ -z "$missed" ] || { echo "not reached: $missed" && exit 1; }
