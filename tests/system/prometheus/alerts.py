#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
alerts.py URL NAME [LABEL=VALUE...]: exits with 0 if this alarm fires at that Prometheus with these labels.
alerts.py URL: prints the firing alarms and the pending alarms.
"""
import json
import sys
import urllib.request


def alerts(url):
    with urllib.request.urlopen(f"{url}/api/v1/alerts", timeout=5) as answer:
        return json.load(answer)["data"]["alerts"]


def main():
    found = alerts(sys.argv[1])
    if len(sys.argv) == 2:
        for alert in found:
            print(alert["state"], alert["annotations"].get("summary", "?"), alert["labels"])
        return 0
    want = dict(word.split("=", 1) for word in sys.argv[3:])
    want["alertname"] = sys.argv[2]
    return 0 if any(alert["state"] == "firing" and want.items() <= alert["labels"].items() for alert in found) else 1


sys.exit(main())
