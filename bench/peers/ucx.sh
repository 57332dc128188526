#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# UCX (ucx_perftest), over TCP and over its shared memory.
#
# Settings: UCX_TLS=tcp and UCX_NET_DEVICES=INTERFACE, the interface that leads to the target (lo, or a veth); or
# UCX_TLS=shm, which is UCX's name for all its transports through shared memory (posix, sysv, cma). One thread polls at
# each end.
#
# UCX's latency tests (put, tag) are ping-pongs of two programs that spin on their memory, or receive. They print half
# of a round trip; the script doubles it. Puts over shared memory access the mapped memory of the peer, without a check
# of bounds and without revocation.
# shellcheck source=bench/peers/lib.sh
. "$(dirname "$0")/lib.sh"

peer_list() {
	local size who=ucx-tcp
	have ucx_perftest || return 0
	[ "$BENCH_LINK" != shm ] || who=ucx-shm
	echo "who=$who work=write size=64 every=64 depth=4 suites=goals"
	echo "who=$who work=read size=64 suites=goals"
	for size in "${sizes[@]}"; do
		echo "who=$who work=write_flush size=$size suites=size$([ "$size" != 64 ] || echo ,goals)"
		echo "who=$who work=send size=$size suites=size$([ "$size" != 64 ] || echo ,goals)"
		echo "who=$who work=write size=$size every=16 depth=4 suites=size$([ "$size" != 1048576 ] || echo ,goals)"
	done
}

ucx_settings() {
	export UCX_WARN_UNUSED_ENV_VARS=n UCX_POSIX_DIR=$scratch
	case "${word[who]}" in
	ucx-tcp)
		export UCX_TLS=tcp UCX_NET_DEVICES
		# shellcheck disable=SC2086
		UCX_NET_DEVICES=$($BENCH_INITIATOR ip -o route get "$BENCH_ADDR" | sed -nE 's/.* dev ([^ ]+).*/\1/p')
		;;
	ucx-shm) export UCX_TLS=shm ;;
	*) fail "who=${word[who]}: there are ucx-tcp, ucx-shm" ;;
	esac
}

# perftest ROUNDS: runs $test once, and sets $median and $mean (us) and $rate.
perftest() {
	local port line
	port=$(free_port)
	start_target "$port" ucx_perftest -p "$port"
	initiator ucx_perftest "$BENCH_ADDR" -p "$port" -t "$test" "${options[@]}" -s "${word[size]}" -n "$1" \
		-w $(($1 / 10 + 10)) -v -R 50 >"$scratch/initiator.log" 2>&1 ||
		fail "ucx_perftest: status $?, $(tail -n 1 "$scratch/initiator.log")"
	line=$(grep -E '^ *[0-9]+,' "$scratch/initiator.log" | tail -n 1)
	finish_target
	IFS=, read -r _ median _ mean _ _ _ rate <<<"$line"
	[ -n "$rate" ] || fail "ucx_perftest prints '$line'"
}

# choose_rounds: a short run determines $rounds, the number of rounds that take the required time. It
# uses the median, which a slow start does not change; for puts it uses the mean, because the median
# of puts is the time of posting.
choose_rounds() {
	perftest 200
	[ "${word[work]}" != write ] || median=$mean
	rounds=$(awk -v us="$median" -v ways="$ways" -v ms="${word[ms]}" \
		'BEGIN { n = ms * 1000 / (us * ways + 0.001); printf("%d", n < 100 ? 100 : n > 2e7 ? 2e7 : n) }')
}

peer_run() {
	local test ways=1 options=() rounds note='' median mean rate
	have ucx_perftest || skip "ucx_perftest is not installed"
	case "${word[work]}" in
	write_flush)
		test=ucp_put_lat ways=2
		note=',"note":"twice the one-way time; the target polls its memory and puts as much back"'
		;;
	send) test=tag_lat ways=2 note=',"note":"twice the one-way time"' ;;
	write) test=ucp_put_bw note=',"note":"puts complete when their source may be used again"' ;;
	read) test=ucp_get options=(-O 1) ;;
	*) fail "work=${word[work]}: there are write_flush, write, read, send" ;;
	esac
	ucx_settings
	choose_rounds
	perftest "$rounds"
	# The mean covers all rounds. The rate and the bandwidth are those of one direction.
	print_line "$(awk -v n="$rounds" -v p50="$median" -v mean="$mean" -v ways="$ways" -v size="${word[size]}" \
		-v lat="$([ "${word[work]}" = write ] || echo 1)" 'BEGIN {
			ops = 1000000 / (mean * ways)
			printf "\"count\":%d,\"seconds\":%.6f,\"ops_s\":%.1f,\"bytes_s\":%.1f", n, n / ops, ops, ops * size
			if (lat)
				printf ",\"p50_us\":%.3f,\"mean_us\":%.3f", p50 * ways, mean * ways
		}')$note"
}

peer_main "$@"
