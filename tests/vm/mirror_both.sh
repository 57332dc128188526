# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Both copies are in guests, g and h, which lose their power at the same time; only etcd is outside. Each copy must have
# every record that was acknowledged with it. The serving copy must have all data that were acknowledged or ever read.
# The copies must become equal again.

both_guests=(g h)
both_dir=
both_cuts=0
declare -A both_pid=() both_orders=() both_port=()

# both_in GUEST COMMAND...: calls a function of mirror.sh for this guest.
both_in() {
	local guest=$1 vm_out=$both_dir/$1 vm_disks=$both_dir/$1/disks mirror_dir=$both_dir/$1/mirror vm_log=$both_dir/$1/mirror.console
	local vm_qemu_pid=${both_pid[$1]:-} mirror_orders=${both_orders[$1]:-0} vm_forward='' vm_forward2=''
	read -r vm_forward vm_forward2 <<<"${both_port[$1]}"
	shift
	"$@"
	both_pid[$guest]=$vm_qemu_pid
	both_orders[$guest]=$mirror_orders
}

both_end() {
	local guest
	for guest in "${!both_pid[@]}"; do
		[ ! "${both_pid[$guest]}" ] || both_in "$guest" vm_kill
	done
}

# both_cut: cuts the power of both guests.
both_cut() {
	sleep "$((RANDOM % 3)).$((RANDOM % 10))$((RANDOM % 10))"
	kill -KILL "${both_pid[@]}"
	both_end
	both_cuts=$((both_cuts + 1))
	mirror_note_journals
}

# both_boot CHECK BROKEN [GUEST...]: boots the guests at the same time.
both_boot() {
	local guest check=$1 broken=$2 guests=("${@:3}")
	[ ${#guests[@]} != 0 ] || guests=("${both_guests[@]}")
	for guest in "${guests[@]}"; do
		both_in "$guest" mirror_boot_begin "$guest" "$check" "$broken"
	done
	for guest in "${guests[@]}"; do
		both_in "$guest" mirror_boot_wait "$broken"
	done
}

both_expect_kept() { # GUEST...
	local guest
	for guest; do
		both_in "$guest" mirror_expect_kept
		say "  the copies of $guest: $(grep acknowledged "$both_dir/$guest/mirror.log" | tr '\n' ';')"
	done
}

# both_serve GUEST: the guest's programs become primaries. The data that they read first are
# compared with the journal, and with all data that were read before.
both_serve() {
	both_in "$1" mirror_do write
	mirror_wait_entries 3
	both_in "$1" mirror_do healthy
}

both_sums() { # PRIMARY
	local guest
	both_in "$1" mirror_do stop
	for guest in "${both_guests[@]}"; do
		both_in "$guest" mirror_do sum
	done
	cmp "$both_dir"/{g,h}/mirror/guest.sums || die "the copies differ after they became in-sync"
}

# both_share_files: makes one journal for both guests, and one file for the data that were read.
both_share_files() {
	local set name
	for set in "${mirror_sets[@]}"; do
		for name in "$set.journal" "$set.seen"; do
			touch "$both_dir/$name"
			ln "$both_dir/$name" "$both_dir/g/mirror/$name"
			ln "$both_dir/$name" "$both_dir/h/mirror/$name"
		done
	done
}

both_setup() {
	local guest
	both_dir=$vm_out/both
	rm -rf "$both_dir"
	mkdir -p "$both_dir"/{g,h}/{mirror,disks}
	mirror_dir=$both_dir
	mirror_ports
	mirror_start_etcd
	for guest in "${both_guests[@]}"; do
		choose_forwards
		both_port[$guest]="$vm_forward $vm_forward2"
	done
	both_share_files
	# Each guest reaches the other guest at the same address.
	for guest in "${both_guests[@]}"; do
		echo "$guest=10.0.2.2:${both_port[$guest]% *}"
	done >"$both_dir/g/mirror/new_set"
	both_boot no none g
	rm "$both_dir/g/mirror/new_set"
	both_boot no none h
	mirror_note_journals
	both_serve g
	both_sums g
}

# The former primary becomes the primary again.
both_round_former() {
	both_in g mirror_do write
	mirror_wait_entries 3
	both_cut
	both_boot yes none
	both_expect_kept g h
	both_serve g
}

# The primary loses its power soon after it has read data that perhaps only its own copy had.
# Afterwards the other guest serves.
both_round_other() {
	both_cut
	both_boot yes none
	both_expect_kept g h
	both_serve h
	both_sums h
}

# One guest boots alone and continues; the other guest boots later and finds it as the primary.
both_round_first() {
	both_in h mirror_do write
	mirror_wait_entries 3
	both_cut
	both_boot yes none g
	both_expect_kept g
	both_in g mirror_do write
	mirror_wait_entries 1
	both_boot yes none h
	both_expect_kept h
	both_in g mirror_do healthy
	both_sums g
}

# Programs wait on both guests. In each set one program becomes the primary.
both_round_race() {
	both_in g mirror_do write
	mirror_wait_entries 3
	both_cut
	both_boot yes none
	both_expect_kept g h
	both_in h mirror_do write
	both_in g mirror_do write
	mirror_wait_entries 3
	both_in g mirror_do healthy
}

both_says() { # GUEST SET TEXT: the output of its program
	grep -q "$3" "$both_dir/$1/mirror/guest.$2.log"
}

# Proves that the test notices a missing write-back: no program writes back, so acknowledged records
# are on no disk. The check of each copy, and the program that serves, must report the loss.
both_round_broken() {
	local set guest
	both_cut
	both_boot yes both
	both_expect_kept g h
	both_serve g
	both_says g disk "without write-back" || die "it writes back"
	both_cut
	both_boot yes none
	for guest in "${both_guests[@]}"; do
		for set in "${mirror_sets[@]}"; do
			case $set in dax*) both_in "$guest" mirror_expect "$set" kept ;; *) both_in "$guest" mirror_expect "$set" lost ;; esac
		done
	done
	both_in g mirror_do write
	for set in disk disk-direct; do
		mirror_until 300 both_says g "$set" "was acknowledged, word" ||
			die "$set is served without what was acknowledged: $(cat "$both_dir/g/mirror/guest.$set.log")"
	done
}

vm_mirror_both() {
	local round
	both_setup
	for round in former other first race broken; do
		say "both: $round"
		"both_round_$round"
	done
	both_end
	mirror_end
	mirror_say_acknowledged
	say "power cuts of both guests at once: $both_cuts; under each of: ${mirror_sets[*]}"
}
