#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Executes the commands of a tutorial, with the build tree installed into /usr/local, in a separate environment: a
# network, a process and a mount namespace, with a home folder, an /etc and a /run whose changes end with it. An sshd
# runs in the environment. usage: run.sh DOCUMENT BUILD_DIR
set -euo pipefail
document=$(realpath "$1")
build=$(realpath "$2")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

skip() {
	echo "skipped: $*"
	exit 77
}

# prepare_machine SCRATCH: runs in the namespaces, and prepares the rest of the environment.
prepare_machine() {
	local scratch=$1 folder
	mount -t overlay overlay -o "lowerdir=/etc,upperdir=$scratch/etc,workdir=$scratch/work" /etc || exit 77
	mount --bind "$scratch/home" /root
	mount -t tmpfs tmpfs /run
	for folder in bin sbin lib libexec include share; do
		mkdir -p "/usr/local/$folder"
		mount -t tmpfs tmpfs "/usr/local/$folder"
	done
	RPMA_INSTALL_OF_A_TEST=1 cmake --install "$build" --prefix /usr/local >/dev/null
	ldconfig
	mount --bind /usr/local/share/doc/rpma /usr/share/doc/rpma
	mount --bind "$scratch/var-tmp" /var/tmp
	ip link set lo up
	mkdir /run/sshd
	ssh-keygen -q -A
	start_sshd
	cd /root
	make_tree
}

# sshd runs in the background for some time before it listens and writes its process id. The
# function waits for that, because an sshd that listens later would be mistaken for a document's
# program.
start_sshd() {
	local tries=0
	/usr/sbin/sshd
	until [ -s /run/sshd.pid ]; do
		((++tries < 200)) || { echo "sshd does not listen" >&2; return 1; }
		sleep 0.05
	done
}

# make_tree: gives the reader the source tree's examples, and ./dev, which runs the built programs.
make_tree() {
	ln -s /usr/share/doc/rpma/examples .
	cat >dev <<-SCRIPT
		#!/bin/sh
		[ "\$1" = run ] || { echo "only ./dev run is tried here" >&2; exit 1; }
		shift
		PATH=$build/examples:\$PATH exec "\$@"
	SCRIPT
	chmod 755 dev
}

if [ "${3:-}" = inside ]; then
	export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
	unset LD_LIBRARY_PATH RPMA_PROVIDER
	script=$(mktemp "$4/script.XXXXXX")
	python3 "$here/script.py" "$document" rest >"$script"
	prepare_machine "$4"
	exec bash "$script"
fi

[ "$(id -u)" = 0 ] || skip "namespaces need root"
for program in /usr/sbin/sshd pmempool hexdump ip cmake curl etcd pkill; do
	command -v "$program" >/dev/null || skip "there is no $program"
done
[[ $(command -v cmake cc pkg-config) != */usr/local/* ]] || skip "cmake is in /usr/local"
mkdir -p /usr/share/doc/rpma # the path that packages use

# The folder is in the build tree, because the build tree is on a disk; memory would count as
# volatile.
scratch=$(mktemp -d "$build/tutorial.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir -m 700 "$scratch/home"
mkdir "$scratch/etc" "$scratch/work" "$scratch/var-tmp"
status=0
unshare --mount --pid --net --fork --kill-child --mount-proc \
	bash "${BASH_SOURCE[0]}" "$document" "$build" inside "$scratch" </dev/null || status=$?
exit $status
