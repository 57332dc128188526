#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The engine for fio, with rpma serve.
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/../tool/lib.sh"

: "${RPMA_FIO:?the fio that the engine was built for}" "${RPMA_FIO_ENGINE:?the engine}"

region=--region=pool # or empty

# fio_job OPTIONS...: runs a fio job on the region at $where.
fio_job() {
	timeout 60 "$RPMA_FIO" --name=job --ioengine="external:$RPMA_FIO_ENGINE" --hostname="${where%:*}" \
		--port="${where##*:}" ${region:+"$region"} --output-format=json "$@" >out 2>err </dev/null
}
must() { fio_job "$@" || fail "fio $*: $(cat out err)"; }
refused() { # PATTERN OPTIONS...
	local pattern=$1
	shift
	! fio_job "$@" || fail "fio $* succeeds"
	grep -qE "rpma: .*$pattern" out err || fail "fio $* does not say '$pattern': $(cat out err)"
}

field() { perl -MJSON::PP -e 'local $/; my $j = decode_json(<STDIN> =~ s/^[^{]*//r); print eval "\$j->{jobs}[0]$ARGV[0]"' "$1" <out; }

test_what_is_written_is_read_back_and_verified() {
	serve pool --create --size 4M
	must --rw=randwrite --bs=4k --size=2M --iodepth=8 --fsync=16 --verify=crc32c
	[ "$(field '{write}{total_ios}')" = 512 ] || fail "not 512 writes: $(cat out)"
	[ "$(field '{read}{total_ios}')" = 512 ] || fail "not 512 reads of the verification"
	[ "$(field '{sync}{total_ios}')" -ge 32 ] || fail "not a flush for each 16 writes"
}

test_bytes_are_in_the_file_where_the_job_put_them() {
	serve pool --create --size 1M
	must --rw=write --bs=64k --size=128K --offset=256K --iodepth=2 --flush=persistent --buffer_pattern=0x5a
	[ "$(head -c 384K pool | tail -c 128K | tr -d Z | wc -c)" = 0 ] || fail "the bytes are not there"
	[ "$(tr -dc Z <pool | wc -c)" = 131072 ] || fail "there are bytes beside them"
}

test_jobs_share_a_region_and_may_wait() {
	serve pool --create --size 8M
	must --rw=randrw --bs=16k --size=4M --iodepth=4 --numjobs=3 --thread --wait=1 --flush=visible --group_reporting
	[ "$(field '{error}')" = 0 ] || fail "a job failed: $(cat out)"
}

test_readers_need_no_right_to_write() {
	serve pool --create --size 1M
	random_file data 5000
	expect_ok "$rpma" put data "$where"
	must --rw=read --bs=4k --size=1M
	expect_ok "$rpma" get "$where" back
	cmp data back || fail "the file is not what it was"
}

test_what_cannot_be_is_refused() {
	serve pool --create --size 1M
	refused 'offset= and size= end at 2097152, region .pool. at 1048576' --rw=write --bs=4k --size=2M
	refused 'there is no trim' --rw=trim --bs=4k --size=1M
	refused 'size= is needed' --rw=write --bs=4k
	region='' refused 'hostname= and region= are needed' --rw=write --bs=4k --size=1M
	stop_server
	refused 'refused the connection' --rw=write --bs=4k --size=1M
}

test_a_server_that_ends_fails_the_job() {
	local job rc=0
	serve pool --create --size 1M
	fio_job --rw=write --bs=4k --size=1M --time_based --runtime=50 --flush=visible &
	job=$!
	started+=("$job")
	wait_until 20 client_writes
	kill_server
	wait "$job" || rc=$?
	[ "$rc" != 0 ] || fail "the job succeeds"
}
client_writes() {
	kill -USR1 "$server"
	grep -q 'writes_in=[1-9]' serve.out
}

# An fio of another version can have other structures, so the engine must refuse it.
test_another_fio_is_refused() {
	cp "$RPMA_FIO" other-fio
	serve pool --create --size 1M
	RPMA_FIO=./other-fio refused 'works in no other fio' --rw=write --bs=4k --size=1M
}

"test_$1"
