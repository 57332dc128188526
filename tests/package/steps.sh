#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The steps in the clean system, in this order; a step with "net:" needs the mirror. system.sh runs
# each step as `steps.sh NAME` in the system, where /packages has the packages and /smoke is this
# folder.
steps=(
	net:debians_librpma
	net:our_packages_take_its_place
	programs_built_with_debians_run_with_ours
	the_loader_knows_the_libraries
	no_service_is_enabled
	services_follow_an_upgrade_and_a_removal
	documents_and_manual_pages_are_there
	the_tool_puts_and_gets
	a_program_is_built_with_pkg_config
	the_examples_are_built_where_they_are
	python_finds_the_libraries
	rping_runs_on_softrnic
	net:back_to_debians_librpma
	net:installed_without_debians_and_purged
)
[ "${BASH_SOURCE[0]}" = "$0" ] || return 0
set -euo pipefail
ours=(librpma0 librpma-dev libsoftrnic0 softrnic rpma rpma-doc librpmafile0 librpmafile-dev librpmem1 librpmem-dev rpmemd
	librpmirror0 librpmirror-dev rpmirror rpmirrord python3-rpma)
others=("${ours[@]:2}") # the packages that Debian does not have

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# wait_for COMMAND...: repeats the command until it succeeds.
wait_for() {
	for _ in $(seq 300); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	fail "waited in vain for: $*"
}

install() { apt-get -q -y --no-install-recommends install "$@"; }
version() { dpkg-query -W -f='${Version}' "$1"; }

# files: prints all files, except files of dpkg and apt, and files that the steps keep in /root.
files() {
	find / -xdev \( -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/cache -o -path /var/log -o -path /root \
		-o -path /tmp -o -path /proc -o -path /packages -o -path /smoke \) -prune -o -print | sort
}

# as_before LIST: fails unless the files are those in LIST.
as_before() {
	files | diff "$1" - >/root/difference || fail "files came or went: $(cat /root/difference)"
}

our_debs() {
	local name
	for name in "${ours[@]}"; do
		echo /packages/"$name"_*.deb
	done
}

debians_librpma() {
	apt-get -q update
	install gcc libc6-dev pkg-config libibverbs-dev librdmacm-dev rdmacm-utils
	files >/root/files.without
	install librpma-dev
	files >/root/files.debian
	version librpma0 >/root/debian.version
	cc -Wall -Werror /usr/src/which-librpma.c -o /root/old $(pkg-config --cflags --libs librpma)
	[[ $(/root/old) == */librpma.so.0\ older ]] || fail "Debian's librpma: $(/root/old)"
}

our_packages_take_its_place() {
	local name
	install $(our_debs)
	for name in "${ours[@]}"; do
		[ "$(dpkg-query -W -f='${db:Status-Status}' "$name")" = installed ] || fail "$name is not installed"
	done
	dpkg --compare-versions "$(version librpma0)" gt "$(cat /root/debian.version)" || fail "ours is not newer"
	[ -z "$(dpkg --audit)" ] || fail "$(dpkg --audit)"
	dpkg --verify "${ours[@]}"
}

programs_built_with_debians_run_with_ours() {
	[[ $(/root/old) == */librpma.so.0\ 1.4 ]] || fail "$(/root/old)"
}

the_loader_knows_the_libraries() {
	local name
	for name in librpma.so.0 libsoftrnic.so.0 librpmem.so.1 librpmirror.so.0; do
		ldconfig -p | grep "	$name (.*) => /" || fail "ldconfig does not know $name"
	done
	! ldd /usr/bin/rpma /usr/bin/rpmemd /usr/bin/rpmirror /usr/bin/rpmirrord /usr/bin/softrnic | grep "not found" || fail "a library is missing"
	! ldd /usr/lib/*/softrnic-dropin/*.so.1 | grep "not found" || fail "a library is missing"
}

no_service_is_enabled() {
	local found
	for found in rpma-serve@ rpmemd rpmirrord rpma-metrics@ rpmemd-metrics rpmirror-metrics; do
		[ -e "/lib/systemd/system/$found.service" ] || fail "there is no unit $found"
	done
	found=$(find /etc/systemd /etc/rc?.d /etc/init.d -name '*rpm*' 2>/dev/null) || :
	[ -z "$found" ] || fail "$found"
}

# stand_in DIR: replaces systemctl by a script. DIR/running has a file for each running unit,
# DIR/enabled has a file for each enabled unit, and the script records its calls in DIR/calls.
stand_in() {
	mkdir -p "$1/bin" "$1/running" "$1/enabled"
	cat >"$1/bin/systemctl" <<-END
		#!/bin/sh
		dir=$1 action=
		echo "\$*" >>\$dir/calls
		for word; do
			case \$word in
			-*) ;;
			start | restart) action=start ;;
			try-restart) action=try ;;
			stop | is-enabled | is-active) action=\$word ;;
			*.service | *.timer)
				case \$action in
				start) touch "\$dir/running/\$word" ;;
				stop) rm -f "\$dir/running/\$word" ;;
				is-enabled) [ ! -e "\$dir/enabled/\$word" ] && echo disabled && exit 1 || echo enabled ;;
				is-active) [ -e "\$dir/running/\$word" ] || exit 3 ;;
				esac
				;;
			esac
		done
	END
	chmod 755 "$1/bin/systemctl"
}

# A service that was running runs the new program after an upgrade, and is stopped by a removal. A
# service that was stopped stays stopped.
services_follow_an_upgrade_and_a_removal() {
	local name there=/root/systemd policy=/usr/sbin/policy-rc.d
	stand_in $there
	PATH=$there/bin:$PATH
	mv $policy /root/
	mkdir -p /run/systemd/system
	for name in rpmemd rpmirrord; do
		dpkg --install /packages/"$name"_*.deb # the same version, which is an upgrade, too
		[ ! -e $there/running/$name.service ] || fail "an upgrade starts $name, which is off"
		touch $there/enabled/$name.service $there/running/$name.service
		: >$there/calls
		dpkg --install /packages/"$name"_*.deb
		[ -e $there/running/$name.service ] || fail "an upgrade stops $name: $(cat $there/calls)"
		grep -q "restart.* $name.service" $there/calls || fail "after an upgrade the old $name runs: $(cat $there/calls)"
		dpkg --remove $name
		[ ! -e $there/running/$name.service ] || fail "$name runs after its removal"
		rm $there/enabled/$name.service
		dpkg --install /packages/"$name"_*.deb
		[ ! -e $there/running/$name.service ] || fail "an installation starts $name"
	done
	# The same holds for services with instances. Only systemd can list the running instances.
	: >$there/calls
	dpkg --install /packages/rpma_*.deb
	grep -q "try-restart rpma-serve@\*.service" $there/calls || fail "after an upgrade the old rpma serve runs: $(cat $there/calls)"
	dpkg --remove rpma
	grep -q "stop rpma-serve@\*.service" $there/calls || fail "rpma serve runs after its removal: $(cat $there/calls)"
	dpkg --install /packages/rpma_*.deb
	rm -r /run/systemd
	mv /root/policy-rc.d $policy
}

documents_and_manual_pages_are_there() {
	local page
	for page in 1/rpma.1 1/rpma-serve.1 1/softrnic.1 3/rpma_write.3 3/rpmem_persist.3 7/librpma.7 7/librpmem.7 5/rpmem-poolset.5 1/rpmemd.1 3/rpmirror_flush.3 7/librpmirror.7 1/rpmirror.1 1/rpmirrord.1 5/rpmemd.conf.5 5/rpmirrord.conf.5 7/softrnic.7 7/softrnic-verbs.7; do
		[ -s "/usr/share/man/man$page.gz" ] || fail "there is no $page"
	done
	for page in README.md doc/tutorial.md examples/connect.c contrib/prometheus/rules.yml contrib/grafana/rpmirror.json; do
		[ -s "/usr/share/doc/rpma/$page" ] || fail "there is no $page"
	done
}

the_tool_puts_and_gets() {
	cd "$(mktemp -d)"
	rpma serve --create --size 16M pool >serve.out 2>&1 &
	local server=$!
	wait_for rpma ls localhost
	rpma put /usr/bin/rpma localhost:pool
	rpma get localhost:pool copy
	cmp -n "$(stat -c %s /usr/bin/rpma)" /usr/bin/rpma copy || fail "what came back differs"
	cmp -n "$(stat -c %s /usr/bin/rpma)" /usr/bin/rpma pool || fail "the pool has something else"
	kill -INT "$server"
	wait "$server" || fail "the server ends with $?: $(cat serve.out)"
}

a_program_is_built_with_pkg_config() {
	cc -Wall -Werror /usr/src/which-librpma.c -o /root/new $(pkg-config --cflags --libs librpma)
	[[ $(/root/new) == */librpma.so.0\ 1.4 ]] || fail "$(/root/new)"
	! pkg-config --libs librpma librpmem | grep rpath || fail "flags of an installed package carry a path"
	zcat /usr/share/man/man7/librpma.7.gz >/root/librpma.7
	/usr/src/man-program.sh /root/librpma.7 >/root/manual.c
	cc -Wall -Wextra -Werror /root/manual.c -o /root/manual $(pkg-config --cflags --libs librpma)
}

the_examples_are_built_where_they_are() {
	cd /usr/share/doc/rpma/examples
	cc -Wall -D_GNU_SOURCE write-flush.c common.c $(pkg-config --cflags --libs librpma libibverbs) -o /root/write-flush
	cc -Wall rpmem-hello.c $(pkg-config --cflags --libs librpmem) -o /root/rpmem-hello
	cc -Wall mirror-kv.c $(pkg-config --cflags --libs librpmirror) -o /root/mirror-kv
	cd "$(mktemp -d)"
	/root/write-flush server 127.0.0.1 7204 page >server.out 2>&1 &
	wait_for /root/manual 127.0.0.1 7204
	[ "$(head -c 20 page)" = "hello, remote memory" ] || fail "the line is not in the server's file"
	wait $! || fail "the server ends with $?: $(cat server.out)"
}

# The second machine has no daemon, which the library must report.
python_finds_the_libraries() {
	cd "$(mktemp -d)"
	cat >both.py <<-'END'
		import threading
		import rpma, rpmirror
		with rpma.serve({"pool": "pool"}, "127.0.0.1:0", create_size=4096) as server:
		    threading.Thread(target=server.serve_forever).start()
		    with rpma.open(f"127.0.0.1:{server.port}:pool") as f:
		        f.pwrite(b"hello", 0)
		        f.sync()
		try:
		    rpmirror.map("orders")
		except rpmirror.DaemonError as error:
		    print(error)
	END
	python3 both.py | grep rpmirrord || fail "rpmirror does not say that there is no daemon"
	[ "$(head -c 5 pool)" = hello ] || fail "what rpma wrote is not in the file"
}

rping_runs_on_softrnic() {
	cd "$(mktemp -d)"
	softrnic run rping -s -a 127.0.0.1 -V -C 10 >server.out 2>&1 &
	wait_for softrnic run rping -c -a 127.0.0.1 -V -C 10
	wait $! || fail "the server ends with $?: $(cat server.out)"
}

back_to_debians_librpma() {
	local theirs
	theirs=$(cat /root/debian.version)
	install --allow-downgrades "librpma0=$theirs" "librpma-dev=$theirs" $(printf '%s- ' "${others[@]}")
	[ "$(version librpma0)" = "$theirs" ] || fail "librpma0 is $(version librpma0)"
	[[ $(/root/old) == */librpma.so.0\ older ]] || fail "Debian's librpma: $(/root/old)"
	dpkg --verify librpma0 librpma-dev
	dpkg --purge "${others[@]}"
	apt-get -q -y --purge autoremove
	as_before /root/files.debian
}

installed_without_debians_and_purged() {
	apt-get -q -y purge librpma0 librpma-dev
	install $(our_debs)
	rpma --version >/dev/null
	apt-get -q -y purge "${ours[@]}"
	apt-get -q -y --purge autoremove
	as_before /root/files.without
}

"$1"
