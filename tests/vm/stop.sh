# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The whole guest is stopped (SIGSTOP of QEMU) while a client outside is connected to a server in it. The guest's TCP is
# silent, too, so only the client's end can detect the stop.

# The stream of small writes is slow in the guest of a busy machine.
stop_limit_ms=12000
stop_client=

stop_rpma() {
	RPMA_PROVIDER=softrnic SOFTRNIC_LIVENESS_MS=$stop_limit_ms timeout 120 \
		"$vm_programs_dir/tools/rpma" "$1" "${@:2}"
}

stop_ping_start() {
	RPMA_PROVIDER=softrnic SOFTRNIC_LIVENESS_MS=$stop_limit_ms \
		"$vm_programs_dir/tools/rpma" ping -c 10000000 "127.0.0.1:$vm_forward" >"$vm_out/stop.ping" 2>&1 &
	stop_client=$!
	sleep 3
}

expect_ping_alive() {
	kill -0 "$stop_client" 2>/dev/null || die "the client ended: $(cat "$vm_out/stop.ping")"
}

# expect_ping_lost: the client must end within the limit and a third of it (for the last heartbeat),
# on a busy machine within three times that time. A client that ends immediately has another reason.
expect_ping_lost() {
	local begin took status=0
	begin=$(date +%s%N)
	wait "$stop_client" || status=$?
	took=$((($(date +%s%N) - begin) / 1000000))
	stop_client=
	[ $status != 0 ] || die "the client noticed nothing: $(cat "$vm_out/stop.ping")"
	tail -n 1 "$vm_out/stop.ping" >&2
	say "noticed after $took ms, status $status"
	grep -q 'no byte came from' "$vm_out/stop.ping" || die "it ended for another reason: $(cat "$vm_out/stop.ping")"
	[ $took -gt $((stop_limit_ms / 3)) ] || die "it was given up after $took ms"
	[ $took -lt $((4 * stop_limit_ms)) ] || die "it took $took ms"
}

vm_stop() {
	choose_forwards
	rm -rf "$vm_disks" "$vm_out"/serve.{ready,end}
	vm_boot serve
	vm_wait_line "$vm_out/serve.ready" ready 180 || die "the guest does not serve: $(cat "$vm_out/serve.log")"
	head -c 1000000 /dev/urandom >"$vm_out/stop.source"
	stop_ping_start
	kill -STOP "$vm_qemu_pid"
	sleep 2
	kill -CONT "$vm_qemu_pid"
	sleep 3
	expect_ping_alive
	say "a guest that stops for two seconds is only slow"
	kill -STOP "$vm_qemu_pid"
	expect_ping_lost
	kill -CONT "$vm_qemu_pid"
	stop_rpma put "$vm_out/stop.source" "127.0.0.1:$vm_forward" || die "nothing can be put any more"
	stop_rpma get "127.0.0.1:$vm_forward" "$vm_out/stop.back" || die "nothing can be got any more"
	cmp -n 1000000 "$vm_out/stop.source" "$vm_out/stop.back" || die "what came back differs"
	touch "$vm_out/serve.end"
	vm_wait 120
	[ "$(cat "$vm_out/serve.result")" = 0 ] || die "the guest's server failed: $(cat "$vm_out/serve.log")"
	vm_forward='' vm_forward2=''
}
