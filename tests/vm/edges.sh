# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Replays hostile streams to the kernel's siw. A crash of the kernel is a defect of siw, not a failure of the test: the
# crash is reported, and the remaining streams are sent to a new guest.

# edges_last: prints the number and the name of the last announced stream.
edges_last() { sed -nE 's/^edge ([0-9]+: .*)/\1/p' "$vm_out/edges.log" | tail -n 1; }

# edges_complaint: prints the kernel's crash or warning, which is on the console, or in the job's
# output if the job continued long enough.
edges_complaint() {
	{ cat "$vm_log" "$vm_out/edges.dmesg" 2>/dev/null || :; } | tr -d '\r' |
		sed -nE '/BUG:|KASAN|general protection|RIP: [0-9]+:siw_/s/^\[ *[0-9.]+\] //p' | sort -u
}

edges_killed_siw() {
	local said
	said=$(edges_complaint)
	[ "$(edges_last)" ] && [[ $said == *:siw_* ]]
}

vm_edges() {
	local first=0 found=0 last
	while :; do
		rm -f "$vm_out/edges.log" "$vm_out/edges.dmesg"
		vm_boot edges "$first"
		vm_wait 300 || return 1
		[ "$(cat "$vm_out/edges.result" 2>/dev/null)" != 0 ] || break
		if ! edges_killed_siw; then
			echo "vm: job edges failed ($vm_out/edges.log):" >&2
			tail -n 40 "$vm_out/edges.log" "$vm_log" >&2
			return 1
		fi
		last=$(edges_last)
		found=$((found + 1))
		say "FINDING about siw of the guest's kernel (doc/wire.md section 10): it does not survive '${last#*: }'"
		edges_complaint >&2
		cp "$vm_log" "$vm_out/edges.$found.console"
		first=$((${last%%:*} + 1))
	done
	[ "$found" = 0 ] || say "$found of the streams end siw's kernel, see $vm_out/edges.*.console; softrnic survives all of them"
}
