#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Executes the container files in clean systems, without a container engine: first the COPY and RUN lines, then the
# ENTRYPOINT in a separate network namespace. A client in another network namespace connects as it would connect to a
# container. usage: containers.sh PACKAGES_DIR
set -euo pipefail
packages=$(realpath "${1:?usage: containers.sh PACKAGES_DIR}")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/clean.sh"

# image FILE [PACKAGE...]: makes the system that the file describes. The additional packages are for
# the clients.
image() {
	local name
	file=$here/../../contrib/container/$1
	shift
	new_system
	mkdir "$root/copied" "$root/clients"
	for name in $(sed -nE 's#^COPY (.*) /packages/$#\1#p' "$file"); do
		# shellcheck disable=SC2086 # a pattern
		cp "$packages"/$name "$root/copied/"
	done
	sed -n '/^RUN /,/[^\\]$/p' "$file" | sed '1s/^RUN //; s#/packages#/copied#g' >"$root/container.sh"
	step 300 "$(basename "$file") installs" sh -e /container.sh
	[ ! -e "$root/copied" ] || die "the image keeps the packages"
	for name in "$@"; do
		case $name in
		*.deb) cp "$packages"/$name "$root/clients/" ;;
		*) echo "$name" ;;
		esac
	done >"$root/wanted"
	step 600 "its clients are installed" sh -ec 'apt-get -q update
		apt-get -q -y --no-install-recommends install iproute2 procps $(cat /wanted) $(find /clients -name "*.deb")'
	# Run the program as the image does, as the image's user.
	user=$(sed -n 's/^USER //p' "$file")
	python3 - "$file" ${user:+setpriv --reuid "$user" --regid "$user" --init-groups --no-new-privs} >"$root/entry" <<-'END'
		import json, re, shlex, sys
		entry = re.search(r"^ENTRYPOINT (.*)$", open(sys.argv[1]).read(), re.M).group(1)
		print('cd "${WORKDIR:-/}" && exec ip netns exec container', shlex.join(sys.argv[2:] + json.loads(entry)), '"$@"')
	END
}

# outside SECONDS NAME SCRIPT: runs the script as root of another host. That host has the address
# 10.9.9.1, the container 10.9.9.2.
outside() {
	step "$1" "$2" --net sh -euc '
		ip netns add container
		ip link add eth0 type veth peer name eth0 netns container
		ip addr add 10.9.9.1/24 dev eth0
		ip link set eth0 up
		ip netns exec container ip addr add 10.9.9.2/24 dev eth0
		ip netns exec container ip link set eth0 up
		ip netns exec container ip link set lo up
		wait_for() { i=0; until "$@" >/dev/null 2>&1; do i=$((i + 1)); [ $i -lt 300 ] || { "$@"; exit 1; }; sleep 0.1; done; }
		'"$3"
}

image Containerfile
# Take the arguments from the example in the file.
example=$(sed -nE 's/^#   podman run .* rpma (serve .*)$/\1/p' "$file")
outside 60 "a client outside puts a file into the container" "
	WORKDIR=/var/lib/rpma sh /entry $example >/serve.out 2>&1 &
	wait_for rpma ls 10.9.9.2
	rpma put /usr/bin/rpma 10.9.9.2:pool
	cmp -n \$(stat -c %s /usr/bin/rpma) /usr/bin/rpma /var/lib/rpma/pool
	[ \"\$(stat -c %U /var/lib/rpma/pool)\" = rpma ]"

image rpmirrord.Containerfile
cat >"$root/usr/local/bin/set.sh" <<'END'
mkdir -p /etc/rpmirror /register /outside
chown rpmirror: /register
printf '[set orders]\nmember = b\ndata = /pm/orders\nregister = file:/register/orders\n' >/etc/rpmirror/rpmirrord.conf
printf 'listen = 10.9.9.1\nsocket = /outside/socket\n[set orders]\nmember = a\ndata = /outside/orders\nregister = file:/register/orders\n' >/outside/conf
rpmirror init orders --size 2M --lonely manual --register file:/register/orders --member a=10.9.9.1:/outside/orders \
	--member b=10.9.9.2:/pm/orders
chmod -R a+rwX /register # the daemons run as two users, and share this register
setpriv --reuid rpmirror --regid rpmirror --init-groups rpmirror init orders --join b --register file:/register/orders
END
outside 90 "a daemon outside sees the copy in the container" '
	sh -e /usr/local/bin/set.sh
	sh /entry >/daemon.out 2>&1 &
	rpmirrord -c /outside/conf >/outside/log 2>&1 &
	wait_for rpmirror status orders --socket /outside/socket
	rpmirror wait orders --until "copy.b=empty|stale|in-sync" --socket /outside/socket --timeout 30 ||
		{ rpmirror explain orders --socket /outside/socket; cat /daemon.out; exit 1; }
	# The tool in the container must reach the daemon in the container.
	ip netns exec container setpriv --reuid rpmirror --regid rpmirror --init-groups rpmirror status orders | grep "b "'

image rpmemd.Containerfile openssh-client pmdk-tools 'librpmem1_*.deb' 'rpma_*.deb'
outside 120 "a pool outside has its replica in the container, by ssh" '
	mkdir -p -m 700 /root/.ssh /home/rpmem/.ssh
	ssh-keygen -q -t ed25519 -N "" -f /root/.ssh/id_ed25519
	cp /root/.ssh/id_ed25519.pub /home/rpmem/.ssh/authorized_keys
	printf "PMEMPOOLSET\n16M /home/rpmem/part\n" >/home/rpmem/orders.set
	chown -R rpmem: /home/rpmem
	printf "Host 10.9.9.2\n StrictHostKeyChecking accept-new\n" >/root/.ssh/config
	sh /entry >/sshd.out 2>&1 &
	wait_for ssh -p 2222 rpmem@10.9.9.2 rpmemd --version
	mkdir /pool
	printf "PMEMPOOLSET\n16M /pool/part\nREPLICA rpmem@10.9.9.2:2222 orders.set\n" >/pool/set
	export RPMEM_ENABLE_SOCKETS=1 # no RDMA hardware: the software card
	pmempool create obj /pool/set
	[ "$(stat -c %s /home/rpmem/part)" = 16777216 ]
	cp /pool/part /former
	rm /pool/part
	pmempool sync /pool/set # from the container
	[ "$(head -c 7 /pool/part)" = PMEMOBJ ]
	cmp -i 1M /pool/part /former # compares only the heap, because the headers contain times and numbers of a run
	! ssh -p 2222 root@10.9.9.2 true'
