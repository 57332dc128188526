# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sends FPDUs at the limits of their headers to siw, from a peer that is only a socket. VM_ARGS: the number of the first
# stream. If siw crashes, the last printed line names the stream for the script outside the guest.
. "$VM_TREE/tests/vm/guest/lib.sh"
port=7800
siw_up
# rping's server serves one connection after the other, and continues when a connection fails.
rping -s -P -a 10.9.0.1 -p $port >"$VM_OUT/edges.server" 2>&1 &
server=$!
wait_listening $port || fail "rping does not listen: $(cat "$VM_OUT/edges.server")"
echo "kernel $(cat /proc/sys/kernel/osrelease)"
result=0
in_far "$VM_BUILD/tests/vm/edges/vm_edges" 10.9.0.2 10.9.0.1 $port "${VM_ARGS:-0}" || result=1
kill -0 $server || fail "rping did not survive it: $(tail -n 3 "$VM_OUT/edges.server")"
kill $server
exit $result
