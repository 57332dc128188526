# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The cuts under DRBD, the lost records, and the steps that DRBD's operator had to make.

# drbd_end_round CUT PRIMARY LOST NEEDED: both copies must become UpToDate under load, and must then
# be equal.
drbd_end_round() {
	drbd_wait_equal "$2"
	drbd_do "$2" stop_writing
	drbd_resynced "$2"
	drbd_expect_equal "$2"
	vm_report DRBD "$1" "$3" "$drbd_kib" "$4"
}

# drbd_expect_missing COUNT: fails unless COUNT records are missing.
drbd_expect_missing() { [ "$drbd_missing" = "$1" ] || die "DRBD lost $drbd_missing records, not $1"; }

drbd_cut_replica() { # PRIMARY REPLICA
	drbd_write_until_busy "$1"
	cp "$(drbd_journal "$1")" "$drbd_dir/at-cut"
	drbd_cut "$2"
	drbd_look_at_disk "$2" "$drbd_dir/at-cut"
	drbd_expect_missing 0
	drbd_wait_records "$1" 20
}

drbd_round_replica() { # PRIMARY REPLICA
	drbd_cut_replica "$1" "$2"
	drbd_returns "$2"
	drbd_end_round "replica's power" "$1" nothing nothing
}

# drbd_take_over PRIMARY REPLICA: the replica becomes the primary, must have all records, and
# continues.
drbd_take_over() {
	drbd_promote "$2"
	cp "$(drbd_journal "$1")" "$(drbd_journal "$2")"
	drbd_look_in_guest "$2" "$2 as the primary"
	drbd_expect_missing 0
	drbd_write "$2"
	drbd_wait_records "$2" 20
}

drbd_round_primary() { # PRIMARY REPLICA
	drbd_write_until_busy "$1"
	drbd_cut "$1"
	drbd_look_at_disk "$1" "$(drbd_journal "$1")"
	drbd_expect_missing 0
	drbd_take_over "$1" "$2"
	drbd_returns "$1"
	drbd_end_round "primary's power" "$2" nothing "primary, mount"
}

drbd_is_split() { drbd_has_state "$1" cstate StandAlone || drbd_has_state "$2" cstate StandAlone; }

# drbd_resolve KEEPER LOSER COUNT: both nodes were primaries, and are not connected any more. The
# operator chooses the loser, and the records that the loser acknowledged after the first COUNT are
# lost. Sets drbd_missing.
drbd_resolve() {
	mirror_until 600 drbd_is_split "$1" "$2" || die "nobody notices the split: $drbd_output"
	drbd_do "$1" stop_writing
	drbd_do "$2" stop_writing
	drbd_do "$2" 'umount /data && { drbdadm disconnect r0; drbdadm secondary r0; } && drbdadm connect --discard-my-data r0'
	drbd_do "$1" '{ drbdadm disconnect r0; drbdadm connect r0; }'
	drbd_wait_equal "$1"
	tail -c +$(($3 * 16 + 1)) "$(drbd_journal "$2")" >"$drbd_dir/only"
	drbd_look_in_guest "$1" "after the split $1 has, of $2's own records" "$drbd_dir/only"
}

# drbd_end_split CUT KEEPER LOST: ends a round with two primaries.
drbd_end_split() {
	drbd_resynced "$2"
	drbd_expect_equal "$2"
	vm_report DRBD "$1" "$3" "$drbd_kib" "primary, mount; then split brain: whose records are to be lost"
}

# The copy that lacks later acknowledged records is the only one when its node is made the primary,
# which DRBD permits.
drbd_round_stale() { # PRIMARY REPLICA
	local count lost
	drbd_cut_replica "$1" "$2"
	drbd_cut "$1"
	count=$(drbd_acknowledged "$1")
	cp "$(drbd_journal "$1")" "$(drbd_journal "$2")"
	drbd_returns "$2"
	drbd_promote "$2"
	drbd_look_in_guest "$2" "$2, which was away, as the primary"
	lost=$drbd_missing
	[ "$lost" -ge 20 ] || die "DRBD's replica has records that it never got"
	drbd_write "$2"
	drbd_wait_records "$2" 20
	drbd_returns "$1"
	drbd_do "$1" 'drbdadm primary r0 && mount /dev/drbd0 /data'
	drbd_resolve "$1" "$2" "$count"
	[ "$drbd_missing" -ge 20 ] || die "records of both sides are there after a split"
	lost="$lost, or the later $drbd_missing"
	drbd_look_in_guest "$1" "$1 after the split"
	drbd_expect_missing 0
	drbd_end_split "replica's, later primary's" "$1" "$lost"
}

# The whole guest of the primary is stopped, and continues when another primary has taken over.
drbd_round_stopped() { # PRIMARY REPLICA
	local count
	drbd_write_until_busy "$1"
	kill -STOP "${drbd_pid[$1]}"
	count=$(drbd_acknowledged "$1")
	drbd_promote "$2"
	cp "$(drbd_journal "$1")" "$(drbd_journal "$2")"
	drbd_look_in_guest "$2" "$2 as the primary"
	drbd_expect_missing 0
	# The former primary does not use this number, and no record with it was acknowledged.
	python3 -c 'import struct, sys; sys.stdout.buffer.write(struct.pack("<QQ", 3000000, 0))' >>"$(drbd_journal "$2")"
	drbd_write "$2"
	drbd_wait_records "$2" 20
	kill -CONT "${drbd_pid[$1]}"
	drbd_wait_records "$1" 20
	drbd_resolve "$1" "$2" "$count"
	[ "$drbd_missing" -ge 20 ] || die "records of both sides are there after a split"
	drbd_end_split "primary stopped" "$1" "$drbd_missing, or what the other had"
}

# vm_drbd [SEED]: runs all rounds.
vm_drbd() {
	local seed=${1:-$(($(date +%s) % 30000))}
	RANDOM=$seed
	say "power cuts of two guests with DRBD, seed $seed"
	vm_report_begin DRBD
	drbd_setup
	drbd_round_replica a b
	drbd_round_primary a b
	drbd_round_stale b a
	drbd_round_stopped b a
	drbd_end
	vm_report_print
}
