#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# contrib/prometheus/rules.yml: Prometheus must accept the file, and each alarm must have a severity, a summary and the
# section of the operations guide with the alarm's name. usage: rules.sh SOURCE_DIR
set -euo pipefail
rules=$1/contrib/prometheus/rules.yml
bad=0
complain() {
	echo "rules.sh: $*" >&2
	bad=1
}

alarms=0
while read -r alarm severity runbook summary; do
	alarms=$((alarms + 1))
	case $severity in critical | warning) ;; *) complain "$alarm: severity '$severity'" ;; esac
	case $runbook in
	doc/operations/alarms.md#"${alarm,,}") ;;
	*) complain "$alarm: the runbook is '$runbook'" ;;
	esac
	[ "$summary" = summary ] || complain "$alarm has no summary"
done < <(awk '
	function print_alarm() { if (alarm) print alarm, severity ? severity : "-", runbook ? runbook : "-", summary }
	$2 == "alert:" { print_alarm(); alarm = $3; severity = runbook = summary = "" }
	$1 == "severity:" { severity = $2 }
	$1 == "runbook:" { runbook = $2 }
	$1 == "summary:" { summary = "summary" }
	END { print_alarm() }' "$rules")
[ "$alarms" -gt 20 ] || complain "only $alarms alarms are read"

if command -v promtool >/dev/null; then
	promtool check rules "$rules" >/dev/null || complain "promtool refuses $rules"
fi
exit $bad
