# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Our librpma on the kernel's devices, siw and rxe, through rdma-core, each speaking to itself.
. "$VM_TREE/tests/vm/guest/lib.sh"
# The kernel pins what is registered.
ulimit -l unlimited
export RPMA_PROVIDER=verbs DUO_ADDR=10.9.1.1
pair=$VM_BUILD/tests/vm/pair
contract=$VM_BUILD/tests/contract

# device_up KIND: on a dummy interface, as rdma_cm does not work on lo.
device_up() {
	modprobe -a dummy ib_uverbs rdma_ucm "$1"
	ip link add dummy0 type dummy 2>/dev/null
	ip addr replace 10.9.1.1/24 dev dummy0
	ip link set dummy0 up
	rdma link add "$2" type "$3" netdev dummy0 || fail "no $2"
	sleep 1
}

# speak_to_itself [ib]
speak_to_itself() {
	"$pair/pair_server" 10.9.1.1 7500 $([ "$1" = ib ] && echo 3 || echo 13) >server 2>&1 &
	local pid=$!
	wait_line server listening 20 || fail "no server: $(cat server)"
	timeout 100 "$pair/pair_client" 10.9.1.1 7500 "$@" >client 2>&1 || fail "$(tail -n 3 client server)"
	wait $pid || fail "$(tail -n 3 server)"
	head -n 1 client
}

# contract_tests NAME...: programs of the contract suite, for what every device can do.
contract_tests() {
	local name failed=
	for name; do
		if CMOCKA_MESSAGE_OUTPUT=TAP timeout 60 "$contract/contract_test_$name" >"$name.out" 2>&1; then
			echo "contract $name: right"
		else
			echo "contract $name: FAILED ($?)"
			grep -E '^not ok|^# ' "$name.out" | head -n 12
			failed+=" $name"
		fi
	done
	[ -z "$failed" ] || fail "contract:$failed"
}

device_up siw siw1 siw
# Mistakes are made against softrnic (interop.sh): what siw makes of its own says nothing about us.
speak_to_itself ib
names=${VM_ARGS:-basics,onesided,message}
# shellcheck disable=SC2086
contract_tests ${names//,/ }
rdma link delete siw1
device_up rdma_rxe rxe1 rxe
speak_to_itself ib
