#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Debian's libpmemobj and pmempool with replicas on rpmemd, through librpmem.
# shellcheck source=tests/system/lib/processes.sh
. "$RPMA_SOURCE/tests/system/lib/processes.sh"
# shellcheck disable=SC2034
logs=(log out)

command -v pmempool >/dev/null || { echo "skipped: there is no pmempool"; exit 77; }
[ -x "$PMEMOBJ_PROGRAM" ] || { echo "skipped: there is no libpmemobj-dev"; exit 77; }

mkdir target
cat >ssh <<-'END'
	#!/bin/sh
	for last; do :; done
	export SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22'
	exec sh -c "$last"
END
chmod +x ssh
export RPMEM_SSH=$work/ssh RPMEM_ENABLE_SOCKETS=1
export RPMEM_CMD="$RPMEMD --poolset-dir $work/target --log-file $work/log --log-level info"
export LD_LIBRARY_PATH=$RPMEM_LIBRARIES

# target_set NAME: writes a set with one part at the target. local_set REPLICA...: writes the local
# set, with these replicas.
target_set() { printf 'PMEMPOOLSET\n32M %s/target/%s.part\n' "$work" "$1" >"target/$1.set"; }
local_set() {
	{
		printf 'PMEMPOOLSET\n32M %s/local.part\n' "$work"
		[ $# -eq 0 ] || printf 'REPLICA %s\n' "$@"
	} >local.set
}
program() { "$PMEMOBJ_PROGRAM" "$@" >out 2>&1 || fail "pmemobj_program $*"; }
pool_tool() { pmempool "$@" >out 2>&1 || fail "pmempool $*"; }

# The root object must be the same in the local part and in the replica's part.
same_root() {
	local offset size
	"$PMEMOBJ_PROGRAM" offset local.set >out 2>&1 || fail "pmemobj_program offset"
	read -r offset size <out
	cmp -s --ignore-initial="$offset" --bytes="$size" local.part "target/$1.part" ||
		fail "the root object differs in $1.part"
}

test_one_replica() {
	target_set a
	local_set "localhost a.set"
	program create local.set
	program fill local.set 4 400
	program check local.set 1600
	same_root a
}

test_two_replicas() {
	target_set a
	target_set b
	local_set "localhost a.set" "localhost b.set"
	program create local.set
	program fill local.set 8 100
	program check local.set 800
	same_root a
	same_root b
}

test_a_lost_local_pool_is_restored() {
	target_set a
	local_set "localhost a.set"
	program create local.set
	program fill local.set 2 100
	rm local.part
	pool_tool sync local.set
	program check local.set 200
}

test_a_lost_replica_is_rebuilt() {
	target_set a
	local_set "localhost a.set"
	program create local.set
	program fill local.set 2 100
	rm target/a.part
	pool_tool sync local.set
	program check local.set 200
	same_root a
	rm local.part # the pool is restored from the replica
	pool_tool sync local.set
	program check local.set 200
}

test_info_and_rm() {
	target_set a
	local_set "localhost a.set"
	program create local.set
	pool_tool info local.set
	grep -q 'Signature *: PMEMOBJ' out || fail "pmempool info"
	pool_tool info target/a.part
	grep -q 'Checksum *: .*\[OK\]' out || fail "pmempool info of the replica's part"
	pool_tool rm local.set
	[ ! -e target/a.part ] || fail "the replica is still there"
	[ ! -e local.part ] || fail "the local part is still there"
}

test_transform_adds_a_replica() {
	target_set a
	local_set
	program create local.set
	program fill local.set 1 50
	cp local.set before.set
	local_set "localhost a.set"
	pool_tool transform before.set local.set
	program check local.set 50
	same_root a
}

# The writer is killed while it fills the pool. The replica must be a pool that recovers.
test_a_killed_application_recovers_from_the_replica() {
	target_set a
	local_set "localhost a.set"
	program create local.set
	"$PMEMOBJ_PROGRAM" fill local.set 2 1000000 >out 2>&1 &
	started+=($!)
	wait_until 60 grep -q 'opened' log || :
	sleep 0.3
	kill -9 $!
	wait $! 2>/dev/null || :
	rm local.part
	wait_until 30 pool_sync || fail "pmempool sync"
	# The rows must be consistent, whatever their sum is.
	"$PMEMOBJ_PROGRAM" check local.set 0 >out 2>&1 || grep -q 'transactions, not' out ||
		fail "a transaction is torn"
}
pool_sync() { pmempool sync local.set >out 2>&1; }

# Targets without ssh can be named in the set and in pmempool's own options.
test_without_ssh() {
	echo 'a secret of many characters' >secret
	chmod 600 secret
	export RPMEM_SECRET_FILE=$work/secret RPMEM_SSH=$RPMEM_SSH_HELPER
	"$RPMEMD" --poolset-dir "$work/target" --log-file "$work/log" --listen=127.0.0.1:0 \
		--secret-file "$work/secret" >listening 2>&1 &
	started+=($!)
	wait_until 30 grep -q listening listening || fail "rpmemd --listen"
	target_set a
	local_set "rpma://127.0.0.1:$(sed 's/.*://' listening) a.set"
	program create local.set
	program fill local.set 2 100
	same_root a
	rm target/a.part
	pool_tool sync local.set
	program check local.set 200
	pool_tool rm local.set
	[ ! -e target/a.part ] || fail "the replica is still there"
}

"test_$1"
