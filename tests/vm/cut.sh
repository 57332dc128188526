# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Power cuts: the guest is killed at random moments while a client writes; the acknowledged records must be present
# after the next boot. The client is outside the guest, or in the guest beside the server, so that rings in shared
# memory connect them. QEMU models no CPU cache, so this test detects only missing write-backs of the page cache.

recorder_pids=()

# record_start NAME PORT HOW: starts a recorder. Its journal is outside the guest, so the acknowledgements that clients
# got survive the power cut. HOW the client flushes: call by call, in batches, or by reading, like a client without
# native flush.
record_start() {
	SOFTRNIC_EXTENSIONS=$([ "$3" = read ] && echo 0 || echo 1) \
		"$vm_programs_dir/tests/system/crash/system_recorder" "$2" 0 "$3" >"$vm_out/$1.journal" 2>"$vm_out/$1.recorder" &
	recorder_pids+=($!)
}

journal_count() {
	local n
	n=$(tail -c 8 "$vm_out/$1.journal" | od -An -t u8 | tr -d ' ')
	echo "${n:-0}"
}

# cut_when_busy: cuts the power at a random moment in the three seconds after the first
# acknowledgement.
cut_when_busy() {
	local end=$((SECONDS + 120)) name pid
	for name in dax disk; do
		until [ -s "$vm_out/$name.journal" ]; do
			[ "$SECONDS" -lt "$end" ] || die "no acknowledgement from $name: $(cat "$vm_out/$name.recorder")"
			sleep 0.05
		done
	done
	sleep "$((RANDOM % 3)).$((RANDOM % 10))$((RANDOM % 10))"
	vm_kill
	for pid in "${recorder_pids[@]}"; do
		wait "$pid" || :
	done
	recorder_pids=()
}

# cut_boot CHECK SERVE [HOW]: boots a guest that checks the files after the previous cut, and serves
# until the next cut. With rings-HOW the clients are in the guest, and their journals are also
# outside.
cut_boot() {
	choose_forwards
	rm -f "$vm_out/cut.ready"
	if [ "$2" = no ]; then
		vm_job cut 300 "$1,$acked_dax,$acked_disk,$2"
		return
	fi
	# The journals are emptied before any client writes to them, because the previous round has
	# left its own journals.
	: >"$vm_out/dax.journal"
	: >"$vm_out/disk.journal"
	vm_boot cut "$1,$acked_dax,$acked_disk,$2,$3"
	vm_wait_line "$vm_out/cut.ready" ready 300 || {
		cat "$vm_out/cut.log" >&2
		die "the guest does not serve"
	}
}

# cut_round HOW: runs one round.
cut_round() {
	if [[ $1 != rings-* ]]; then
		record_start dax "$vm_forward" "$1"
		record_start disk "$vm_forward2" "$1"
	fi
	cut_when_busy
	acked_dax=$(journal_count dax) acked_disk=$(journal_count disk)
	say "power cut: $acked_dax records acknowledged on DAX, $acked_disk on the disk ($1)"
}

# expect_after_cut kept|lost: checks the state of the disk after the cut.
expect_after_cut() {
	grep -qx "dax kept" "$vm_out/cut.log" || die "DAX lost acknowledged records: $(cat "$vm_out/cut.log")"
	grep -qx "disk $1" "$vm_out/cut.log" || die "after the cut the disk has not $1 them: $(cat "$vm_out/cut.log")"
	grep acknowledged "$vm_out/cut.log" >&2
}

# is_broken ROUND ROUNDS: succeeds for every third round and the last one, in which a target does
# not write back.
is_broken() { (($1 % 3 == 0 || $1 == $2)); }

# vm_cut ROUNDS [SEED]: runs the rounds. A target that does not write back must be detected each
# time.
vm_cut() {
	local round target found=0 hows=(calls rings-calls batch rings-batch read) how seed=${2:-$(($(date +%s) % 30000))}
	RANDOM=$seed
	say "power cuts, seed $seed"
	rm -rf "$vm_disks"
	acked_dax=0 acked_disk=0
	target=$(is_broken 1 "$1" && echo broken || echo yes) how=${hows[RANDOM % 5]}
	cut_boot no "$target" "$how"
	for ((round = 1; round <= $1; round++)); do
		cut_round "$how"
		local cut=$target
		target=no how=${hows[RANDOM % 5]}
		[ "$round" = "$1" ] || target=$(is_broken $((round + 1)) "$1" && echo broken || echo yes)
		cut_boot yes "$target" "$how"
		expect_after_cut "$([ "$cut" = broken ] && echo lost || echo kept)"
		[ "$cut" != broken ] || found=$((found + 1))
	done
	say "$1 power cuts survived or found out: $found were of targets without write-back"
}
