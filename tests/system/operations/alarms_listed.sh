#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The alarms of contrib/prometheus/rules.yml and the sections of doc/operations/alarms.md must be the same, in the same
# order. The label runbook must lead to the section. Each section must have commands, and name the condition for the
# alarm's end.
# usage: alarms_listed.sh SOURCE_DIR
set -euo pipefail
rules=$1/contrib/prometheus/rules.yml page=$1/doc/operations/alarms.md
alarms=$(sed -n 's/^ *- alert: //p' "$rules")
diff <(echo "$alarms") <(sed -n 's/^## //p' "$page") || {
	echo "the alarms of rules.yml (<) are not the sections of alarms.md (>)" >&2
	exit 1
}
for alarm in $alarms; do
	grep -qx " *runbook: doc/operations/alarms.md#${alarm,,}" "$rules" || { echo "$alarm: the runbook leads elsewhere" >&2 && exit 1; }
	section=$(sed -n "/^## $alarm\$/,/^## /p" "$page")
	for part in '^\*\*Means:\*\*' '^```sh on ' 'Over when'; do
		grep -q -e "$part" <<<"$section" || { echo "the section of $alarm has no '$part'" >&2 && exit 1; }
	done
done
echo "$(wc -w <<<"$alarms") alarms have their sections"
