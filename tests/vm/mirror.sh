# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Mirrored files with one copy in the guest, on the NVDIMM (sets `dax*`) or on the disk (sets `disk*`); the other copy
# and etcd are outside. Sets `*-direct` are mapped directly, other sets are isolated.

mirror_sets=(dax disk dax-direct disk-direct)
mirror_pids=()
mirror_daemon=
mirror_dir=
mirror_orders=0
writer_pids=()

# mirror_start NAME COMMAND...: starts the command in the background.
mirror_start() {
	local name=$1
	shift
	"$@" >>"$mirror_dir/$name.log" 2>&1 </dev/null &
	mirror_pids+=($!)
}

# A writer whose flush waits ends only by a signal. Other processes may already have the ids of
# ended writers.
mirror_end() {
	local pid
	for pid in $(jobs -p); do
		[[ " ${mirror_pids[*]} " == *" $pid "* ]] || continue
		kill -KILL "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	mirror_pids=()
}

# mirror_until SECONDS COMMAND...: repeats the command until it succeeds.
mirror_until() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.2
	done
}

mirror_mapping() { case $1 in *-direct) echo direct ;; *) echo isolated ;; esac }

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

# mirror_make_set NAME: makes a set.
mirror_make_set() {
	local folder
	case $1 in dax*) folder=/pmem ;; *) folder=/disk ;; esac
	rpmirror init "$1" --size 16M --register "$mirror_register" --here h --lease 12 --replica-timeout 20 --timeout 5 \
		--member "g=127.0.0.1:$mirror_guest_port:$folder/$1" --member "h=10.0.2.2:$mirror_host_port:$mirror_dir/$1" \
		>>"$mirror_dir/init.log" 2>&1
}

mirror_start_daemon() {
	local set
	{
		printf '%s\n' "listen = 127.0.0.1:$mirror_host_port" "socket = $mirror_dir/socket" 'peer-timeout = 20000'
		for set in "${mirror_sets[@]}"; do
			printf '%s\n' "[set $set]" 'member = h' "data = $mirror_dir/$set" "register = $mirror_register" 'auto = yes'
		done
	} >"$mirror_dir/conf"
	rm -f "$mirror_dir/socket"
	mirror_start daemon "$vm_programs_dir/src/mirrord/rpmirrord" --config "$mirror_dir/conf"
	mirror_daemon=$!
	mirror_until 20 test -S "$mirror_dir/socket" || die "no daemon: $(cat "$mirror_dir/daemon.log")"
}

mirror_setup() {
	local set seconds=60
	mirror_dir=$vm_out/mirror
	rm -rf "$vm_disks" "$mirror_dir"
	mkdir -p "$mirror_dir"
	mirror_ports
	mirror_register=etcd://127.0.0.1:$mirror_register_port
	mirror_start_etcd
	for set in "${mirror_sets[@]}"; do
		mirror_until $seconds mirror_make_set "$set" || die "no set: $(cat "$mirror_dir/init.log")"
		seconds=5
	done
	mirror_start_daemon
}

# mirror_boot_begin MEMBER CHECK BROKEN: boots a guest. With CHECK yes the guest first looks for
# acknowledged records.
mirror_boot_begin() {
	rm -f "$mirror_dir"/{ready,reply.*,output.*,guest.sums}
	: >"$mirror_dir/orders"
	mirror_orders=0
	vm_net_is_open=yes vm_boot mirror "$1,$mirror_register_port,$2,$3"
}

# mirror_boot_wait BROKEN: waits until the guest is ready.
mirror_boot_wait() {
	vm_wait_line "$mirror_dir/ready" ready 400 || die "the guest does not get ready: $(cat "$vm_out/mirror.log")"
	case $1 in daemon | both)
		grep -q "without write-back" "$mirror_dir/guest.daemon.log" || die "its daemon writes back"
		;;
	esac
}

# mirror_boot CHECK BROKEN: boots the guest, and waits until it is ready.
mirror_boot() {
	mirror_boot_begin g "$1" "$2"
	mirror_boot_wait "$2"
}

# mirror_do WORD: the guest executes the order, which must succeed.
mirror_do() {
	mirror_orders=$((mirror_orders + 1))
	echo "$1" >>"$mirror_dir/orders"
	mirror_until 400 test -e "$mirror_dir/reply.$mirror_orders" || die "the guest does not answer to '$1'"
	[ "$(cat "$mirror_dir/reply.$mirror_orders")" = 0 ] || die "$1 in the guest: $(cat "$mirror_dir/output.$mirror_orders")"
}

# mirror_write_here: starts writers outside the guest, which continue until mirror_stop_writers.
mirror_write_here() {
	local set
	writer_pids=()
	for set in "${mirror_sets[@]}"; do
		RPMA_PROVIDER=softrnic RPMIRROR_SOCKET=$mirror_dir/socket RPMIRROR_ON_FENCED=error \
			"$vm_programs_dir/tests/vm/mirror/mirror_writer" "$set" "$mirror_dir/$set.journal" "$(mirror_mapping "$set")" \
			"$mirror_dir/$set.seen" >>"$mirror_dir/writer.log" 2>&1 &
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
	writer_pids=()
}

mirror_kill_writers() {
	[ ${#writer_pids[@]} != 0 ] || return 0
	kill -KILL "${writer_pids[@]}"
	wait "${writer_pids[@]}" 2>/dev/null || :
	writer_pids=()
}

# mirror_kill_here: kills the host outside the guest: its writers, if any run, and its daemon.
mirror_kill_here() {
	mirror_kill_writers
	kill -KILL "$mirror_daemon"
	wait "$mirror_daemon" 2>/dev/null || :
}

# has_entries SET MASK COUNT: succeeds if the journal has COUNT more entries than before that were
# acknowledged with these copies.
has_entries() {
	local n
	n=$(tail -c +$((journal_before[$1] + 1)) "$mirror_dir/$1.journal" 2>/dev/null | od -An -v -t u8 -w16 | awk -v m="$2" '$2 == m { n++ } END { print n + 0 }')
	[ "$n" -ge "$3" ]
}

declare -A journal_before=()
mirror_note_journals() {
	local set
	for set in "${mirror_sets[@]}"; do
		journal_before[$set]=$(stat -c %s "$mirror_dir/$set.journal" 2>/dev/null || echo 0)
	done
}

# mirror_wait_entries MASK: waits for 20 more entries in each set.
mirror_wait_entries() {
	local set
	for set in "${mirror_sets[@]}"; do
		mirror_until 300 has_entries "$set" "$1" 20 ||
			die "$set: nothing is durable in the copies $1: $(tail -n 3 "$mirror_dir"/*.log)"
	done
}

# mirror_check_here: the copies outside the guest must have the records that were acknowledged with
# these copies.
mirror_check_here() {
	local set
	for set in "${mirror_sets[@]}"; do
		"$vm_programs_dir/tests/vm/mirror/mirror_check" "$mirror_dir/$set" "$mirror_dir/$set.journal" 1 "$(mirror_mapping "$set")" \
			>>"$mirror_dir/check.log" 2>&1 || die "$set: the other side is wrong: $(tail -n 3 "$mirror_dir/check.log")"
	done
}

mirror_wait_healthy() {
	local set
	for set in "${mirror_sets[@]}"; do
		rpmirror wait "$set" --until health=healthy --timeout 600 >>"$mirror_dir/wait.log" 2>&1 ||
			die "$set does not become healthy: $(rpmirror explain "$set" 2>&1)"
	done
}

mirror_sums() {
	mirror_do sum
	(cd "$mirror_dir" && sha256sum "${mirror_sets[@]}") >"$mirror_dir/here.sums"
	cmp "$mirror_dir/here.sums" "$mirror_dir/guest.sums" || die "the copies differ after they became in-sync"
	mirror_check_here
}

# mirror_say_acknowledged: prints the number of records found for each combination of medium and
# mapping.
mirror_say_acknowledged() {
	local set
	for set in "${mirror_sets[@]}"; do
		say "  $set: $(od -An -v -t u8 -w16 "$mirror_dir/$set.journal" | awk '
			{ copies[$2]++ }
			END { printf "%d flushes acknowledged by both copies, %d by one", copies[3], copies[1] + copies[2] }')"
	done
}

mirror_expect() { # SET kept|lost
	grep -qx "$1 $2" "$vm_out/mirror.log" || die "$1 was not $2: $(cat "$vm_out/mirror.log")"
}

mirror_expect_kept() {
	local set
	for set in "${mirror_sets[@]}"; do
		mirror_expect "$set" kept
	done
}
