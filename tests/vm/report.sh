# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Prints a table of the losses and the operator's steps, for the mirror and for DRBD under the same
# cuts, from the last run of each.

vm_report_begin() { rm -f "$vm_out/cuts.$1"; }

# vm_report SYSTEM CUT LOST RESYNCED_KIB NEEDED: prints one line of results.
vm_report() {
	local system=$1
	printf '%-27s|%-7s|%-26s|%12s|%s\n' "$2" "$system" "$3" "$4" "$5" >>"$vm_out/cuts.$system"
	say "$2, $system: lost $3; resynced $4 KiB; needed $5"
}

vm_report_print() {
	printf '%-27s|%-7s|%-26s|%12s|%s\n' "what fails" "system" "acknowledged and lost" "KiB resynced" "needed from an operator"
	cat "$vm_out"/cuts.* | sort -s -t'|' -k1,1
}
