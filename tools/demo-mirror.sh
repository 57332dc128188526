#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Demonstrates a mapped file on three hosts. The host whose program writes the file is lost. Another host continues with
# all data that was acknowledged. The lost host returns, and gets only the blocks that differ.
# The hosts are network namespaces of this machine. Each host has a real etcd, a real rpmirrord, and files on disk.
# usage: tools/demo-mirror.sh BUILD_DIR
set -euo pipefail
export LC_ALL=C

build=$(realpath "${1:?usage: demo-mirror.sh BUILD_DIR}")
kv=$build/examples/mirror-kv
daemon=$build/src/mirrord/rpmirrord
tool=$build/tools/rpmirror/rpmirror
size=64M
PATH=$PATH:/usr/sbin:/sbin

exec 3>&2 # for fail(), even while the messages of the shell itself are discarded
step=0 dir='' commands='' next='' program=''
declare -A host_pid=() address=([a]=10.77.0.1 [b]=10.77.0.2 [c]=10.77.0.3) pids=()

say() {
	step=$((step + 1))
	printf '\n\033[1m%d. %s\033[0m\n' "$step" "$*"
}
tell() { printf '   %s\n' "$*"; }
fail() {
	printf '\ndemo: FAILED: %s\n' "$*" >&3
	[ -z "$dir" ] || tail -n 5 "$dir"/*/*.log >&3 2>/dev/null || :
	exit 1
}

for program in "$kv" "$daemon" "$tool" etcd ip nsenter unshare; do
	command -v "$program" >/dev/null || fail "there is no $program"
done

# Run in separate namespaces for networks, mounts and processes, which end with this script.
if [ "${2:-}" != inside ]; then
	[ "$(id -u)" = 0 ] || exec unshare --map-root-user --net --mount --pid --fork --kill-child --mount-proc "$0" "$build" inside
	exec unshare --net --mount --pid --fork --kill-child --mount-proc "$0" "$build" inside
fi

cleanup() { [ -z "$dir" ] || rm -rf "$dir"; }
trap cleanup EXIT
dir=$(mktemp -d "$build/demo.XXXXXX")
case "$(df --output=fstype "$dir" | tail -n 1)" in
tmpfs | ramfs) fail "$dir is in memory; the demo needs a build tree on a real disk" ;;
esac

wait_until() { # SECONDS COMMAND...
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}

on() { # HOST COMMAND...
	local host=$1
	shift
	nsenter -t "${host_pid[$host]}" -n env "RPMIRROR_SOCKET=$dir/$host/socket" "$@"
}

# start HOST NAME COMMAND...: run the command in the background, with its output in HOST/NAME.log, and without the pipes
# of other programs
start() {
	local host=$1 name=$2
	shift 2
	(
		[ -z "$commands" ] || exec {commands}>&-
		[ -z "$next" ] || exec {next}>&-
		exec nsenter -t "${host_pid[$host]}" -n env "RPMIRROR_SOCKET=$dir/$host/socket" "$@"
	) >>"$dir/$host/$name.log" 2>&1 &
	pids[$host]+=" $!"
	disown "$!" # so that the shell does not report "Killed"
}

plug_in() { # HOST: connect the host to the switch
	ip link add "to-$1" master switch type veth peer name eth0 netns "${host_pid[$1]}"
	ip link set "to-$1" up
	on "$1" ip link set lo up
	on "$1" ip addr add "${address[$1]}/24" dev eth0
	on "$1" ip link set eth0 up
}

make_hosts() {
	local host
	ip link add switch type bridge
	ip link set switch up
	for host in a b c; do
		mkdir "$dir/$host"
		unshare --net sleep infinity &
		host_pid[$host]=$!
		wait_until 5 has_network "$host" || fail "no network name space"
		plug_in "$host"
	done
}

has_network() { [ "$(readlink "/proc/${host_pid[$1]}/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }

start_etcd() { # HOST
	local peers=''
	for peer in a b c; do peers+=",$peer=http://${address[$peer]}:2380"; done
	start "$1" etcd etcd --name "$1" --data-dir "$dir/$1/etcd" --logger zap --log-level error \
		--listen-peer-urls "http://${address[$1]}:2380" --initial-advertise-peer-urls "http://${address[$1]}:2380" \
		--listen-client-urls "http://${address[$1]}:2379" --advertise-client-urls "http://${address[$1]}:2379" \
		--initial-cluster "${peers#,}" --initial-cluster-state new
}

start_daemon() { # HOST
	cat >"$dir/$1/rpmirrord.conf" <<-CONF
		listen = ${address[$1]}
		socket = $dir/$1/socket
		[set orders]
		member = $1
		data = $dir/$1/orders
		register = $register
		auto = yes
	CONF
	start "$1" rpmirrord "$daemon" --config "$dir/$1/rpmirrord.conf"
	wait_until 10 test -S "$dir/$1/socket" || fail "the daemon of host $1 does not start"
}

# The program reads commands, and answers "ok" when a record is on all copies.
start_program() { # HOST
	mkfifo "$dir/$1/commands"
	# Open the named pipe in the background, because the open waits for the other end.
	start "$1" kv sh -c 'exec "$0" orders <"$1"' "$kv" "$dir/$1/commands"
	program=$!
}

register=etcd://${address[a]}:2379,${address[b]}:2379,${address[c]}:2379
printf '\033[1mA mapped file on three hosts\033[0m (%s)\n' "$dir"
make_hosts

say "Three hosts, each with an etcd and an rpmirrord; one command makes the set"
for host in a b c; do start_etcd "$host"; done
make_set() {
	on a "$tool" init orders --size "$size" --register "$register" --member "a=${address[a]}:$dir/a/orders" \
		--member "b=${address[b]}:$dir/b/orders" --member "c=${address[c]}:$dir/c/orders" >"$dir/init.log" 2>&1
}
wait_until 30 make_set || fail "$(cat "$dir/init.log")"
for host in b c; do on "$host" "$tool" init orders --join "$host" --register "$register" >>"$dir/init.log" 2>&1 || fail "$(cat "$dir/init.log")"; done
tell "$(sed -n 's/.*; once/once/p;1q' "$dir/init.log")"
for host in a b c; do start_daemon "$host"; done

say "A program on host a maps the file and writes records; 'ok' means: on the disks of all hosts"
acknowledged() { grep -c '^ok$' "$dir/a/kv.log" || :; }
has_answers() { [ "$(acknowledged)" -ge "$1" ]; }
start_program a
exec {commands}>"$dir/a/commands"
echo 'set first record' >&"$commands"
wait_until 30 has_answers 1 || fail "the program does not answer: $(cat "$dir/a/kv.log")"
on a "$tool" wait orders --until copy.b=in-sync,copy.c=in-sync --timeout 30 >"$dir/wait.log" 2>&1 || fail "$(cat "$dir/wait.log")"
on a "$tool" status orders | sed 's/^/   /'
# On host b another instance of the program waits to map the file next.
start_program b
exec {next}>"$dir/b/commands"
echo count >&"$next"
(for ((n = 1; ; n++)); do echo "set key$n value $n" || exit 0; done) >&"$commands" 2>/dev/null &
writer=$!
disown "$writer"
wait_until 30 has_answers 300 || fail "records are not acknowledged"

say "Host a is lost: its cable is pulled, and each of its processes is killed"
ip link set to-a down
kill -9 ${pids[a]} "$writer" 2>/dev/null || :
lost=$(date +%s%N)
exec {commands}>&-
commands=''
acked=$(acknowledged)
tell "$acked records had been acknowledged"

say "The program on host b goes on"
b_answers() { grep -q records "$dir/b/kv.log"; }
wait_until 60 b_answers || fail "nobody goes on: $(cat "$dir/b/kv.log")"
tell "it mapped the file $((($(date +%s%N) - lost) / 1000000)) ms later, and has $(cat "$dir/b/kv.log"); the lease of 5000 ms counts from the last time that host a renewed it"
found=$(sed -n 's/ records//p' "$dir/b/kv.log")
[ "$found" -ge "$acked" ] || fail "$acked records were acknowledged, and there are $found"
echo "get key$((acked - 1))" >&"$next"
b_has() { grep -qx "$1" "$dir/b/kv.log"; }
wait_until 10 b_has "value $((acked - 1))" || fail "an acknowledged record is missing"
tell "get key$((acked - 1)): value $((acked - 1)), the last one that was acknowledged"
on b "$tool" status orders | sed 's/^/   /'
echo 'set after failover' >&"$next"
wait_until 10 b_has ok || fail "host b cannot write"

say "Host a is back, and gets only what differs"
ip link set to-a up
pids[a]=''
start_etcd a
start_daemon a
on b "$tool" wait orders --until health=healthy,copy.a=in-sync --timeout 60 >"$dir/wait.log" 2>&1 || fail "$(cat "$dir/wait.log")"
on b "$tool" status orders | sed 's/^/   /'

say "The program ends; all three files are the same"
exec {next}>&-
next=''
is_gone() { ! kill -0 "$program" 2>/dev/null; }
wait_until 20 is_gone || fail "the program on b does not end"
cmp "$dir/a/orders" "$dir/b/orders" && cmp "$dir/b/orders" "$dir/c/orders" || fail "the copies differ"
tell "$(sha256sum "$dir"/?/orders | cut -c 1-16 | uniq -c)"

printf '\n\033[1mEvery record that was acknowledged survived the loss of its host.\033[0m (%d s)\n' "$SECONDS"
