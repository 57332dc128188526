#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Checks that the alarms, the dashboard, the manual pages and the programs use the same metrics.

usage: names.py SOURCE_DIR TOOL_OUTPUT... : TOOL_OUTPUT is the output of a program with --openmetrics. Each metric in it
must be in a table of a manual page, with its type. Each metric of an alarm or a panel must be in such a table. promtool
must accept each expression of a panel, if promtool is installed.
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

METRIC = re.compile(r"\b(?:rpmirror|rpma|rpmemd)_[a-z0-9_]+\b")
PAGES = ("rpmirror.1", "rpma-info.1", "rpmemd.1")


def of_pages(source):
    names = set()
    for page in PAGES:
        found = re.findall(r"^\.It Li ((?:rpmirror|rpma|rpmemd)_\S+) Ta ", (source / "doc/man/1" / page).read_text(), re.M)
        assert found, f"{page} has no table of metrics"
        names.update(found)
    return names


def of_output(path):
    text = Path(path).read_text()
    assert text.endswith("# EOF\n"), f"{path} is not whole"
    return {re.split(r"[{ ]", line)[0] for line in text.splitlines() if not line.startswith("#")}


def of_rules(source):
    text = "\n".join(line for line in (source / "contrib/prometheus/rules.yml").read_text().splitlines()
                     if not line.lstrip().startswith("#"))
    return set(METRIC.findall(text))


def expressions(source):
    board = json.loads((source / "contrib/grafana/rpmirror.json").read_text())
    found = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(found) > 20, "the dashboard has few expressions"
    return [expr.replace("$set", ".*") for expr in found]


def check_syntax(found):
    """Checks expressions as rules, because promtool parses many rules in one call."""
    rules = "".join(f"    - record: panel:{i}\n      expr: {json.dumps(expr)}\n" for i, expr in enumerate(found))
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        file.write(f"groups:\n- name: dashboard\n  rules:\n{rules}")
        file.flush()
        done = subprocess.run(["promtool", "check", "rules", file.name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"promtool refuses an expression of the dashboard:\n{done.stdout}{done.stderr}"


def main():
    source = Path(sys.argv[1])
    documented = of_pages(source)
    found = expressions(source)
    uses = {"an alarm": of_rules(source), "the dashboard": set(METRIC.findall(" ".join(found)))}
    for path in sys.argv[2:]:
        uses[path] = of_output(path)
    for who, names in uses.items():
        unknown = sorted(names - documented)
        assert names and not unknown, f"{who} has metrics that no manual page has: {unknown}"
    written = set().union(*(uses[path] for path in sys.argv[2:]))
    missing = sorted(documented - written) if written else []
    assert not missing, f"manual pages have metrics that no program writes: {missing}"
    if shutil.which("promtool"):
        check_syntax(found)


main()
