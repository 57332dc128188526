#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# deaths.sh COUNT: causes COUNT deaths of the primary's host with its etcd, half of them with etcd's leader. Prints the
# times for which the set was not served. No acknowledged write may be missing at the end. `./dev soak mirror-deaths`
# runs it.
#
# The promise is that another host serves within the lease and a second; three of four deaths must show it. After all
# deaths another host must serve within the lease and three seconds: on a busy machine daemons, etcd or the next process
# can wait for a processor, or etcd's members can hold two elections, which no clock of the product measures.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../lib/processes.sh
. "$here/../lib/processes.sh"
# shellcheck source=../lib/hosts.sh
. "$here/../lib/hosts.sh"
# shellcheck source=cluster.sh
. "$here/cluster.sh"
lease=3 limit_ms=$((lease * 1000 + 1000)) hard_limit_ms=$((lease * 1000 + 3000))

# leads HOST: succeeds if etcd's leader is on that host, or moves the leader there.
leads() { # HOST
	on "$1" python3 - "$1" <<'PY'
import json, sys, urllib.request

def ask(host, path, body):
    url = f"http://10.77.0.{host}:2379/v3/maintenance/{path}"
    request = urllib.request.Request(url, data=json.dumps(body).encode())
    return json.load(urllib.request.urlopen(request, timeout=3))

hosts = {status["header"]["member_id"]: (host, status["leader"])
         for host in (1, 2, 3) for status in [ask(host, "status", {})]}
wanted = next(member for member, (host, _) in hosts.items() if host == int(sys.argv[1]))
leader = hosts[wanted][1]
if leader != wanted:
    if leader in hosts:
        ask(hosts[leader][0], "transfer-leadership", {"targetID": wanted})
    sys.exit(1)
PY
}
now_ms() { echo $(($(date +%s%N) / 1000000)); }

die() { # HOST CLIENT: cuts the link first, because a dead host sends nothing
	network cut "$1" '*'
	network cut '*' "$1"
	kill -9 "${client_pids[$2]}" "${daemon_pids[$1]}" "${etcd_pids[$1]}"
	wait "${client_pids[$2]}" "${daemon_pids[$1]}" "${etcd_pids[$1]}" 2>/dev/null || :
}

revive() { # HOST
	network heal '*' '*'
	rm -f "socket$1"
	etcd_start "$1"
	daemon_start "$1"
}

cluster_start --replica-timeout 1 --lease $lease
client_start 1
client_wait 1 60 1
wait_until 60 in_sync 1 || fail "not all copies are in-sync"
primary=1 good=0
for ((death = 1; death <= ${1:-20}; death++)); do
	next=$((primary % 3 + 1)) with=''
	client_start $next
	wait_until 60 client_writes $((clients - 1)) 100 || fail "nothing is written"
	if [ $((death % 2)) = 0 ]; then
		wait_until 30 leads $primary 2>/dev/null || fail "etcd's leader does not move"
		with=' with the leader of etcd'
	fi
	since=$(now_ms)
	die $primary $((clients - 1))
	client_wait "$clients" 60 $next
	took=$(($(now_ms) - since))
	[ $took -gt $limit_ms ] || good=$((good + 1))
	echo "death $death of host $primary$with: $took ms, the lease is $lease s; load $(cut -d' ' -f1 /proc/loadavg)"
	[ $took -le $hard_limit_ms ] || fail "nobody serves for $took ms, which is more than $hard_limit_ms"
	revive $primary
	wait_until 60 is_whole "$next" || fail "the copy does not return: $(mirror $next explain orders 2>&1)"
	primary=$next
done
wait_until 20 client_writes "$clients" 50 || fail "the last primary does not write"
client_end "$clients"
judge
echo "within the lease and one second: $good of $((death - 1))"
[ $((4 * good)) -ge $((3 * (death - 1))) ] || fail "only $good of $((death - 1)) are followed within $limit_ms ms"
