#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# file_cost.sh: compares librpmafile's instructions with those of librpma for the same work at the client: one durable
# record of 64 bytes, and four records in one group. Also a small growth fails. With FILE_COST_PAIRS=250 groups the
# result is exact to some ten instructions.
set -euo pipefail
: "${FILE_COST:?the program}" "${RPMA_TOOL:?rpma}" "${BOUND_ONE:?}" "${BOUND_FOUR:?}"
command -v valgrind >/dev/null || { echo "there is no valgrind"; exit 77; }

export RPMA_PROVIDER=softrnic SOFTRNIC_SPIN_US=0 SOFTRNIC_SHM=0
few=50 many=${FILE_COST_PAIRS:-250}
scratch=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || :; wait; rm -rf "$scratch"' EXIT
cd "$scratch"
"$RPMA_TOOL" serve --create --size 4M --allow-volatile --port 0 pool >serve.out 2>&1 &
server=$!
for _ in $(seq 200); do
	grep -q serving serve.out && break
	sleep 0.05
done
where=$(sed -nE '1s/.* at ([^ ]*:[0-9]+): .*/\1/p' serve.out)
[ -n "$where" ] || { cat serve.out; exit 1; }

# total HOW COUNT RECORDS: sets $instructions to the instructions of a whole run.
total() {
	taskset -c 0 valgrind --quiet --tool=callgrind --callgrind-out-file=cg "$FILE_COST" "$1" "$where" "$2" 64 "$3"
	instructions=$(awk '/^(summary|totals):/ { print $2; exit }' cg)
}

# cost HOW RECORDS: sets $cost to the instructions for one group.
cost() {
	total "$1" "$many" "$2"
	cost=$instructions
	total "$1" "$few" "$2"
	cost=$(((cost - instructions) / (many - few)))
}

failed=0
check() { # RECORDS BOUND
	local by_librpma by_library
	cost librpma "$1"
	by_librpma=$cost
	cost library "$1"
	by_library=$cost
	[ "$by_librpma" -gt 1000 ] || { echo "nothing was measured"; exit 1; }
	echo "$1 of 64 bytes: librpma $by_librpma, librpmafile $by_library, more: $((by_library - by_librpma)) (bound $2)"
	[ $((by_library - by_librpma)) -le "$2" ] || failed=1
}
check 1 "$BOUND_ONE"
check 4 "$BOUND_FOUR"
exit $failed
