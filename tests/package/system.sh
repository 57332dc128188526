#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests the packages in a clean system: they are installed beside Debian's packages, used as their manual pages
# describe, and removed again. usage: system.sh PACKAGES_DIR
set -euo pipefail
packages=$(realpath "${1:?usage: system.sh PACKAGES_DIR}")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/clean.sh"
ls "$packages"/librpma0_*.deb >/dev/null || die "there are no packages in $packages"

# tutorial LIBRARY: runs each line of the library's tutorial, from the installation on.
tutorial() {
	local part script=$here/../system/tutorial/script.py
	new_system
	ln -s packages "$root/build-package"
	for part in install rest; do
		python3 "$script" "$here/../../doc/$1-tutorial.md" $part >"$root/tutorial-$part"
	done
	step 600 "the tutorial of $1: installations" sh -c 'apt-get -q update && cd / && bash /tutorial-install'
	step 300 "the tutorial of $1" --net sh -c 'mkdir -p /run/sshd && { [ ! -x /usr/sbin/sshd ] || /usr/sbin/sshd; } &&
		cd /root && bash /tutorial-rest'
}

tutorial rpmem
tutorial mirror
new_system
cp "$here"/../../cmake/{which-librpma.c,man-program.sh} "$root/usr/src/"
. "$here/steps.sh"
for name in "${steps[@]}"; do
	case $name in
	net:*) step 600 "${name#net:}" /smoke/steps.sh "${name#net:}" ;;
	*) step 300 "$name" --net /smoke/steps.sh "$name" ;;
	esac
done
