# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Hosts for the pages of doc/operations. Each host is a set of namespaces (processes, mounts, network, name) with its
# own folders for /etc, /run, /srv, /var/lib and /var/log, and a systemctl that starts the programs that the installed
# units name. All hosts are at one switch. The including script must run in separate network, process and mount
# namespaces.
: "${scratch:?a folder on a disk}" "${here:?the folder of this file}" "${build:?the build tree}"
declare -A address=([a]=192.0.2.1 [b]=192.0.2.2 [c]=192.0.2.3 [d]=192.0.2.4 [client]=192.0.2.9)
declare -A init=()

fail() {
	echo "FAILED: $*" >&2
	exit 1
}
wait_until() { # SECONDS COMMAND...
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}

switch_on() {
	ip link set lo up
	ip link add switch type bridge
	ip link set switch up
}

# host_init HOST: runs as the first process of a host. Processes of the host become its children
# when their parents end.
host_init() { # HOST
	local top=$scratch/$1 folder
	hostname "$1"
	mount -t overlay overlay -o "lowerdir=/etc,upperdir=$top/etc,workdir=$top/work" /etc
	for folder in srv root var/lib var/log; do
		mount --bind "$top/$folder" "/$folder"
	done
	mount --bind "$scratch/etcd/$1" /var/lib/etcd
	mount -t tmpfs tmpfs /run
	mkdir /run/sshd
	/usr/sbin/sshd -o PidFile=none
	# sshd listens some time after it has moved to the background.
	until [ -n "$(ss -Hlnt 'sport = :22')" ]; do sleep 0.05; done
	ip link set lo up
	touch /run/booted
	trap : CHLD
	while :; do
		sleep infinity &
		wait $! || :
	done
}

has_booted() { [ -e "/proc/$(init_of "$1")/root/run/booted" ] && [ "$(on "$1" hostname)" = "$1" ]; }
init_of() { tr -d ' ' <"/proc/${init[$1]}/task/${init[$1]}/children"; }

# make_disks HOST: makes the folders of a host; root of the host can log in at all other hosts.
# etcd's folders are in memory, which stays when a host of the test ends. On a disk that builds and
# other tests use, etcd's fdatasync would take seconds, which is longer than etcd's timeouts.
make_disks() { # HOST
	mkdir -p "$scratch/$1"/{etc/systemd/system/etcd.service.d,work,srv,root/.ssh,var/lib/etcd,var/log} "$scratch/etcd/$1"
	printf '[Service]\nEnvironment=ETCD_HEARTBEAT_INTERVAL=300\nEnvironment=ETCD_ELECTION_TIMEOUT=1500\n' \
		>"$scratch/$1/etc/systemd/system/etcd.service.d/slow-machine.conf"
	chmod 700 "$scratch/$1/root" "$scratch/$1/root/.ssh"
	cp "$scratch/ssh/"* "$scratch/$1/root/.ssh"
}

# power_on HOST...: starts the hosts with their former folders and their enabled units. Running
# hosts are not changed.
power_on() {
	local host off=()
	for host; do
		[ -n "${init[$host]:-}" ] || off+=("$host")
	done
	set -- "${off[@]}"
	for host; do
		make_disks "$host"
		unshare --net --mount --uts --pid --fork --kill-child --mount-proc bash "$here/run.sh" host "$host" "$scratch" \
			"$build" </dev/null >>"$scratch/$host.init" 2>&1 &
		init[$host]=$!
	done
	for host; do
		wait_until 10 has_booted "$host" 2>/dev/null || fail "host $host does not start: $(cat "$scratch/$host.init")"
		ip link delete "to-$host" 2>/dev/null || :
		ip link add "to-$host" master switch type veth peer name eth0 \
			address "02:00:00:00:00:0${address[$host]##*.}" netns "$(init_of "$host")"
		ip link set "to-$host" up
		on "$host" ip link set eth0 up
		on "$host" ip address add "${address[$host]}/24" dev eth0
		on "$host" systemctl boot
	done
}

# power_off HOST...: ends the hosts immediately, with all their processes.
power_off() {
	local host
	for host; do
		kill -9 "$(init_of "$host")"
		wait "${init[$host]}" 2>/dev/null || :
		init[$host]=
		ip link delete "to-$host" 2>/dev/null || :
	done
}

# new_machine HOST...: replaces each host by a host with the same name and address, and with empty
# disks.
new_machine() {
	local host
	for host; do
		rm -rf "${scratch:?}/$host" "$scratch/etcd/$host"
	done
	power_on "$@"
}

# on HOST COMMAND...: runs the command on the host.
on() {
	local host=$1
	shift
	nsenter -t "$(init_of "$host")" -n -m -u -p -- "$@"
}

pull_cable() { ip link set "to-$1" down; }
plug_in() { ip link set "to-$1" up; }

# ---- functions that the sections of a page call ----

# on_each HOSTS... reads a block of commands. Each host gets the block as if it was pasted into a
# shell: a program that reads the standard input reads the commands after it.
on_each() {
	local host commands status=0
	commands=$(cat)
	: >"$scratch/now"
	for host; do
		[ "$host" != primary ] || host=$(primary_of_orders)
		on "$host" bash -s <<-PASTED >>"$scratch/now" 2>&1 || status=$?
			set -euo pipefail; cd /root; rm -f /run/pasted
			$commands
			touch /run/pasted
		PASTED
		[ $status != 0 ] || on "$host" test -e /run/pasted || { echo "a command has taken those after it" >>"$scratch/now" && status=1; }
	done
	[ -z "${OPERATIONS_SHOW:-}" ] || sed "s/^/    /" "$scratch/now"
	return $status
}

# shows PATTERN: a line of the last block's output must match the pattern.
shows() {
	local line
	while IFS= read -r line; do
		# shellcheck disable=SC2053
		[[ $line != $1 ]] || return 0
	done <"$scratch/now"
	fail "${block:-}: no line is '$1' in:
$(cat "$scratch/now")"
}

# ---- the application "shop", which is mirror-kv with its commands from a pipe ----

shop_unit() { # HOST...
	local host
	for host; do
		mkdir -p "$scratch/$host/etc/systemd/system"
		cat >"$scratch/$host/etc/systemd/system/shop.service" <<-UNIT
			[Service]
			Type=simple
			Environment=RPMIRROR_ON_FENCED=error
			ExecStartPre=/bin/sh -c 'rm -f /run/shop; mkfifo /run/shop'
			ExecStart=/bin/sh -c 'exec $build/examples/mirror-kv orders <>/run/shop'
			Restart=always
		UNIT
	done
}

primary_of_orders() {
	local host
	for host in a b c d; do
		[ -z "${init[$host]:-}" ] || on "$host" rpmirror status orders 2>/dev/null |
			sed -n 's/.*primary \([a-d]\).*/\1/p' | head -n 1
	done | head -n 1
}

# lead HOST: the host becomes the primary in good order, and then the set must be healthy.
lead() {
	local host now
	now=$(primary_of_orders)
	[ "$now" != "$1" ] || return 0
	for host in a b c; do
		[ "$host" = "$1" ] || [ "$host" = "$now" ] || on "$host" systemctl stop shop
	done
	on "$now" rpmirror demote orders >/dev/null
	on "$1" rpmirror wait orders --until "primary=$1,phase=serving" --timeout 60 >/dev/null
	for host in a b c; do
		[ "$host" = "$1" ] || on "$host" systemctl restart shop
	done
	healthy
}
# healthy: waits until each copy is in-sync.
healthy() {
	on a rpmirror wait orders --until health=healthy,copy.a=in-sync,copy.b=in-sync,copy.c=in-sync --timeout 90 >/dev/null ||
		fail "the set is not healthy: $(on a rpmirror explain orders)"
}

stored=0
# store [COUNT]: stores COUNT orders, each of which must be acknowledged. An order is repeated while
# no application serves.
store() {
	local goal=$((stored + ${1:-1}))
	while [ "$stored" -lt "$goal" ]; do
		wait_until 60 ask_shop "set order$((stored + 1)) item$((stored + 1))" || fail "order $((stored + 1)) is not stored"
		[ "$answer" = ok ] || fail "order $((stored + 1)): $answer"
		stored=$((stored + 1))
	done
}

# ask_shop COMMAND: sets $answer to the shop's answer, or fails if no application serves now.
ask_shop() {
	local host lines log
	host=$(primary_of_orders)
	[ -n "$host" ] || return 1
	log=$scratch/$host/var/log/shop.journal
	lines=$(wc -l <"$log")
	on "$host" timeout 5 sh -c "echo '$1' >/run/shop" || return 1
	wait_until 3 has_line "$log" $((lines + 1)) || return 1
	answer=$(sed -n $((lines + 1))p "$log")
	[[ $answer != mirror-kv:* ]] # the application has lost its role
}
has_line() { [ "$(wc -l <"$1")" -ge "$2" ]; }

# all_is_there: the application must read every acknowledged order.
all_is_there() {
	local i
	for ((i = 1; i <= stored; i++)); do
		wait_until 60 ask_shop "get order$i" || fail "no application serves"
		[ "$answer" = "item$i" ] || fail "order $i, which was acknowledged, is lost: $answer"
	done
}

# equal_copies HOST HOST...: the files of the copies must be equal.
equal_copies() {
	local host
	for host in "${@:2}"; do
		cmp "$scratch/$1/srv/rpmirror/orders" "$scratch/$host/srv/rpmirror/orders" || fail "the copies of $1 and $host differ"
	done
}

# ---- failures ----

# sees HOST REGEX: within a minute 'rpmirror explain' must print such a line on that host.
sees() {
	wait_until 60 explains "$1" "$2" || fail "$1 never says '$2': $(on "$1" rpmirror explain orders 2>&1)"
}
explains() { on "$1" rpmirror explain orders 2>&1 | grep -qE "$2"; }

# stored_without HOST: the set must store orders without that host's copy.
stored_without() {
	on "$(primary_of_orders)" rpmirror wait orders --until "insync.$1=no" --timeout 60 >/dev/null || fail "$1 is not excluded"
	store 2
}

keep_backup() { cp --sparse=always "$scratch/$1/var/lib/backup/orders" "$scratch/backup"; } # HOST
give_backup() {                                                                            # HOST
	mkdir -p "$scratch/$1/var/lib/backup"
	cp --sparse=always "$scratch/backup" "$scratch/$1/var/lib/backup/orders"
}

# etcd_save, etcd_restore: make a backup of all members of etcd, and restore them from it.
etcd_save() {
	local host
	for host in a b c; do on "$host" systemctl stop etcd; done
	for host in a b c; do cp -a "$scratch/etcd/$host/default" "$scratch/etcd/$host/saved"; done
	for host in a b c; do on "$host" systemctl start --no-block etcd; done
	healthy
}
etcd_restore() {
	local host
	for host in a b c; do on "$host" systemctl stop etcd; done
	for host in a b c; do rm -r "$scratch/etcd/$host/default" && mv "$scratch/etcd/$host/saved" "$scratch/etcd/$host/default"; done
	for host in a b c; do on "$host" systemctl start --no-block etcd; done
}

# small_disk HOST: puts the host's copy on a disk of 160 MiB.
small_disk() {
	truncate -s 160M "$scratch/$1.img"
	mkfs.ext4 -q -m 0 "$scratch/$1.img"
	on "$1" systemctl stop shop rpmirrord
	on "$1" sh -c "mv /srv/rpmirror /srv/moved && mkdir /srv/rpmirror && mount -o loop '$scratch/$1.img' /srv/rpmirror &&
		cp -p /srv/moved/* /srv/rpmirror && rm -r /srv/moved"
	on "$1" systemctl start rpmirrord shop
	healthy
}
# large_disk HOST: moves the copy back to its former disk.
large_disk() {
	on "$1" systemctl stop shop rpmirrord
	on "$1" sh -c "mkdir /srv/moved && cp -p /srv/rpmirror/orders* /srv/moved && umount /srv/rpmirror && rmdir /srv/rpmirror &&
		mv /srv/moved /srv/rpmirror"
	on "$1" systemctl start rpmirrord shop
	healthy
}
fill_disk() { ! on "$1" dd if=/dev/zero of=/srv/rpmirror/ballast bs=64k 2>"$scratch/dd" || fail "the disk is not full"; }

# measure_sizes: measures the numbers of the table "Sizing" in mirror.md.
measure_sizes() {
	local host pid before sent flushes=200 value
	host=$(primary_of_orders)
	pid=$(on "$host" pidof mirror-kv)
	[ "$(stat -c %s "$scratch/$host/srv/rpmirror/orders.rpmirror")" = $((0x118000 + 7 * 4096)) ] || fail "the metadata's size"
	value=$(printf '%02000d' 0)
	before=$(touched "$host" "$pid") sent=$(sent_by "$host")
	for ((i = 0; i < flushes; i++)); do echo "set size$i $value"; done | on "$host" sh -c 'cat >/run/shop'
	wait_until 30 has_stored "get size$((flushes - 1))" "$value" || fail "the values are not stored"
	measured "bytes of touched pages for each flushed byte" $((($(touched "$host" "$pid") - before) * 100 / (flushes * 2024))) 90 130
	measured "bytes sent beside the data, each flush and copy" $((($(sent_by "$host") - sent) / flushes / 2 - 2024)) 0 1000
	measured "KiB of rpmirrord" "$(rss "$host" rpmirrord)" 1000 40000
	measured "KiB of the application" "$(rss "$host" mirror-kv)" 1000 120000
}
has_stored() { ask_shop "$1" && [ "$answer" = "$2" ]; }
measured() { # WHAT VALUE FROM TO
	echo "    measured: $1: $2"
	[ "$2" -ge "$3" ] && [ "$2" -le "$4" ] || fail "$1: $2 is not from $3 to $4"
}
touched() { # HOST PID: bytes of private pages of the mapped copy
	on "$1" awk '/^[0-9a-f]+-/ { mine = /rpmirror\/orders$/ } mine && /^Anonymous:/ { sum += $2 } END { print sum * 1024 }' "/proc/$2/smaps"
}
sent_by() { on "$1" awk '$1 == "eth0:" { print $10 }' /proc/net/dev; }
rss() { on "$1" sh -c "awk '/^RssAnon/ { print \$2 }' /proc/\$(pidof $2)/status"; }

# ---- rpma serve ----

# names HOST...: writes the names of all hosts to each host's /etc/hosts.
names() {
	local host other
	for host; do
		for other in "${!address[@]}"; do
			on "$host" sh -c "grep -qx '${address[$other]} $other' /etc/hosts || echo '${address[$other]} $other' >>/etc/hosts"
		done
	done
}
# first_of PAGE: runs the first section of the page once.
declare -A begun=()
first_of() {
	[ -z "${begun[$1]:-}" ] || return 0
	begun[$1]=yes
	python3 -B "$here/page.py" --first "$(dirname "$page")/$1" >"$scratch/first.$1"
	# shellcheck source=/dev/null
	. "$scratch/first.$1"
}
serve_begins() { first_of serve.md; }
rpmemd_begins() { first_of rpmem.md; }
# fail_a_write_back: causes a failed write-back of the region 'bad' of host a, because the region's
# disk is full.
fail_a_write_back() {
	on a sh -c 'mkdir -p /srv/thin /var/lib/rpma/bad && mount -t tmpfs -o size=4M tmpfs /srv/thin && cd /srv/thin &&
		truncate -s 16M image && mkfs.ext2 -q -b 4096 -m 0 image && mount -o loop image /var/lib/rpma/bad && cd /var/lib/rpma/bad &&
		head -c 1M /dev/zero >spacer && head -c 1M /dev/zero >bad && sync
		cp /etc/rpma/pool.secret /etc/rpma/bad.secret && echo "RPMA_OPTIONS=--addr 192.0.2.1 --port 7206" >/etc/rpma/bad.conf
		systemctl start rpma-serve@bad'
	{
		head -c 4096 /dev/urandom
		sleep 1 # the server records the claim, which needs room, too
		on a sh -c 'sync -f /var/lib/rpma/bad; cd /srv/thin; fallocate --punch-hole --offset 1M --length 15M image
			dd if=/dev/zero of=filler bs=4096 2>/dev/null' || :
		head -c $(((1 << 20) - 4096)) /dev/urandom
	} | on client rpma put --secret-file /root/pool.secret --no-verify --offset 0 - a:7206:bad >"$scratch/put" 2>&1 &&
		fail "a put into a full disk succeeds" || :
}
is_critical() { ! serves a; }
serves() { on client rpma info --check --timeout 2 --secret-file /root/pool.secret "$1" >"$scratch/serves" 2>&1; } # HOST
# small_folder HOST FOLDER: mounts a disk of 100 MiB at the folder.
small_folder() {
	truncate -s 100M "$scratch/$1.small"
	mkfs.ext4 -q -m 0 "$scratch/$1.small"
	on "$1" sh -c "mkdir -p '$2' && mount -o loop '$scratch/$1.small' '$2'"
}
has_clients() { on client rpma info --check --secret-file /root/pool.secret a | grep -q "'clients'=[$1-9]"; }
# measure_serve: measures the numbers of the table "Sizing" in serve.md.
measure_serve() {
	local before i pings=()
	before=$(rss a rpma)
	measured "KiB of rpma serve" "$before" 500 20000
	for i in {1..8}; do
		on client rpma ping --count 20000 --secret-file /root/pool.secret a >/dev/null 2>&1 &
		pings+=($!)
	done
	wait_until 10 has_clients 8 || fail "no clients to measure"
	measured "KiB of rpma serve for each client" $((($(rss a rpma) - before) / 8)) 10 1024
	kill "${pings[@]}"
	[ "$(stat -c %s "$scratch/a/var/lib/rpma/pool/pool.rpma")" -le 16384 ] || fail "the record's size"
}
