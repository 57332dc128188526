#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Upgrades and downgrades three hosts while a mirror set, an rpmemd pool and a served file are in use. Each host is a
# copy of one system in a separate network namespace. upgrade.sh starts this script in namespaces that end with it.
# usage: upgrade-hosts.sh ROOT PACKAGES HERE
set -euo pipefail
base=$1 packages=$2 here=$3
hosts=$base.hosts
mkdir -p "$hosts"
clean_up() {
	umount --recursive --lazy "$hosts"/*/root
	rm -rf --one-file-system "$hosts"
}
trap clean_up EXIT
exec </dev/null

fail() {
	echo "upgrade: FAILED: $*" >&2
	tail -n 20 "$hosts"/*.log "$hosts"/*/root/var/log/*.journal >&2 || :
	exit 1
}
passed() { printf 'upgrade: %s: passed (%s s)\n' "$*" $((SECONDS - begin)) && begin=$SECONDS; }
begin=$SECONDS

wait_for() { # SECONDS COMMAND...
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || fail "waited in vain for: $*"
		sleep 0.2
	done
}

# become HOST COMMAND...: replaces the calling shell by the command, so that $! is the command's
# process.
become() {
	local host=$1
	shift
	exec ip netns exec "$host" chroot "$hosts/$host/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive RPMEM_ENABLE_SOCKETS=1 RPMEM_SECRET_FILE=/root/secret "$@"
}
on() { (become "$@"); }
must() { on "$@" >"$hosts/must.log" 2>&1 || fail "on $*"; }

# --- hosts ------------------------------------------------------------------------------------

mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns
ip link set lo up
ip link add switch type bridge
ip link set switch up
number=0
for host in a b c; do
	number=$((number + 1))
	dir=$hosts/$host
	mkdir -p "$dir"/{upper,work,root,pm}
	mount -t overlay overlay -o "lowerdir=$base,upperdir=$dir/upper,workdir=$dir/work" "$dir/root"
	mkdir -p "$dir"/root/{packages,load,pm,run/systemd/system,dev/shm}
	mount -t proc proc "$dir/root/proc"
	mount -t tmpfs tmpfs "$dir/root/dev/shm"
	mount --bind -o ro "$packages" "$dir/root/packages"
	mount --bind -o ro "$here" "$dir/root/load"
	mount --bind "$dir/pm" "$dir/root/pm"
	ip netns add $host
	ip link add to-$host master switch type veth peer name eth0 netns $host
	ip link set to-$host up
	ip -n $host link set lo up
	ip -n $host link set eth0 up
	ip -n $host address add 192.0.2.$number/24 dev eth0
	become $host etcd --name $host --data-dir /root/etcd --logger zap --log-level error \
		--listen-peer-urls http://192.0.2.$number:2380 --initial-advertise-peer-urls http://192.0.2.$number:2380 \
		--listen-client-urls http://192.0.2.$number:2379 --advertise-client-urls http://192.0.2.$number:2379 \
		--initial-cluster a=http://192.0.2.1:2380,b=http://192.0.2.2:2380,c=http://192.0.2.3:2380 >"$hosts/etcd-$host.log" 2>&1 &
done
wait_for 60 on a curl -sf http://192.0.2.1:2379/health

# --- the first set, a served file on b, a pool on c, as the units describe it --------------------

register=etcd://192.0.2.1:2379,192.0.2.2:2379,192.0.2.3:2379
must a rpmirror init orders --size 8M --register $register \
	--member a=192.0.2.1:/pm/orders --member b=192.0.2.2:/pm/orders --member c=192.0.2.3:/pm/orders
must b rpmirror init orders --join b --register $register
must c rpmirror init orders --join c --register $register
number=0
for host in a b c; do
	number=$((number + 1))
	root=$hosts/$host/root
	mkdir -p "$root"/etc/{rpmirror,rpmemd,rpma}
	cat >"$root/etc/rpmirror/rpmirrord.conf" <<-CONF
		listen = 192.0.2.$number
		[set orders]
		member = $host
		data = /pm/orders
		register = $register
		auto = yes
	CONF
	(umask 077 && echo 'a secret of this test, not of others' | tee "$root/root/secret" "$root/etc/rpmemd/secret" >"$root/etc/rpma/pool.secret")
	must $host systemctl enable --now rpmirrord
done
printf 'RPMA_SIZE=8M\nRPMA_OPTIONS=--addr 192.0.2.2\n' >"$hosts/b/root/etc/rpma/pool.conf"
echo 'listen = 192.0.2.3' >"$hosts/c/root/etc/rpmemd/rpmemd.conf"
must b systemctl enable --now rpma-serve@pool
must c systemctl enable --now rpmemd
printf 'PMEMPOOLSET\n32M /var/lib/rpmemd/hello.part\n' >"$hosts/c/root/var/lib/rpmemd/hello.set"
must a rpmem-hello create rpma://192.0.2.3 hello.set 'edition 0'
passed "three hosts have a mirror set, a pool and a served file"

# --- load -----------------------------------------------------------------------------------------

load() { # HOST NAME ARGUMENTS...
	local host=$1 name=$2
	shift 2
	become "$host" python3 -B /load/load.py "$@" >"$hosts/$name.log" 2>&1 &
	loads[$name]=$!
}
declare -A loads=()
load a mirror-a mirror orders /root/mirror.words
wait_for 60 on a rpmirror wait orders --until primary=a,health=healthy --timeout 1
load b mirror-b mirror orders /root/mirror.words # waits for the role
load a file file 192.0.2.2:pool /root/secret /root/file.words
# This load writes one edition of the pool after the other, and the number of the last durable
# edition to a file.
become a sh -c 'i=0; while i=$((i + 1)); do
	[ -e /root/stop ] && exit
	rpmem-hello open rpma://192.0.2.3 hello.set "edition $i" && echo $i >/root/edition.new && mv /root/edition.new /root/edition
	sleep 0.05
done' >"$hosts/pool.log" 2>&1 &
loads[pool]=$!

count() { wc -l <"$hosts/$1/root/root/$2.words"; }
more_than() { [ "$(count "$1" "$2")" -gt "$3" ]; } # HOST NAME COUNT
edition() { cat "$hosts/a/root/root/edition" 2>/dev/null || echo 0; }
edition_after() { [ "$(edition)" -gt "$1" ]; }
# flows HOST: each load must make progress, with the mirror's primary on that host.
flows() {
	local mirror file pool
	mirror=$(count "$1" mirror) file=$(count a file) pool=$(edition)
	wait_for 30 more_than "$1" mirror $((mirror + 20))
	wait_for 60 more_than a file $((file + 20))
	wait_for 60 edition_after $((pool + 1))
}
wait_for 30 more_than a mirror 0
wait_for 30 more_than a file 0
flows a

# --- upgrade and downgrade ----------------------------------------------------------------------------

version() { dpkg-deb -f "$(ls "$packages/$1"rpmirrord_*.deb)" Version; } # FOLDER/
first=$(version '')
second=$(version next/)
dpkg --compare-versions "$second" gt "$first" || fail "version $second is not newer than $first"

main_pid() { cat "$hosts/$1/root/run/units/$2.main"; } # HOST SERVICE
services() { # HOST: those that run there
	case $1 in
	a) echo rpmirrord ;;
	b) echo rpmirrord rpma-serve@pool ;;
	c) echo rpmirrord rpmemd ;;
	esac
}
# install FOLDER/ HOST: installs the packages of that version on the host. Afterwards the services
# must run with the installed programs.
install() {
	local service host=$2 old
	declare -A old=()
	for service in $(services "$host"); do
		old[$service]=$(main_pid "$host" "$service")
	done
	on "$host" sh -c 'cd "/packages/$1" && dpkg --install librpma0_*.deb libsoftrnic0_*.deb rpma_*.deb librpmafile0_*.deb librpmem1_*.deb \
		rpmemd_*.deb librpmirror0_*.deb rpmirror_*.deb rpmirrord_*.deb python3-rpma_*.deb' sh "$1" >"$hosts/dpkg.log" 2>&1 ||
		fail "dpkg --install on $host: $(tail -n 5 "$hosts/dpkg.log")"
	[ -z "$(on "$host" dpkg --audit)" ] || fail "dpkg --audit on $host"
	[ "$(on "$host" dpkg-query -W -f='${Version}' rpmirrord)" = "$(version "$1")" ] || fail "$host has not version $(version "$1")"
	for service in $(services "$host"); do
		on "$host" systemctl is-active "$service" >/dev/null || fail "$service does not run on $host after the installation"
		[ "$(main_pid "$host" "$service")" != "${old[$service]}" ] || fail "the old $service runs on $host"
		[[ $(readlink "/proc/$(main_pid "$host" "$service")/exe") != *deleted* ]] || fail "$service on $host is a removed program"
	done
	[ "$host" = c ] || ! on "$host" systemctl is-active rpmemd >/dev/null || fail "the installation starts rpmemd on $host, where it is off"
	on "$host" rpmirrord --version | grep -qF "$(version "$1" | sed 's/-[^-]*$//')" || fail "rpmirrord on $host has another version"
}
# rolling FOLDER/ PRIMARY HOST...: upgrades one host after the other, each only when the set is
# healthy.
rolling() {
	local folder=$1 primary=$2 host
	shift 2
	for host; do
		install "$folder" "$host"
		wait_for 60 on "$primary" rpmirror wait orders --until "health=healthy,primary=$primary" --timeout 1
		flows "$primary"
	done
}

app=${loads[mirror-a]}
rolling next/ a c b a
kill -0 "$app" || fail "the application on a has ended: $(cat "$hosts/mirror-a.log")"
passed "upgrade to $second, host by host, below running applications"

# The application starts again with the new library while another host serves.
must a rpmirror demote orders
wait_for 60 more_than b mirror 0
wait "$app" && fail "the application of the former primary ends with success, and was demoted" || :
on a python3 -B /load/load.py check /root/mirror.words /pm/orders >"$hosts/check.log" || fail "after the change of the primary"
rm "$hosts/a/root/root/mirror.words"
load a mirror-a mirror orders /root/mirror.words # waits
flows b
passed "the role goes to b, whose application and library are of $second"

rolling '' b a c b
grep -q 'downgrading rpmirrord' "$hosts/dpkg.log" || fail "dpkg names no downgrade: $(cat "$hosts/dpkg.log")"
passed "downgrade to $first, host by host, below running applications"

# --- the acknowledged words are present -------------------------------------------------------------------

touch "$hosts/a/root/root/stop"
kill_load() { # NAME
	kill -TERM "${loads[$1]}"
	wait "${loads[$1]}" || fail "the load $1 ends with $?: $(cat "$hosts/$1.log")"
}
kill "${loads[mirror-a]}" 2>/dev/null || :
kill_load mirror-b
kill_load file
wait "${loads[pool]}" || fail "the load of the pool ends with $?"
for host in a b c; do
	ln -f "$hosts/$host/pm/orders" "$hosts/$host/pm/orders.checked"
	cp "$hosts/b/root/root/mirror.words" "$hosts/$host/pm/words"
	said=$(on $host python3 -B /load/load.py check /pm/words /pm/orders) || fail "the copy of $host lacks acknowledged words"
done
echo "upgrade: mirror: ${said% *} words acknowledged and on each host, longest pause ${said#* } s"
cp "$hosts/a/root/root/file.words" "$hosts/b/pm/words"
said=$(on b python3 -B /load/load.py check /pm/words /var/lib/rpma/pool/pool) || fail "the served file lacks acknowledged words"
echo "upgrade: file: ${said% *} words acknowledged and in the file, longest pause ${said#* } s"
said=$(on a rpmem-hello open rpma://192.0.2.3 hello.set) || fail "the pool cannot be opened: $said"
said=${said##* }
[ "$said" -ge "$(edition)" ] || fail "the pool has edition $said, and $(edition) was acknowledged"
echo "upgrade: pool: $(edition) editions acknowledged, $said is there"
passed "nothing acknowledged is lost"

# --- removal and purge ----------------------------------------------------------------------------------------

ours=(librpma0 libsoftrnic0 rpma librpmafile0 librpmem1 rpmemd librpmirror0 rpmirror rpmirrord python3-rpma)
for host in b c; do
	must $host dpkg --remove "${ours[@]}"
	for service in $(services $host); do
		[ ! -e "$hosts/$host/root/run/units/$service.pid" ] || fail "$service runs on $host after its removal"
	done
	must $host dpkg --purge "${ours[@]}"
	found=$(on $host find / -xdev \( -path /proc -o -path /packages -o -path /load -o -path /pm -o -path /var/log -o -path /var/cache \
		-o -path /root -o -path /run \) -prune -o \( -name '*rpma*' -o -name '*rpmem*' -o -name '*rpmirror*' -o -name '*softrnic*' \) -print | LC_ALL=C sort)
	# A package must not delete the administrator's files and the served files.
	expected=$(printf '%s\n' /etc/rpma /etc/rpmemd /etc/rpmirror /etc/rpmirror/rpmirrord.conf /usr/bin/rpmem-hello)
	case $host in
	b) expected+=$'\n'$(printf '%s\n' /etc/systemd/enabled/{rpma-serve@pool,rpmirrord} /var/lib/rpma /var/lib/rpma/pool/pool.rpma) ;;
	c) expected+=$'\n'$(printf '%s\n' /etc/rpmemd/rpmemd.conf /etc/systemd/enabled/{rpmemd,rpmirrord} /var/lib/rpmemd) ;;
	esac
	diff <(LC_ALL=C sort <<<"$expected") <(echo "$found") >&2 || fail "after the purge on $host (>) there is not what is to stay (<)"
	[ -s "$hosts/$host/pm/orders" ] || fail "the purge on $host deletes the copy"
done
[ -s "$hosts/b/root/var/lib/rpma/pool/pool" ] && [ -s "$hosts/c/root/var/lib/rpmemd/hello.part" ] || fail "the purge deletes files that were served"
passed "removal stops the services, and a purge leaves data and configurations"
touch "$base.passed"
