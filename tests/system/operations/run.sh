#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Executes the commands of a page of doc/operations, on hosts that are namespaces, with the build tree installed into
# /usr/local.
# usage: run.sh PAGE BUILD_DIR [SECTION...]    the whole page, or its first section and those with such titles
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [ "$1" = host ]; then
	scratch=$3 build=$4
	# shellcheck source=tests/system/operations/hosts.sh
	. "$here/hosts.sh"
	host_init "$2"
fi
page=$(realpath "$1")
build=$(realpath "$2")
shift 2

skip() {
	echo "skipped: $*"
	exit 77
}

prepare_machine() {
	local folder
	mount --make-rprivate /
	for folder in bin sbin lib libexec include share; do
		mkdir -p "/usr/local/$folder"
		mount -t tmpfs tmpfs "/usr/local/$folder"
	done
	RPMA_INSTALL_OF_A_TEST=1 cmake --install "$build" --prefix /usr/local >/dev/null
	mount -t overlay overlay -o "lowerdir=/etc,upperdir=$scratch/etc,workdir=$scratch/work" /etc || exit 77
	ldconfig
	cp "$here/systemctl.py" /usr/local/bin/systemctl
	ln -s systemctl /usr/local/bin/journalctl
	prepare_ssh
	chmod 755 /usr/local/bin/systemctl
}

prepare_ssh() {
	ssh-keygen -q -A
	mkdir "$scratch/ssh"
	ssh-keygen -q -t ed25519 -N '' -f "$scratch/ssh/id_ed25519"
	cp "$scratch/ssh/id_ed25519.pub" "$scratch/ssh/authorized_keys"
	printf 'StrictHostKeyChecking no\nLogLevel error\n' >"$scratch/ssh/config"
}

# section TITLE: begins a section, and prints the duration of the previous section.
section() {
	section_end
	title=$1 began=$(date +%s%N)
}
section_end() {
	[ -z "${title:-}" ] || printf '%5.1f s  %s\n' "$((($(date +%s%N) - began) / 100000000))e-1" "$title"
}
report() {
	local status=$? log
	[ $status = 0 ] || {
		echo "FAILED in '${title:-}', ${block:-}; the last of each log:" >&2
		for log in "$scratch"/*/var/log/*.journal; do
			tail -n 12 "$log" | cut -c -300 | sed "s|^|$(basename "$(dirname "$(dirname "$(dirname "$log")")")") $(basename "$log" .journal): |"
		done >&2
	}
	exit $status
}

if [ -n "${OPERATIONS_SCRATCH:-}" ]; then
	export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 RPMA_PROVIDER=softrnic
	unset LD_LIBRARY_PATH
	scratch=$OPERATIONS_SCRATCH
	trap report EXIT
	. "$here/hosts.sh"
	prepare_machine
	python3 -B "$here/page.py" "$page" "$@" >"$scratch/script"
	mkdir "$scratch/etcd"
	mount -t tmpfs tmpfs "$scratch/etcd"
	switch_on
	# shellcheck source=/dev/null
	. "$scratch/script"
	exit 0
fi

[ "$(id -u)" = 0 ] || skip "namespaces need root"
for program in /usr/sbin/sshd ip cmake etcd etcdctl nsenter curl; do
	command -v "$program" >/dev/null || skip "there is no $program"
done
[[ $(command -v cmake) != */usr/local/* ]] || skip "cmake is in /usr/local"

# The folder is in the build tree, because the build tree is on a disk; memory would count as
# volatile.
scratch=$(mktemp -d "$build/operations.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/etc" "$scratch/work"
status=0
OPERATIONS_SCRATCH=$scratch unshare --mount --pid --net --fork --kill-child --mount-proc \
	bash "${BASH_SOURCE[0]}" "$page" "$build" "$@" </dev/null || status=$?
exit $status
