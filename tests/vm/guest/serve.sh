# SPDX-License-Identifier: BSD-3-Clause
# A server for clients outside the guest. It runs until they have ended.
# shellcheck shell=bash
. "$VM_TREE/tests/vm/guest/lib.sh"

disk_up
fallocate -l 1000000 /disk/region || fail "no room"
user_net_up
RPMA_PROVIDER=softrnic "$VM_BUILD/tools/rpma" serve --addr 10.0.2.15 --port 7000 --verbose /disk/region >serve 2>&1 &
server=$!
wait_line serve region 40 || fail "no server: $(cat serve)"
echo ready >"$VM_OUT/serve.ready"
until [ -e "$VM_OUT/serve.end" ]; do
	sleep 0.5
done
kill -INT $server
wait $server || fail "the server ended with $?: $(cat serve)"
cat serve
