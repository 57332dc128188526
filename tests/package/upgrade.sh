#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Upgrades three hosts with a mirror set, a pool of rpmemd and a served file under load, one after the other, and
# downgrades them again. The next version is the same source with a raised version number.
# usage: upgrade.sh PACKAGES_DIR [WORD]      with WORD "again" the second version's packages are there already
set -euo pipefail
packages=$(realpath "${1:?usage: upgrade.sh PACKAGES_DIR [again]}")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/clean.sh"
ls "$packages"/rpmirrord_*.deb >/dev/null || die "there are no packages in $packages"
next=$packages/next

# Build in the folder of the first packages, which still has their objects. So only files that
# contain the version are built again.
build_next() {
	local begin=$SECONDS version
	rm -rf "$next"
	mkdir "$next"
	cd "$packages/rpma"
	[ -e contrib/debian ] || ln -s ../debian contrib/debian # the folder in which version.sh expects it
	version=$(contrib/release/version.sh .)
	version=${version%.*}.$((${version##*.} + 1))
	contrib/release/version.sh . set "$version"
	{ dh_clean && dpkg-buildpackage --build=binary --no-sign --no-pre-clean; } >"$packages/test.log" 2>&1 || {
		tail -n 30 "$packages/test.log" >&2
		die "FAILED: the next version's packages are not built; see $packages/test.log"
	}
	mv "$packages"/*[_a]"$version"-*.deb "$next/"
	rm -f "$packages"/*_"$version"-*.{changes,buildinfo}
	cd - >/dev/null
	printf 'the packages of version %s are built: passed (%s s)\n' "$version" $((SECONDS - begin))
}
[ "${2:-}" = again ] || build_next

new_system
cc -Wall -I"$here/../../include" "$here/../../examples/rpmem-hello.c" -o "$root/usr/bin/rpmem-hello" \
	-L"$(dirname "$(ls "$packages"/rpma/debian/librpmem1/usr/lib/*/librpmem.so.1)")" -l:librpmem.so.1 -Wl,--allow-shlib-undefined
install "$here/../system/operations/systemctl.py" "$root/usr/bin/systemctl"
step 600 "three hosts: the first version is installed" sh -ec '
	apt-get -q update
	apt-get -q -y --no-install-recommends install etcd-server curl procps python3 /packages/librpma0_*.deb /packages/libsoftrnic0_*.deb \
		/packages/rpma_*.deb /packages/librpmafile0_*.deb /packages/librpmem1_*.deb /packages/rpmemd_*.deb \
		/packages/librpmirror0_*.deb /packages/rpmirror_*.deb /packages/rpmirrord_*.deb /packages/python3-rpma_*.deb
	[ -z "$(ls /etc/systemd/system/multi-user.target.wants 2>/dev/null)" ]'
rm "$root/usr/sbin/policy-rc.d" # services start from here on

limit=400
# The first process of the namespace only waits, and reaps processes that the hosts leave behind.
timeout --kill-after=10 $limit unshare --mount --pid --fork --kill-child --net --mount-proc bash -c '"$@"; exit $?' first \
	"$here/upgrade-hosts.sh" "$root" "$packages" "$here" || die "FAILED: upgrade-hosts.sh ends with $? (its limit is $limit s)"
rm "$root.passed" || die "FAILED: upgrade-hosts.sh has not come to its end"
