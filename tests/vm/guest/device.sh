# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# This project's librpma on the kernel's devices through rdma-core: siw if this kernel has it, and rxe. Both ends are on
# the same device. VM_ARGS: programs of the contract suite, separated by commas; the default is all in which a device
# can replace softrnic. The programs skip unsupported features.
. "$VM_TREE/tests/vm/guest/lib.sh"
# The kernel pins registered memory, which counts as locked.
ulimit -l unlimited
export RPMA_PROVIDER=verbs ENDS_ADDR=10.9.1.1 RPMA_EXAMPLES_ADDR=10.9.1.1 RPMA_TEST_DIR=/tmp
# A connection to a peer that answers no SYN fails after 3 s instead of 127 s.
sysctl -q -w net.ipv4.tcp_syn_retries=1
export RPMA_EXAMPLES=$VM_BUILD/examples CMOCKA_MESSAGE_OUTPUT=TAP
pair=$VM_BUILD/tests/vm/pair
# The lists omit dial, strict, wire, liveness, large and processes, and abandoned, silence and
# strict_batch of the extensions, because these tests are about softrnic's settings and promises.
contract=(basics connect close onesided message imm atomic waiting queues errors srq flush bounds dereg
	threads many device)
contract_ext=(atomics batch gather caps verify flush_all shared_cq timeouts connecting changing providers)
# rxe pads private data, and on rxe a receive remains after the peer has ended. The omitted examples
# do not expect this.
examples_siw=(connect_introduces_both read_shows_the_servers_text message_answers_every_word)
examples_rxe=(read_shows_the_servers_text)

# device_up MODULE NAME KIND: makes a device on a dummy interface, because rdma_cm does not work on
# lo.
device_up() {
	modprobe -a dummy ib_uverbs rdma_ucm "$1"
	ip link add dummy0 type dummy 2>/dev/null
	ip addr replace 10.9.1.1/24 dev dummy0
	ip link set dummy0 up
	rdma link add "$2" type "$3" netdev dummy0 || fail "no $2"
	sleep 1
}

# speak_to_itself [ib]: runs both ends of a pair on the device.
speak_to_itself() {
	"$pair/pair_server" 10.9.1.1 7500 $([ "$1" = ib ] && echo 3 || echo 13) >server 2>&1 &
	local pid=$!
	wait_line server listening 20 || fail "no server: $(cat server)"
	timeout 100 "$pair/pair_client" 10.9.1.1 7500 "$@" >client 2>&1 || fail "$(tail -n 3 client server)"
	wait $pid || fail "$(tail -n 3 server)"
	head -n 1 client
}

# one_program DEVICE PROGRAM: runs a program of the contract suite.
one_program() {
	local name=${2##*/} out result=0
	name=${name#contract_test_} out=$VM_OUT/$1.$name
	timeout 100 "$2" >"/tmp/$name.out" 2>&1 || result=$?
	if [ $result = 0 ]; then
		echo "$1 $name: $(grep -c '^ok' "/tmp/$name.out") right, $(grep -c '# SKIP' "/tmp/$name.out") left out"
		return
	fi
	echo "$1 $name: FAILED ($result), see $out"
	grep -vE '^not ok .*# SKIP' "/tmp/$name.out" | grep -aE '^not ok|^# ' | head -n 12
	cp "/tmp/$name.out" "$out"
	failures=$((failures + 1))
}

one_example() {
	if bash "$VM_TREE/tests/system/examples/examples.sh" "$2" >example 2>&1; then
		echo "$1 example: $2"
	else
		echo "$1 example: $2 FAILED"
		cat example
		failures=$((failures + 1))
	fi
}

wanted() { [ -z "$VM_ARGS" ] || [[ ",$VM_ARGS," == *",$1,"* ]]; }

suite() {
	local name
	for name in "${contract[@]}"; do
		! wanted "$name" || one_program "$1" "$VM_BUILD/tests/contract/contract_test_$name"
	done
	for name in "${contract_ext[@]}"; do
		! wanted "$name" || one_program "$1" "$VM_BUILD/tests/contract_ext/contract_ext_$name"
	done
	[ -z "$VM_ARGS" ] || return 0
	local -n examples=examples_$1
	for name in "${examples[@]}"; do
		one_example "$1" "$name"
	done
}

failures=0
# interop.sh sends mistakes to softrnic; siw's reaction to mistakes of siw is not tested.
if modprobe -n siw 2>/dev/null; then
	device_up siw siw1 siw
	speak_to_itself ib
	suite siw
	rdma link delete siw1
fi
device_up rdma_rxe rxe1 rxe
speak_to_itself ib
suite rxe
[ $failures = 0 ]
