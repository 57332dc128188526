# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Power cuts and stops of a guest with mirrored files. After the next boot the acknowledged records must be on the
# guest's media. The other side continues meanwhile, and both copies must become equal again. A program that maps a file
# reads the whole file: no record may revert to an older one.

declare -A mirror_cuts=()

# mirror_cut WHO: cuts the power of the guest, which has the role WHO.
mirror_cut() {
	sleep "$((RANDOM % 3)).$((RANDOM % 10))$((RANDOM % 10))"
	vm_kill
	mirror_cuts[$1]=$((${mirror_cuts[$1]:-0} + 1))
	mirror_note_journals
}

# mirror_return: the guest's copies are checked, and must become equal under load.
mirror_return() {
	mirror_boot yes none
	mirror_expect_kept
	say "  the guest's copies: $(grep acknowledged "$vm_out/mirror.log" | tr '\n' ';')"
	mirror_wait_healthy
	mirror_stop_writers
	mirror_sums
}

mirror_round_replica() {
	mirror_note_journals
	mirror_write_here
	mirror_wait_entries 3
	mirror_cut replica
	mirror_wait_entries 2
	mirror_check_here
	mirror_return
}

mirror_round_primary() {
	mirror_note_journals
	mirror_do write
	mirror_wait_entries 3
	mirror_cut primary
	mirror_write_here
	mirror_wait_entries 2
	mirror_check_here
	mirror_return
}

# No member takes over: the guest becomes the primary again, with its own data, and its power is cut
# again.
mirror_round_again() {
	local i
	mirror_note_journals
	mirror_do write
	mirror_wait_entries 3
	for i in 1 2 3; do
		mirror_cut primary
		mirror_check_here
		mirror_boot yes none
		mirror_expect_kept
		say "  the guest's copies: $(grep acknowledged "$vm_out/mirror.log" | tr '\n' ';')"
		mirror_do write
		mirror_wait_entries 3
	done
	mirror_wait_healthy
	mirror_do stop
	mirror_sums
}

# The guest's power is cut again while its copies are made equal.
mirror_round_twice() {
	mirror_note_journals
	mirror_write_here
	mirror_wait_entries 3
	mirror_cut replica
	mirror_wait_entries 2
	mirror_boot yes none
	mirror_expect_kept
	mirror_cut replica
	mirror_wait_entries 2
	mirror_check_here
	mirror_return
}

# The guest's copies lack later acknowledged records, and no other copy is available.
mirror_round_stale_guest() {
	mirror_note_journals
	mirror_write_here
	mirror_wait_entries 3
	mirror_cut replica
	mirror_wait_entries 2
	mirror_kill_here
	mirror_boot yes none
	mirror_expect_kept
	mirror_note_journals
	mirror_do write
	mirror_do promote
	mirror_do kill
	mirror_no_host_wrote
	mirror_start_daemon
	mirror_write_here
	mirror_wait_healthy
	mirror_check_here
	mirror_stop_writers
	mirror_sums
}

mirror_no_host_wrote() {
	local set
	for set in "${mirror_sets[@]}"; do
		[ "$(stat -c %s "$mirror_dir/$set.journal")" = "${journal_before[$set]}" ] ||
			die "$set: something was acknowledged by a copy that is not in-sync"
	done
}

mirror_promote_in_vain() {
	local set status
	for set in "${mirror_sets[@]}"; do
		status=0
		rpmirror promote "$set" h --timeout 100 >>"$mirror_dir/promote.log" 2>&1 || status=$?
		[ $status = 5 ] || die "promote $set h ends with $status instead of 5: $(tail -n 2 "$mirror_dir/promote.log")"
	done
}

# The copies outside lack acknowledged records, and the power of the guest, which has all of them,
# is cut.
mirror_round_stale_here() {
	mirror_note_journals
	mirror_do write
	mirror_wait_entries 3
	mirror_kill_here
	mirror_wait_entries 1
	mirror_cut primary
	mirror_start_daemon
	mirror_write_here
	mirror_promote_in_vain
	mirror_kill_writers
	mirror_no_host_wrote
	mirror_boot yes none
	mirror_expect_kept
	mirror_do write
	mirror_wait_entries 3
	mirror_wait_healthy
	mirror_do stop
	mirror_sums
}

# mirror_skip_numbers: makes the next primary's records distinguishable from records that the former
# primary could still write.
mirror_skip_numbers() {
	local set
	for set in "${mirror_sets[@]}"; do
		python3 - "$mirror_dir/$set.journal" <<-'END'
			import struct, sys
			with open(sys.argv[1], "rb+") as f:
			    f.seek(-16, 2)
			    last, _ = struct.unpack("<QQ", f.read(16))
			    f.write(struct.pack("<QQ", last + 30000, 0))
		END
	done
}

# mirror_is_followed: the other side becomes the primary, because the lease of the stopped primary
# has ended.
mirror_is_followed() {
	mirror_skip_numbers
	mirror_write_here
	mirror_wait_entries 2
}

# mirror_expect_late SET: one flush of the former primary may have been acknowledged before the
# stop, and recorded after it.
mirror_expect_late() { # SET
	local late
	late=$(tail -c +$((journal_before[$1] + 1)) "$mirror_dir/$1.journal" | od -An -v -t u8 -w16 |
		awk '$2 == 0 { base = $1 } $1 < base { n++ } END { print n + 0 }')
	[ "$late" -le 1 ] || die "$1: $late flushes of a fenced program were acknowledged"
}

# mirror_expect_fenced SET: no data that a fenced program stores may reach the other copy, or be
# acknowledged.
mirror_expect_fenced() {
	local set
	mirror_do fenced
	for set in "${mirror_sets[@]}"; do
		grep -q "fenced, 200 flushes refused" "$mirror_dir/guest.$set.log" || die "$set: $(cat "$mirror_dir/guest.$set.log")"
		mirror_expect_late "$set"
	done
	mirror_check_here
	mirror_wait_healthy
	mirror_stop_writers
	mirror_sums
}

# The whole guest is stopped.
mirror_round_stopped() {
	mirror_note_journals
	mirror_do write
	mirror_wait_entries 3
	kill -STOP "$vm_qemu_pid"
	mirror_note_journals
	mirror_is_followed
	kill -CONT "$vm_qemu_pid"
	mirror_expect_fenced
}

# Only the programs are stopped; the guest's daemon continues.
mirror_round_paused() {
	mirror_note_journals
	mirror_do write
	mirror_wait_entries 3
	mirror_do pause
	mirror_note_journals
	mirror_is_followed
	mirror_do continue
	mirror_expect_fenced
}

# Proves that the test notices a missing write-back: WHO does not write back, so acknowledged
# records are not on the disk.
mirror_round_broken() { # daemon|writers
	local set
	echo end >>"$mirror_dir/orders"
	vm_wait 200 || die "the guest does not end"
	mirror_boot no "$1"
	mirror_note_journals
	if [ "$1" = daemon ]; then mirror_write_here; else mirror_do write; fi
	mirror_wait_entries 3
	[ "$1" = daemon ] || grep -q "without write-back" "$mirror_dir/guest.disk.log" || die "it writes back"
	vm_kill
	[ "$1" = daemon ] || mirror_write_here
	mirror_wait_entries 2
	mirror_boot yes none
	for set in "${mirror_sets[@]}"; do
		case $set in dax*) mirror_expect "$set" kept ;; *) mirror_expect "$set" lost ;; esac
	done
	mirror_wait_healthy
	mirror_stop_writers
	mirror_sums
}

mirror_round_broken_daemon() { mirror_round_broken daemon; }
mirror_round_broken_writers() { mirror_round_broken writers; }

mirror_kinds=(replica primary stale_guest stale_here stopped paused twice again)

# mirror_rounds COUNT KIND...: runs rounds of these kinds in turn.
mirror_rounds() {
	local round who count=$1 kinds=("${@:2}")
	mirror_setup
	mirror_boot no none
	mirror_write_here # makes the guest's copies equal for the first time
	mirror_wait_healthy
	mirror_stop_writers
	mirror_sums
	for ((round = 0; round < count; round++)); do
		who=${kinds[round % ${#kinds[@]}]}
		say "round $((round + 1)): $who"
		"mirror_round_$who"
	done
}

mirror_end_rounds() {
	vm_kill
	mirror_end
	mirror_say_acknowledged
	say "power cuts of the replica's guest: ${mirror_cuts[replica]:-0}, of the primary's: ${mirror_cuts[primary]:-0}; under each of: ${mirror_sets[*]}"
}

# mirror_chosen ROUNDS KIND...: runs the chosen kinds of rounds.
mirror_chosen() {
	local kind kinds=() with_both=
	for kind in "${@:2}"; do
		if [ "$kind" = both ]; then with_both=yes; else kinds+=("$kind"); fi
	done
	if [ ${#kinds[@]} != 0 ]; then
		mirror_rounds "$1" "${kinds[@]}"
		mirror_end_rounds
	fi
	[ ! "$with_both" ] || vm_mirror_both
}

# vm_mirror ROUNDS [SEED [KINDS]]: KINDS are kinds of rounds, separated by commas, or `both`, which
# means all power cuts of both copies. Without KINDS the function runs everything: all kinds in
# turn, the two kinds without write-back, and `both`.
vm_mirror() {
	local kinds=() seed=${2:-$(($(date +%s) % 30000))}
	RANDOM=$seed
	say "power cuts under mirrored files, seed $seed"
	if [ "${3:-}" ]; then
		IFS=, read -ra kinds <<<"$3"
		mirror_chosen "$1" "${kinds[@]}"
		return
	fi
	mirror_rounds "$1" "${mirror_kinds[@]}"
	mirror_round_broken_daemon
	mirror_round_broken_writers
	mirror_end_rounds
	vm_mirror_both
}
