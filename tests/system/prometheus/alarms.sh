#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Causes each alarm of contrib/prometheus/rules.yml in real programs. The alarm must fire in Debian's Prometheus, which
# scrapes node_exporter's textfile collector, and end. The waits and windows of the rules are shortened to seconds.
# usage: alarms.sh BUILD_DIR [PART...]: all parts, in this order, or these; ./dev ops prometheus calls it. As root.
parts=(openmetrics_is_scraped a_server_is_gone a_region_is_lost pools_are_lost disk_fills a_write_back_fails one_copy_is_away too_few_copies
	no_process_serves etcd_loses_members secrets_differ flushes_are_slow copies_differ copy_fails
	the_register_is_restored a_removed_member_runs)
self=$(realpath "$0")
[ -n "${ALARMS_ALONE:-}" ] || ALARMS_ALONE=1 exec unshare -m bash "$self" "$@"
source_dir=$(realpath "$(dirname "$self")/../../..") build=$(realpath "$1")
shift
[ $# = 0 ] || parts=("$@")
export RPMA_TEST_DIR=$build/tests RPMA_PROVIDER=softrnic RPMIRROR_ON_FENCED=error
export SYSTEM_SWITCH=$build/tests/system/lib/system_switch RPMIRRORD=$build/src/mirrord/rpmirrord
export RPMIRROR=$build/tools/rpmirror/rpmirror MIRROR_REGISTERS=$build/tests/system/mirror/mirror_registers
export MIRROR_JUDGE=$build/tests/system/mirror/mirror_judge
rpma=$build/tools/rpma rpmemd=$build/src/rpmemd/rpmemd
here=$source_dir/tests/system/prometheus
# shellcheck source=tests/system/lib/processes.sh
. "$here/../lib/processes.sh"
# shellcheck source=tests/system/lib/hosts.sh
. "$here/../lib/hosts.sh"
# shellcheck source=tests/system/mirror/cluster.sh
. "$here/../mirror/cluster.sh"
for program in prometheus prometheus-node-exporter; do
	command -v "$program" >/dev/null || { echo "SKIPPED: there is no $program" && exit 77; }
done
declare -A done_alarms=()

# ---- the monitoring ----

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# short_rules: replaces minutes in the rules by seconds, both in the time for which a condition must
# hold and in the time range of an expression.
short_rules() {
	sed -E 's/^( *for:) .*/\1 1s/; s/\[5m\]/[4s]/g; s/> 180$/> 4/' "$source_dir/contrib/prometheus/rules.yml"
}

prometheus_start() {
	local i targets=''
	for i in 1 2 3; do
		exporters[i]=127.0.0.1:$(free_port)
		mkdir -p "node$i"
		prometheus-node-exporter --collector.disable-defaults --collector.textfile \
			--collector.textfile.directory="$work/node$i" --web.listen-address="${exporters[i]}" >"exporter$i.log" 2>&1 &
		started+=($!)
		targets+="      - {targets: ['${exporters[i]}'], labels: {instance: ${names[i]}}}"$'\n'
	done
	short_rules >rules.yml
	promtool check rules rules.yml >/dev/null || fail "the shortened rules"
	printf 'global: {scrape_interval: 500ms, scrape_timeout: 400ms, evaluation_interval: 500ms}\nrule_files: [rules.yml]\nscrape_configs:\n  - job_name: node\n    static_configs:\n%s' "$targets" >prometheus.yml
	prometheus=http://127.0.0.1:$(free_port)
	prometheus --config.file=prometheus.yml --storage.tsdb.path=tsdb --log.level=error \
		--web.listen-address="${prometheus#http://}" >prometheus.log 2>&1 &
	started+=($!)
	logs+=(prometheus.log)
	wait_until 30 alerts >/dev/null || fail "Prometheus does not start"
}

alerts() { python3 "$here/alerts.py" "$prometheus" "$@" 2>/dev/null; }

fires() { # ALARM [LABEL=VALUE...]
	wait_until 40 alerts "$@" || fail "$* does not fire: $(alerts; mirror 1 explain orders 2>&1 | head -20)"
	done_alarms[$1]=fired
}
is_quiet() { ! alerts "$@"; }
ends() { # ALARM...
	local alarm
	for alarm in "$@"; do
		wait_until 60 is_quiet "$alarm" || fail "$alarm does not end: $(alerts; mirror 1 explain orders 2>&1 | head -20)"
		done_alarms[$alarm]=ended
		echo "$alarm: fired, ended"
	done
}

# ---- the watched hosts, disks and programs ----

# watch_host HOST: acts as the timer of one host. It writes the metrics of the host's set; on the
# first host it also writes the metrics of the other programs. If a program does not run, the
# function continues without a pause. The file `silent$1` stops it.
watch_host() { # HOST
	while sleep 0.3; do
		[ ! -e "silent$1" ] || continue
		"$RPMIRROR" status --timeout 2 --socket "$work/socket$1" --textfile "$work/node$1/rpmirror.prom" || :
		[ "$1" = 1 ] || continue
		"$rpma" info --timeout 2 --secret-file "$work/key" "$serve_at" --textfile "$work/node1/rpma.prom" || :
		"$rpmemd" --listen="$rpmemd_at" --poolset-dir "$work/disk/pools" --textfile "$work/node1/rpmemd.prom" || :
	done >/dev/null 2>&1
}

# Makes a file system for the third host's copy, a region and the pools. A second file system is on
# a disk that becomes full, so that a write-back fails (as in tests/system/tool/sticky.sh).
disks_make() {
	mkdir -p disk bad fs
	truncate -s 96M image
	/usr/sbin/mkfs.ext4 -q -m 0 image && mount -o loop image disk || { echo "SKIPPED: no loop devices" && exit 77; }
	mount -t tmpfs -o size=4M tmpfs bad
	truncate -s 16M bad/image
	/usr/sbin/mkfs.ext2 -q -b 4096 -m 0 bad/image && mount -o loop bad/image fs
	mkdir disk/pools
}
unmount_all() {
	local pid
	for pid in "${started[@]}"; do kill -9 "$pid" 2>/dev/null || :; done
	wait 2>/dev/null || :
	umount fs bad disk 2>/dev/null || umount -l fs bad disk 2>/dev/null || :
	cleanup
}

serve_start() {
	: >serve.out
	"$rpma" serve --port "${serve_at##*:}" --secret-file secret fs/region disk/lost >serve.out 2>serve.err &
	serve_pid=$!
	started+=($!)
	wait_until 20 test -s serve.out || fail "nothing is served: $(cat serve.err)"
}
rpmemd_start() {
	: >rpmemd.out
	"$rpmemd" --listen="$rpmemd_at" --poolset-dir "$work/disk/pools" --secret-file secret --log-file - >rpmemd.out 2>rpmemd.log &
	rpmemd_pid=$!
	started+=($!)
	wait_until 20 test -s rpmemd.out || fail "rpmemd does not listen"
}
programs_start() {
	serve_at=127.0.0.1:$(free_port) rpmemd_at=127.0.0.1:$(free_port)
	echo 'a secret of enough bytes' >secret
	chmod 600 secret
	cp -p secret key
	dd if=/dev/zero of=fs/spacer bs=4096 count=256 status=none # the region's blocks lie behind 1M
	"$rpma" serve --port 0 --create --size 1M fs/region disk/lost >made 2>serve.err &
	started+=($!)
	wait_until 20 test -s made || fail "nothing is served: $(cat serve.err)"
	kill "${started[-1]}" && wait "${started[-1]}"
	serve_start
	printf 'PMEMPOOLSET\nOPTION NOHDRS\n2M %s/p1\n2M %s/p2\n' "$work/disk/pools" "$work/disk/pools" >disk/pools/pool.set
	truncate -s 2M disk/pools/p1 disk/pools/p2
	rpmemd_start
}

# daemon_start_with HOST LINES: like daemon_start of cluster.sh, with more lines for the set.
daemon_start_with() { # HOST LINES
	daemon_start_plain "$1"
	daemon_stop "$1"
	printf '%s\n' "$2" >>"conf$1"
	rm -f "socket$1"
	start_on "$1" "daemon$1.log" "$RPMIRRORD" --config "conf$1"
	daemon_pids[$1]=$!
	wait_until 20 test -S "socket$1" || fail "the daemon of host $1 does not start"
}
daemon_start_plain() {
	rm -f "socket$1"
	daemon_start "$1"
}
daemon_stop() { # HOST
	kill "${daemon_pids[$1]}"
	wait "${daemon_pids[$1]}" 2>/dev/null || :
}
is_healthy() { mirror 1 status --check orders >/dev/null 2>&1; }
whole() { # the set is healthy again
	local i
	for i in $(seq 120); do
		! is_healthy || return 0
		[ $((i % 5)) != 0 ] || { is_whole 1 || :; }
		sleep 0.5
	done
	fail "the set does not become healthy: $(mirror 1 explain orders 2>&1)"
}

plugin_says() { # HOST CODE PATTERN: rpmirror status --check
	local got=0
	mirror "$1" status --check >check.log 2>/dev/null || got=$?
	[ "$got" = "$2" ] && grep -qE -e "$3" check.log || fail "status --check on host $1 exits with $got and says $(cat check.log)"
}

# ---- the alarms of a set, each with its end ----

one_copy_is_away() {
	daemon_stop 3
	fires RpmirrorUnreachable instance=c
	fires RpmirrorSetDegraded set=orders
	plugin_says 3 3 '^RPMIRROR UNKNOWN - cannot connect'
	plugin_says 1 1 '^RPMIRROR WARNING - orders degraded, 2 of 3 copies'
	fires RpmirrorCopyNotCatchingUp member=c
	daemon_start_plain 3
	whole
	ends RpmirrorUnreachable RpmirrorCopyNotCatchingUp RpmirrorSetDegraded
}
too_few_copies() {
	mirror 1 set orders min-copies=2 >/dev/null
	daemon_stop 2
	daemon_stop 3
	fires RpmirrorSetBlocked set=orders
	plugin_says 1 2 '^RPMIRROR CRITICAL - orders blocked'
	daemon_start_plain 2
	daemon_start_plain 3
	whole
	ends RpmirrorSetBlocked
	mirror 1 set orders min-copies=1 >/dev/null
}
no_process_serves() {
	kill -9 "${client_pids[clients]}"
	wait "${client_pids[clients]}" 2>/dev/null || :
	fires RpmirrorSetDown set=orders
	plugin_says 1 2 '^RPMIRROR CRITICAL - orders down'
	plugin_says 2 2 '^RPMIRROR CRITICAL - orders down'
	client_start 1
	client_wait "$clients" 60 1
	ends RpmirrorSetDown
}
etcd_loses_members() {
	kill -STOP "${etcd_pids[3]}"
	fires RpmirrorRegisterMemberDown set=orders
	kill -STOP "${etcd_pids[2]}"
	fires RpmirrorRegisterUnreachable set=orders
	kill -CONT "${etcd_pids[3]}" "${etcd_pids[2]}"
	ends RpmirrorRegisterUnreachable RpmirrorRegisterMemberDown
	client_is_back
}
# A primary that could not reach the register may have lost its role. So a client that has ended is
# started again.
client_is_back() {
	if client_ended "$clients"; then
		client_start 1
		client_wait "$clients" 60 1
	fi
	whole
}
secrets_differ() {
	daemon_stop 2
	printf 'a secret of enough bytes\n' >set.secret
	chmod 600 set.secret
	daemon_start_with 2 "secret-file = $work/set.secret"
	fires RpmirrorMemberRefused member=b reason=secret
	daemon_stop 2
	daemon_start_plain 2
	whole
	ends RpmirrorMemberRefused
}
flushes_are_slow() {
	local i
	mirror 1 set orders slow=0.1 >/dev/null
	for i in 2 3; do network delay 1 $i 100 && network delay $i 1 100; done
	fires RpmirrorFlushSlow set=orders
	for i in 2 3; do network delay 1 $i 0 && network delay $i 1 0; done
	mirror 1 set orders slow=5 >/dev/null
	ends RpmirrorFlushSlow
}
copies_differ() {
	local at=$((6 << 20)) # the registers are before this offset
	printf 'other bytes' | dd of=copy2 bs=1 seek=$at conv=notrunc status=none
	mirror 1 verify orders --timeout 60 >verify.log 2>&1 || [ $? = 5 ] || fail "$(cat verify.log)"
	fires RpmirrorCopiesDiffer set=orders
	mirror 1 verify orders --repair --timeout 60 >verify.log 2>&1 || [ $? = 5 ] || fail "$(cat verify.log)"
	mirror 1 resume orders b >/dev/null 2>&1 || :
	whole
	mirror 1 verify orders --timeout 60 >verify.log 2>&1 || fail "$(cat verify.log)"
	ends RpmirrorCopiesDiffer
}
copy_fails() {
	mv disk/copy3 disk/away
	fires RpmirrorCopyFailed member=c
	mv disk/away disk/copy3
	daemon_stop 3
	daemon_start_plain 3
	whole
	ends RpmirrorCopyFailed
}
disk_fills() {
	fallocate -l "$(($(stat -f -c '%a * %S' disk) - (2 << 20)))" disk/filler
	fires RpmirrorDiskFilling instance=c
	fires RpmaDiskFilling region=lost
	fires RpmemdDiskFilling
	rm disk/filler
	ends RpmirrorDiskFilling RpmaDiskFilling RpmemdDiskFilling
}
# This set is only on the third host. Its copy has an epoch that an older register lacks.
the_register_is_restored() {
	"$RPMIRROR" init one --size 4M --register "file:$work/one" --lonely block --here d \
		--member "d=10.77.0.3:$work/one.copy" >one.log 2>&1 || fail "$(cat one.log)"
	cp one one.saved
	daemon_stop 3
	daemon_start_with 3 "[set one]"$'\n'"member = d"$'\n'"data = $work/one.copy"$'\n'"register = file:$work/one"
	timeout 30 nsenter -t "${host_pids[3]}" -n env "RPMIRROR_SOCKET=$PWD/socket3" \
		"$MIRROR_REGISTERS" one one.history 99 1 16 2 </dev/null >one.log 2>&1 || fail "the set is not mapped: $(cat one.log)"
	daemon_stop 3
	cp one.saved one
	rm -f socket3
	start_on 3 daemon3.log "$RPMIRRORD" --config conf3
	daemon_pids[3]=$!
	fires RpmirrorSetSplit set=one instance=c
	plugin_says 3 2 '^RPMIRROR CRITICAL - .*one split'
	mirror 3 resolve one --discard d >one.log 2>&1 || fail "$(cat one.log)"
	ends RpmirrorSetSplit
	daemon_stop 3
	daemon_start_plain 3
	whole
}
a_removed_member_runs() {
	is_removed() { mirror 1 member remove orders c >remove.log 2>&1; }
	wait_until 30 is_removed || fail "$(cat remove.log)"
	fires RpmirrorRemovedMemberRuns instance=c
	is_quiet RpmirrorSetDown || fail "a set that others serve is down for the alarm"
	daemon_stop 3
	touch silent3
	fires RpmaMetricsStale instance=c
	rm silent3 node3/rpmirror.prom
	touch silent3
	ends RpmirrorRemovedMemberRuns RpmaMetricsStale
}

# ---- the alarms of rpma serve and of rpmemd ----

a_server_is_gone() {
	kill "$serve_pid" && wait "$serve_pid"
	fires RpmaServeDown "server=$serve_at"
	serve_start
	ends RpmaServeDown
	echo 'a secret of other bytes.' >key
	fires RpmaSecretRefused "server=$serve_at"
	cp -p secret key
	ends RpmaSecretRefused
}
a_region_is_lost() {
	mv disk/lost disk/elsewhere
	fires RpmaRegionLost region=lost
	mv disk/elsewhere disk/lost
	kill "$serve_pid" && wait "$serve_pid"
	serve_start
	ends RpmaRegionLost
}
a_write_back_fails() {
	head -c 1M /dev/urandom >data
	mkfifo stream
	"$rpma" put -S secret --no-verify --offset 0 - "$serve_at:region" <stream >put.log 2>&1 &
	started+=($!)
	exec 6>stream
	head -c 4096 data >&6
	sleep 0.5 # the server records the claim, which needs room, too
	sync -f fs
	fallocate --punch-hole --offset 1M --length 15M bad/image
	dd if=/dev/zero of=bad/filler bs=4096 2>/dev/null || :
	tail -c +4097 data >&6
	exec 6>&-
	! wait "${started[-1]}" || fail "a put into a full disk succeeds"
	fires RpmaFlushFailed "server=$serve_at"
	rm bad/filler
	kill "$serve_pid" && wait "$serve_pid"
	serve_start
	ends RpmaFlushFailed
}
pools_are_lost() {
	kill "$rpmemd_pid" && wait "$rpmemd_pid"
	fires RpmemdDown
	mv disk/pools/p2 disk/pools/away
	fires RpmemdPoolDamaged pool=pool.set
	mv disk/pools/away disk/pools/p2
	rpmemd_start
	ends RpmemdDown RpmemdPoolDamaged
}

# ---- OpenMetrics, which Prometheus scrapes directly ----

# A second Prometheus, without rules, scrapes these texts, which do not change during the test.
openmetrics_is_scraped() {
	local exporter i
	exporter=127.0.0.1:$(free_port) scraper=http://127.0.0.1:$(free_port)
	mirror 1 status --openmetrics >om0
	"$rpma" info --secret-file key "$serve_at" --openmetrics >om1
	"$rpmemd" --listen="$rpmemd_at" --poolset-dir "$work/disk/pools" --openmetrics >om2
	python3 "$here/serve_text.py" "${exporter##*:}" om0 om1 om2 &
	started+=($!)
	printf 'global: {scrape_interval: 500ms, scrape_timeout: 400ms}\nscrape_configs:\n' >scraper.yml
	for i in 0 1 2; do
		printf '  - {job_name: om%s, metrics_path: /%s, static_configs: [{targets: ["%s"]}]}\n' $i $i "$exporter" >>scraper.yml
	done
	prometheus --config.file=scraper.yml --storage.tsdb.path=tsdb2 --log.level=error \
		--web.listen-address="${scraper#http://}" >scraper.log 2>&1 &
	started+=($!)
	wait_until 30 has_series 'up == 1' 3 || fail "a text is refused: $(curl -s "$scraper/api/v1/targets" | grep -oE '"lastError":"[^"]*"')"
	has_series rpmirror_flushes_total 1 && has_series rpma_serve_received_bytes_total 1 && has_series rpmemd_pools 1 ||
		fail "Prometheus lacks a metric"
	kill "${started[@]: -2}"
	wait "${started[@]: -2}" 2>/dev/null || :
	echo "three texts of OpenMetrics were scraped"
}
has_series() { # EXPRESSION COUNT
	curl -sf "$scraper/api/v1/query" --data-urlencode "query=count($1)" | grep -q "\"$2\"\]"
}

# ---- the run of all parts ----

disks_make
trap unmount_all EXIT
copies[3]=$work/disk/copy3
cluster_start --slow 5 # the machine can be busy
programs_start
prometheus_start
for i in 1 2 3; do
	watch_host $i &
	started+=($!)
done
client_start 1
client_wait 1 60 1
whole
sleep 3
alerts >quiet
! grep -q firing quiet || fail "an alarm in peace: $(cat quiet)"
plugin_says 1 0 '^RPMIRROR OK - orders healthy, 3 of 3 copies in-sync '
for part in "${parts[@]}"; do "$part"; done
[ $# = 0 ] || exit 0
for alarm in $(sed -n 's/^ *- alert: //p' "$source_dir/contrib/prometheus/rules.yml"); do
	[ "${done_alarms[$alarm]:-}" = ended ] || fail "$alarm did not fire and end"
done
echo "${#done_alarms[@]} alarms fired and ended"
