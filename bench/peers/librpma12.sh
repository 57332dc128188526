#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The distribution's librpma 1.2, which supports only rdma-core, on the interposer (softrnic run). A flush of this
# library is a read.
#
# work=instructions counts by callgrind the instructions of one write + flush + completion in the initiator's librpma
# itself, without the layers below. The same program runs with the distribution's library and, for who=ours, with this
# project's library.
# shellcheck source=bench/peers/lib.sh
. "$(dirname "$0")/lib.sh"

program=$BENCH_BIN/peers/librpma12

peer_list() {
	local who=librpma-1.2
	{ [ -x "$program" ] && [ "$BENCH_LINK" = loopback ]; } || return 0
	echo "who=$who work=write_flush size=64 suites=goals,dist"
	echo "who=$who work=write_flush size=4096 suites=goals"
	echo "who=$who work=write size=64 every=64 depth=4 suites=goals"
	echo "who=$who work=read size=64 suites=goals"
	! have valgrind || for who in ours librpma-1.2; do
		echo "who=$who work=instructions size=64 suites=goals"
	done
}

# run_on WHO COMMAND...: runs the command with the library that WHO names.
run_on() {
	local who=$1 softrnic='' their_libdir=''
	shift
	# shellcheck source=/dev/null
	. "$BENCH_BIN/peers/paths.sh"
	case $who in
	librpma-1.2) LD_LIBRARY_PATH=$their_libdir limit "$softrnic" run -p -- "$@" ;;
	ours) limit "$@" ;;
	*) fail "who=$who: there are librpma-1.2, ours" ;;
	esac
}

name_space() { [ -z "$2" ] || echo "$1=${2##* }"; }

# instructions_in OBJECT FILE: prints the instructions of the object's own functions. The cost of a
# call is in the line after `calls=`, and is not counted.
instructions_in() { # OBJECT FILE
	awk -v object="$1" '
		/^c?ob=/ { # the file has a name only at the first occurrence of its number
			match($0, /\([0-9]+\)/)
			id = substr($0, RSTART, RLENGTH)
			if (length($0) > RSTART + RLENGTH)
				inside[id] = index($0, object) > 0
			if (/^ob=/)
				counts = inside[id]
			next
		}
		/^calls=/ { skip = 1; next }
		/^[0-9+*-]/ {
			if (!skip && counts)
				sum += $2
			skip = 0
		}
		END { printf "%d", sum }' "$2"
}

# count_instructions OPERATIONS: sets $instructions.
count_instructions() {
	local file
	rm -f "$scratch"/callgrind.*
	OPERATIONS=$1 run_on "${word[who]}" valgrind --tool=callgrind --callgrind-out-file="$scratch/callgrind.%p" \
		"$program" "${words[@]}" work=write_flush >"$scratch/initiator.log" 2>&1 ||
		fail "callgrind: status $?, $(tail -n 1 "$scratch/initiator.log")"
	# The initiator is the process that writes. Process ids start again at small numbers, so
	# their order proves nothing.
	file=$(grep -l rpma_write "$scratch"/callgrind.*) || fail "callgrind has seen no process that calls rpma_write"
	instructions=$(instructions_in librpma.so "$file")
}

# Both runs include the set-up, so the difference of their counts does not.
run_instructions() {
	local instructions few
	have valgrind || skip "valgrind is not installed"
	count_instructions 20
	few=$instructions
	count_instructions 220
	[ "$instructions" -gt "$few" ] || fail "$instructions instructions of librpma were counted for 220 operations, $few for 20"
	print_line "$(printf '"count":200,"instructions":%d' $(((instructions - few) / 200)))"
}

peer_run() {
	local name words
	[ -x "$program" ] || skip "librpma12 was not built: librpma-dev is not installed"
	# shellcheck disable=SC2207 # a word or none
	words=("addr=$BENCH_ADDR" "link=$BENCH_LINK" $(name_space ini_ns "$BENCH_INITIATOR") $(name_space tgt_ns "$BENCH_TARGET"))
	for name in "${!word[@]}"; do
		[ "$name" = work ] || [ -z "${word[$name]}" ] || words+=("$name=${word[$name]}")
	done
	if [ "${word[work]}" = instructions ]; then
		run_instructions
	else
		run_on "${word[who]}" "$program" "${words[@]}" "work=${word[work]}"
	fi
}

peer_main "$@"
