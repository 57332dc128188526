# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# A set of three hosts, each with an etcd and an rpmirrord. The network of the hosts can be cut. Include this file after
# hosts.sh.
: "${RPMIRRORD:?}" "${RPMIRROR:?}" "${MIRROR_REGISTERS:?}" "${MIRROR_JUDGE:?}"
command -v etcd >/dev/null || { echo "SKIPPED: there is no etcd" && exit 77; }
names=([1]=a [2]=b [3]=c)
copies=([1]=$PWD/copy1 [2]=$PWD/copy2 [3]=$PWD/copy3)
register=etcd://10.77.0.1:2379,10.77.0.2:2379,10.77.0.3:2379
daemon_pids=() etcd_pids=() client_pids=() feeds=()
clients=0

etcd_start() { # HOST
	local i peers=''
	for i in 1 2 3; do peers+=",${names[i]}=http://10.77.0.$i:2380"; done
	start_on "$1" "etcd$1.log" etcd --name "${names[$1]}" --data-dir "etcd$1" --logger zap --log-level error \
		--listen-peer-urls "http://10.77.0.$1:2380" --initial-advertise-peer-urls "http://10.77.0.$1:2380" \
		--listen-client-urls "http://10.77.0.$1:2379" --advertise-client-urls "http://10.77.0.$1:2379" \
		--initial-cluster "${peers#,}" --initial-cluster-state new --heartbeat-interval 50 --election-timeout 500
	etcd_pids[$1]=$!
}

daemon_start() { # HOST
	cat >"conf$1" <<-CONF
		listen = 10.77.0.$1
		socket = $PWD/socket$1
		peer-timeout = 1000
		[set orders]
		member = ${names[$1]}
		data = ${copies[$1]}
		register = $register
		auto = yes
	CONF
	start_on "$1" "daemon$1.log" "$RPMIRRORD" --config "conf$1"
	daemon_pids[$1]=$!
	wait_until 20 test -S "socket$1" || fail "the daemon of host $1 does not start"
}

mirror() { # HOST COMMAND...: the tool on that host
	local host=$1
	shift
	on "$host" "$RPMIRROR" "$@" --socket "$PWD/socket$host"
}

cluster_start() { # [OPTION OF INIT...]
	local i
	hosts_start 3
	for i in 1 2 3; do etcd_start "$i"; done
	make_set() {
		on 1 "$RPMIRROR" init orders --size 8M --register "$register" --lease 3 --min-copies 1 "$@" --member "a=10.77.0.1:${copies[1]}" \
			--member "b=10.77.0.2:${copies[2]}" --member "c=10.77.0.3:${copies[3]}" >init.log 2>&1
	}
	logs+=(init.log)
	wait_until 60 make_set "$@" || fail "the set cannot be made"
	[ "$(grep -cx 'auto = yes' init.log)" = 3 ] || fail "what init prints does not survive by itself"
	for i in 2 3; do
		on "$i" "$RPMIRROR" init orders --join "${names[i]}" --register "$register" >init.log 2>&1 || fail "no copy on host $i"
	done
	for i in 1 2 3; do daemon_start "$i"; done
}

# client_start HOST: starts a process that reads and writes registers as soon as it becomes the
# primary. On a busy machine a lease can expire; the process's reads are not confirmed then, and it
# continues.
client_start() { # HOST
	clients=$((clients + 1))
	mkfifo "feed$clients"
	start_on "$1" "client$clients.log" env RPMIRROR_ON_FENCED=error "RPMIRROR_SOCKET=$PWD/socket$1" sh -c \
		'exec "$0" orders "$1" "$2" "$3" 16 2 <"$4"' "$MIRROR_REGISTERS" "history$clients" "$clients" "${SEED:-$RANDOM}" "feed$clients"
	client_pids[clients]=$!
	exec {feeds[clients]}>"feed$clients"
	private_fds+=("${feeds[clients]}")
}

client_serves() { grep -q '^serving' "client$1.log"; }
client_wait() { wait_until "${2:-60}" client_serves "$1" || fail "client $1 does not become primary: $(mirror "${3:-2}" explain orders 2>&1)"; }
client_writes() { # CLIENT COUNT: wait until that many of its writes were acknowledged
	[ "$(grep -c '^W' "history$1")" -ge "$2" ]
}
client_ended() { is_gone "${client_pids[$1]}"; }
client_end() { # CLIENT: ends it in good order
	exec {feeds[$1]}>&-
	wait_until 30 client_ended "$1" || fail "client $1 does not end"
}

# members HOST MEMBER|. true|false: prints the number of members that are in-sync (true), or are not
# (false). The tool's status has each member as: "name":"a",...,"insync":true
members() { # HOST MEMBER|. true|false: prints the number of members with this state
	mirror "$1" status orders --json 2>/dev/null | grep -oE "\"name\":\"$2\",[^{}]*\"insync\":$3" | wc -l
}
in_sync() { # HOST: the host whose tool is asked
	[ "$(members "$1" . true)" = 3 ]
}

# is_whole HOST OF THE PRIMARY: succeeds if all copies are in-sync. It readmits lost members like an
# operator, so that the test need not wait some seconds until a lost member returns by itself.
is_whole() { # HOST OF THE PRIMARY
	local name
	! in_sync "$1" || return 0
	for name in "${names[@]}"; do
		[ "$(members "$1" "$name" false)" = 0 ] || mirror "$1" resync orders "$name" >resync.log 2>&1 || :
	done
	in_sync "$1"
}

# Checks that all copies are equal, and that no read missed an acknowledged value.
judge() {
	"$MIRROR_JUDGE" history* || fail "the history is wrong"
	cmp "${copies[1]}" "${copies[2]}" || fail "copies 1 and 2 differ"
	cmp "${copies[2]}" "${copies[3]}" || fail "copies 2 and 3 differ"
}
