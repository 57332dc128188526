# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Power cuts under a mirrored file: one copy is in the guest, on the NVDIMM (set `dax`) and on the disk (set `disk`), the
# other and etcd outside. The primary, or the replica, loses its power; what was acknowledged is on the guest's media
# when it has booted, the other side goes on meanwhile, and both copies become the same again.

mirror_pids=()
mirror_dir=

# mirror_start NAME COMMAND...
mirror_start() {
	local name=$1
	shift
	"$@" >>"$mirror_dir/$name.log" 2>&1 </dev/null &
	mirror_pids+=($!)
}

# A writer whose flush waits does not end otherwise.
mirror_end() {
	[ ${#mirror_pids[@]} = 0 ] || kill -KILL "${mirror_pids[@]}" 2>/dev/null || :
	mirror_pids=()
}

# mirror_until SECONDS COMMAND...
mirror_until() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.2
	done
}

rpmirror() { "$vm_programs_dir/tools/rpmirror/rpmirror" "$@" --socket "$mirror_dir/socket"; }

mirror_ports() {
	choose_forwards
	mirror_guest_port=$vm_forward
	choose_forwards
	mirror_host_port=$vm_forward mirror_register_port=$vm_forward2
	choose_forwards
	mirror_etcd_peers=$vm_forward
	vm_forward=$mirror_guest_port
}

mirror_start_etcd() {
	mirror_start etcd etcd --name r --data-dir "$mirror_dir/etcd" --logger zap --log-level error \
		--listen-client-urls "http://127.0.0.1:$mirror_register_port" --advertise-client-urls "http://127.0.0.1:$mirror_register_port" \
		--listen-peer-urls "http://127.0.0.1:$mirror_etcd_peers" --initial-advertise-peer-urls "http://127.0.0.1:$mirror_etcd_peers" \
		--initial-cluster "r=http://127.0.0.1:$mirror_etcd_peers"
}

# mirror_make_set NAME PATH_IN_GUEST
mirror_make_set() {
	rpmirror init "$1" --size 16M --register "$mirror_register" --here h --lease 12 --replica-timeout 10 --timeout 5 \
		--member "g=127.0.0.1:$mirror_guest_port:$2" --member "h=10.0.2.2:$mirror_host_port:$mirror_dir/$1" \
		>>"$mirror_dir/init.log" 2>&1
}

mirror_start_daemon() {
	local set
	{
		printf '%s\n' "listen = 127.0.0.1:$mirror_host_port" "socket = $mirror_dir/socket" 'peer-timeout = 10000'
		for set in dax disk; do
			printf '%s\n' "[set $set]" 'member = h' "data = $mirror_dir/$set" "register = $mirror_register" 'auto = yes'
		done
	} >"$mirror_dir/conf"
	mirror_start daemon "$vm_programs_dir/src/mirrord/rpmirrord" --config "$mirror_dir/conf"
	mirror_until 20 test -S "$mirror_dir/socket" || die "no daemon: $(cat "$mirror_dir/daemon.log")"
}

mirror_setup() {
	mirror_dir=$vm_out/mirror
	rm -rf "$vm_disks" "$mirror_dir"
	mkdir -p "$mirror_dir"
	mirror_ports
	mirror_register=etcd://127.0.0.1:$mirror_register_port
	mirror_start_etcd
	mirror_until 60 mirror_make_set dax /pmem/dax || die "no set: $(cat "$mirror_dir/init.log")"
	mirror_make_set disk /disk/disk || die "no set: $(cat "$mirror_dir/init.log")"
	mirror_start_daemon
}

# mirror_boot CHECK BROKEN
mirror_boot() {
	rm -f "$mirror_dir/ready" "$mirror_dir/guest.sums"
	: >"$mirror_dir/orders"
	vm_net_is_open=yes vm_boot mirror "$mirror_register_port,$1,$2"
	vm_wait_line "$mirror_dir/ready" ready 400 || die "the guest does not get ready: $(cat "$vm_out/mirror.log")"
	[ "$2" = none ] || [ "$2" = writers ] || grep -q "without write-back" "$mirror_dir/guest.$2.log" || die "it writes back"
}

mirror_order() { echo "$1" >>"$mirror_dir/orders"; }

# Writers outside, which go on until mirror_stop_writers.
mirror_write_here() {
	local set
	writer_pids=()
	for set in dax disk; do
		RPMA_PROVIDER=softrnic RPMIRROR_SOCKET=$mirror_dir/socket RPMIRROR_ON_FENCED=error \
			"$vm_programs_dir/tests/vm/mirror/mirror_writer" "$set" "$mirror_dir/$set.journal" >>"$mirror_dir/writer.log" 2>&1 &
		writer_pids+=($!)
		mirror_pids+=($!)
	done
}

mirror_stop_writers() {
	local pid
	kill "${writer_pids[@]}"
	for pid in "${writer_pids[@]}"; do
		wait "$pid" || die "a writer failed: $(cat "$mirror_dir/writer.log")"
	done
}

# has_entries SET MASK COUNT: acknowledged with these copies, behind what the journal had before
has_entries() {
	local n
	n=$(tail -c +$((journal_before[$1] + 1)) "$mirror_dir/$1.journal" 2>/dev/null | od -An -v -t u8 -w16 | awk -v m="$2" '$2 == m { n++ } END { print n + 0 }')
	[ "$n" -ge "$3" ]
}

declare -A journal_before=()
mirror_note_journals() {
	local set
	for set in dax disk; do
		journal_before[$set]=$(stat -c %s "$mirror_dir/$set.journal" 2>/dev/null || echo 0)
	done
}

# mirror_cut WHO: the guest is the primary, or the replica, of both sets when its power is cut.
mirror_cut() {
	local set
	mirror_note_journals
	if [ "$1" = primary ]; then mirror_order write; else mirror_write_here; fi
	for set in dax disk; do
		mirror_until 300 has_entries "$set" 3 20 || die "$set: nothing is durable in both copies: $(tail -n 3 "$mirror_dir"/*.log)"
	done
	sleep "$((RANDOM % 3)).$((RANDOM % 10))$((RANDOM % 10))"
	vm_kill
	mirror_note_journals
	[ "$1" != primary ] || mirror_write_here
	for set in dax disk; do
		mirror_until 120 has_entries "$set" 2 20 || die "$set: the other side does not go on: $(tail -n 3 "$mirror_dir"/*.log)"
		"$vm_programs_dir/tests/vm/mirror/mirror_check" "$mirror_dir/$set" "$mirror_dir/$set.journal" 1 >&2 || die "$set: the other side lost records"
	done
}

mirror_sums() {
	rm -f "$mirror_dir/guest.sums"
	mirror_order sum
	mirror_until 120 test -e "$mirror_dir/guest.sums" || die "no sums of the guest's copies"
	(cd "$mirror_dir" && sha256sum dax disk) >"$mirror_dir/here.sums"
	cmp "$mirror_dir/here.sums" "$mirror_dir/guest.sums" || die "the copies differ after they became in-sync"
}

# The guest's copies become the same, under load.
mirror_return() {
	local set
	for set in dax disk; do
		rpmirror wait "$set" --until health=healthy --timeout 200 >>"$mirror_dir/wait.log" 2>&1 ||
			die "$set does not become healthy: $(rpmirror explain "$set" 2>&1)"
	done
	mirror_stop_writers
	mirror_sums
}

mirror_expect() { # SET kept|lost
	grep -qx "$1 $2" "$vm_out/mirror.log" || die "$1 was not $2: $(cat "$vm_out/mirror.log")"
}

# vm_mirror ROUNDS [SEED]
vm_mirror() {
	local round who seed=${2:-$(($(date +%s) % 30000))}
	RANDOM=$seed
	say "power cuts under a mirrored file, seed $seed"
	mirror_setup
	mirror_boot no none
	mirror_write_here # the guest's copies are made equal for the first time
	mirror_return
	for ((round = 1; round <= $1; round++)); do
		who=$([ $((round % 2)) = 1 ] && echo replica || echo primary)
		mirror_cut "$who"
		mirror_boot yes none
		mirror_expect dax kept
		mirror_expect disk kept
		say "round $round, the $who: $(grep acknowledged "$vm_out/mirror.log" | tr '\n' ';')"
		mirror_return
	done
	# The test would notice: a replica that does not write back loses what it acknowledged on the disk.
	mirror_order end
	vm_wait 120 || die "the guest does not end"
	mirror_boot no daemon
	mirror_cut replica
	mirror_stop_writers
	rm -f "$mirror_dir/ready"
	vm_net_is_open=yes vm_boot mirror "$mirror_register_port,yes,none"
	vm_wait_line "$vm_out/mirror.log" "disk " 400 || die "the guest does not look"
	mirror_expect disk lost
	mirror_expect dax kept
	vm_kill
	mirror_end
	say "$1 power cuts survived, and one without write-back found out"
}
