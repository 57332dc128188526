#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ./dev installs packages without starting a service. Scripts replace Debian's tools. usage:
# packages.sh SOURCE_DIR
set -euo pipefail
source_dir=$1

if [ "${2:-}" != inside ]; then
	[ "$(id -u)" = 0 ] || {
		echo "skipped: a mount namespace needs root"
		exit 77
	}
	exec unshare -m "$0" "$source_dir" inside
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/bin" "$scratch/tree/tools" "$scratch/sbin"
mount --bind "$scratch/sbin" /usr/sbin
cp "$source_dir/dev" "$scratch/tree/"
export PATH=$scratch/bin:$PATH LOG=$scratch/log

stand_in() {
	printf '#!/bin/sh\n%s\n' "$2" >"$scratch/bin/$1"
	chmod 755 "$scratch/bin/$1"
}
# The replaced apt-get records the packages of its call.
stand_in dpkg-query 'shift 2; for p; do grep -qs "^$p\$" "$LOG" && echo "$p installed"; done'
stand_in apt-get '
	case "$*" in
	*install*) ;;
	*) exit 0 ;;
	esac
	/usr/sbin/policy-rc.d; echo "policy $?" >>"$LOG.policy"
	for p; do case $p in -* | install) ;; *) echo "$p" >>"$LOG" ;; esac; done'
stand_in cmake 'exit 0'
stand_in ninja 'exit 0'
printf '#!/bin/sh\nexit 0\n' >"$scratch/tree/tools/demo.sh"
chmod 755 "$scratch/tree/tools/demo.sh"

fail() {
	echo "packages.sh: $*" >&2
	exit 1
}

"$scratch/tree/dev" demo 2>/dev/null
grep -q '^libibverbs-dev$' "$LOG" || fail "the demo does not install what it builds with"
! grep -qE '^(tgt|tshark|libcmocka-dev|clang|fio|librpma-dev)$' "$LOG" || fail "the demo installs what only tests need"
grep -q '^policy 101$' "$LOG.policy" || fail "services may start while packages are installed"
[ ! -e /usr/sbin/policy-rc.d ] || fail "the policy against services was left behind"

: >"$LOG.policy"
"$scratch/tree/dev" setup 2>/dev/null
grep -q '^tgt$' "$LOG" || fail "setup does not install what tests need"
grep -q '^policy 101$' "$LOG.policy" || fail "tgt's service would have been started"

# The script must keep an existing policy.
printf '#!/bin/sh\nexit 0\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
: >"$LOG"
"$scratch/tree/dev" setup 2>/dev/null
[ -e /usr/sbin/policy-rc.d ] || fail "a policy of the machine's owner was removed"
