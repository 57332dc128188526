#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# libfabric over its tcp provider (connected endpoints) and its shm provider. libfabric's own fi_pingpong measures
# messages, and fi_rma, this project's program on libfabric's public interface, measures RMA. Both ends poll, because
# libfabric's providers make progress in the caller's thread.
#
# write_flush requests delivery completion, or with flush=persistent commit completion, which a provider can refuse.
# fi_pingpong prints half of a round trip; the script doubles it.
# shellcheck source=bench/peers/lib.sh
. "$(dirname "$0")/lib.sh"

rma=$BENCH_BIN/peers/fi_rma

list_rma() { # WHO
	local size depth
	[ -x "$rma" ] || return 0
	echo "who=$1 work=read size=64 suites=goals,dist"
	echo "who=$1 work=read size=4096 suites=goals"
	echo "who=$1 work=write size=64 every=64 depth=4 suites=goals"
	echo "who=$1 work=write_flush size=1048576 depth=4 suites=goals"
	for size in "${sizes[@]}"; do
		echo "who=$1 work=write_flush size=$size suites=size$([ "$size" != 64 ] || echo ,goals,dist)"
	done
	for depth in 1 4 16 64; do
		echo "who=$1 work=write_flush size=64 depth=$depth suites=depth"
	done
	[ "$1" = libfabric-shm ] || echo "who=$1 work=write_flush size=64 flush=persistent suites=goals"
}

peer_list() {
	local who=libfabric-tcp size
	[ "$BENCH_LINK" != shm ] || who=libfabric-shm
	list_rma $who
	have fi_pingpong || return 0
	for size in "${sizes[@]}"; do
		echo "who=$who work=send size=$size suites=size$([ "$size" != 64 ] || echo ,goals)"
	done
}

# pingpong ROUNDS: runs the test, and sets $seconds and $half_us.
pingpong() {
	local port line
	port=$(free_port)
	start_target "$port" fi_pingpong "${provider[@]}" -B "$port" -S "${word[size]}" -I "$1"
	initiator fi_pingpong "${provider[@]}" -P "$port" -S "${word[size]}" -I "$1" "$BENCH_ADDR" \
		>"$scratch/initiator.log" 2>&1 ||
		fail "fi_pingpong: status $?, $(tail -n 1 "$scratch/initiator.log")"
	line=$(tail -n 1 "$scratch/initiator.log")
	finish_target
	read -r _ _ _ _ seconds _ half_us _ <<<"$line"
	seconds=${seconds%s}
	[[ $half_us =~ ^[0-9.]+$ ]] || fail "fi_pingpong prints '$line'"
}

run_pingpong() {
	local provider=(-p tcp -e msg) rounds seconds half_us
	have fi_pingpong || skip "fi_pingpong is not installed"
	[ "${word[who]}" = libfabric-tcp ] || provider=(-p shm -e rdm)
	pingpong 200
	rounds=$(awk -v us="$half_us" -v ms="${word[ms]}" \
		'BEGIN { n = ms * 500 / (us + 0.001); printf("%d", n < 200 ? 200 : n > 2e7 ? 2e7 : n) }')
	pingpong "$rounds"
	print_line "$(awk -v n="$rounds" -v us="$half_us" -v size="${word[size]}" 'BEGIN {
		us *= 2
		printf "\"count\":%d,\"seconds\":%.6f,\"ops_s\":%.1f,\"bytes_s\":%.1f,\"mean_us\":%.3f", n, n * us / 1e6,
			1e6 / us, 1e6 / us * size, us }'),\"note\":\"twice the one-way time\""
}

# name_space KEY COMMAND: prints KEY=NAME if the command is `ip netns exec NAME`.
name_space() { [ -z "$2" ] || echo "$1=${2##* }"; }

run_rma() {
	[ -x "$rma" ] || skip "fi_rma was not built: libfabric-dev is not installed"
	# shellcheck disable=SC2046 # a word or none
	limit "$rma" $(name_space ini_ns "$BENCH_INITIATOR") $(name_space tgt_ns "$BENCH_TARGET") \
		"addr=$BENCH_ADDR" "link=$BENCH_LINK" "$@"
}

peer_run() {
	local name words=()
	if [ "${word[work]}" = send ]; then
		run_pingpong
		return
	fi
	for name in "${!word[@]}"; do
		[ -z "${word[$name]}" ] || words+=("$name=${word[$name]}")
	done
	run_rma "${words[@]}"
}

peer_main "$@"
