# SPDX-License-Identifier: BSD-3-Clause
# Sourced by tests: makes a clean Debian in a separate folder, from the mirrors that this machine uses. `here` is this
# folder, `packages` the folder for the packages and the clean system's archive. The system's processes run in a mount
# namespace, a process namespace and, except for installations, a network namespace, which end with the test.
clean=$packages/clean.tar

die() {
	echo "package test: $*" >&2
	exit 1
}
[ "$(id -u)" = 0 ] || die "a system in a folder needs root"
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")

# The clean system contains nothing of this project, so scripts use the same archive for a day.
if [ -z "$(find "$clean" -mtime 0 2>/dev/null)" ]; then
	mirrors=$(apt-get indextargets --format '$(ORIGIN) deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		sed -n 's/^Debian //p')
	[ -n "$mirrors" ] || die "apt knows no mirror of Debian here"
	mmdebstrap --quiet --format=tar --mode=root --variant=apt "$codename" "$clean.new" - <<<"$mirrors"
	mv "$clean.new" "$clean"
fi

root=
trap '[ -z "$root" ] || rm -rf --one-file-system "$root"' EXIT
trap 'exit 1' INT TERM

new_system() {
	[ -z "$root" ] || rm -rf --one-file-system "$root"
	root=$(mktemp -d "$packages/system.XXXXXX")
	tar -x -C "$root" -f "$clean"
	# This policy keeps services from starting when their packages are installed.
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
	cp /etc/resolv.conf /etc/hosts "$root/etc/"
	mkdir -p "$root/packages" "$root/smoke"
}

# enter SECONDS [--net] COMMAND...: runs the command in the system. With --net the only network is
# loopback.
enter() {
	local limit=$1
	shift
	local namespaces=(--mount --pid --fork --kill-child)
	[ "$1" != --net ] || {
		namespaces+=(--net)
		shift
	}
	ROOT=$root PACKAGES=$packages HERE=$here timeout --kill-after=10 "$limit" unshare "${namespaces[@]}" sh -c '
		set -e
		mount --bind "$ROOT" "$ROOT" # ip netns needs a root that is a mount
		mount -t proc proc "$ROOT/proc"
		mount -t sysfs sysfs "$ROOT/sys"
		mount -t tmpfs tmpfs "$ROOT/dev/shm" 2>/dev/null || { mkdir -p "$ROOT/dev/shm"; mount -t tmpfs tmpfs "$ROOT/dev/shm"; }
		mount -t devpts -o newinstance,ptmxmode=0666 devpts "$ROOT/dev/pts" 2>/dev/null || :
		mount --bind -o ro "$PACKAGES" "$ROOT/packages"
		mount --bind -o ro "$HERE" "$ROOT/smoke"
		ip link set lo up
		exec chroot "$ROOT" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
			DEBIAN_FRONTEND=noninteractive "$@"' sh "$@"
}

# step SECONDS NAME [--net] COMMAND...: runs the command in the system as a named step.
step() {
	local begin=$SECONDS limit=$1 name=$2
	shift 2
	enter "$limit" "$@" >"$packages/test.log" 2>&1 </dev/null || {
		tail -n 30 "$packages/test.log" >&2
		die "FAILED: $name; see $packages/test.log"
	}
	printf '%s: passed (%s s)\n' "$name" $((SECONDS - begin))
}
