# SPDX-License-Identifier: BSD-3-Clause
# Two softrnics, and softrnic with siw, over a bad network.
# shellcheck shell=bash
. "$VM_TREE/tests/vm/guest/lib.sh"
rpma=$VM_BUILD/tools/rpma
pair=$VM_BUILD/tests/vm/pair
limit_ms=3000
export SOFTRNIC_LIVENESS_MS=$limit_ms

far_serve() {
	# The server is not started by a function, because a function in the background runs in a
	# separate shell, whose process id is not the server's.
	RPMA_PROVIDER=softrnic ip netns exec far "$rpma" serve --addr 10.9.0.2 --port 7204 --verbose /disk/region >serve 2>&1 &
	wait_line serve region 20 || fail "no server: $(cat serve)"
	server=$!
}

near() { RPMA_PROVIDER=softrnic timeout 60 "$rpma" "$@"; }

netem() {
	echo "--- $*"
	tc qdisc replace dev near root netem "$@" || fail "no netem"
	ip netns exec far tc qdisc replace dev far root netem "$@" || fail "no netem"
}

netem_off() {
	tc qdisc del dev near root
	ip netns exec far tc qdisc del dev far root
}

# All data must arrive unchanged.
copy_both_ways() {
	near put source 10.9.0.2 >put 2>&1 || fail "put: $(cat put)"
	near get 10.9.0.2 back >get 2>&1 || fail "get: $(cat get)"
	cmp -n 2000000 source back || fail "what came back differs"
	cmp -n 2000000 source /disk/region || fail "what is in the file differs"
}

with_siw() {
	local port=$1
	"$pair/pair_server" 10.9.0.1 "$port" 13 >server.siw 2>&1 &
	local pid=$!
	wait_line server.siw listening 20 || fail "no siw: $(cat server.siw)"
	in_far env RPMA_PROVIDER=softrnic timeout 100 "$pair/pair_client" 10.9.0.1 "$port" >client.soft 2>&1 ||
		fail "with siw: $(tail -n 3 client.soft server.siw)"
	wait $pid || fail "siw: $(tail -n 3 server.siw)"
}

# interrupted COMMAND...: runs COMMAND while a client works. The client must end with an error
# within the limit (three times the limit for a slow guest), and not before the command.
interrupted() {
	echo "--- $*"
	near ping -c 1000000 10.9.0.2 >ping 2>&1 &
	local client=$! begin
	sleep 2
	kill -0 $client 2>/dev/null || fail "the client ended before: $(cat ping)"
	"$@" || fail "$*"
	begin=$(date +%s%N)
	wait $client && fail "the client noticed nothing: $(cat ping)"
	local took=$((($(date +%s%N) - begin) / 1000000))
	tail -n 2 ping
	echo "noticed after $took ms"
	[ $took -lt $((3 * limit_ms)) ] || fail "it took $took ms"
}

siw_up
disk_up
rm -f /disk/region
fallocate -l 2000000 /disk/region
head -c 2000000 /dev/urandom >source
modprobe sch_netem || fail "no netem"
siw_set mpa_crc_required 1
far_serve
copy_both_ways
netem delay 20ms 5ms loss 1%
copy_both_ways
with_siw 7401
netem delay 5ms reorder 25% 50%
copy_both_ways
with_siw 7402
netem delay 2ms duplicate 5%
copy_both_ways
netem_off

echo "--- a peer that stops for a second is only slow"
near put source 10.9.0.2 >put 2>&1 &
client=$!
sleep 0.2
kill -STOP "$server"
sleep 1
kill -CONT "$server"
wait $client || fail "a slow peer was given up: $(cat put)"
cmp -n 2000000 source /disk/region || fail "what is in the file differs"

interrupted kill -STOP "$server"
kill -CONT "$server"
interrupted ip link set near down
ip link set near up
ip addr replace 10.9.0.1/24 dev near
for _ in $(seq 30); do
	near ping -c 10 10.9.0.2 >ping 2>&1 && break
	sleep 0.5
done
copy_both_ways
kill -INT "$server"
wait "$server" || fail "the server ended with $?: $(cat serve)"
