#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# perftest's programs (ib_write_lat, ib_send_bw, ...) on the software RNIC, as a user of verbs runs them.
#
# who=softrnic: on loopback over TCP, or over rings with link=shm. identity=roce: two plain queue pairs; identity=iwarp:
# rdma_cm, as iWARP cards need it. ack=off: completions do not wait for an Ack, as with iWARP. who=kernel: on the
# kernel's device $PERFTEST_DEVICE. Both ends poll, except the target of ib_write_bw and ib_read_bw, whose program
# sleeps.
#
# The latency tests print half of a round trip, except for reads; the script doubles it. Latency tests measure the time
# of 64 B; bandwidth tests count as many messages as possible.
# shellcheck source=bench/peers/lib.sh
. "$(dirname "$0")/lib.sh"
word[identity]=roce word[ack]=on

softrnic=${BENCH_SOFTRNIC:-$BENCH_BIN/../src/interposer/softrnic}

perftest_list() {
	local work=$1 size=$2 how
	for how in "identity=roce ack=on" "identity=roce ack=off" "identity=iwarp ack=off"; do
		echo "who=softrnic work=$work size=$size $how suites=verbs"
	done
}

peer_list() {
	have ib_write_lat || return 0
	[ -x "$softrnic" ] || return 0
	perftest_list ib_write_lat 64
	perftest_list ib_send_lat 64
	perftest_list ib_read_lat 64
	for size in 65536 8; do
		perftest_list ib_write_bw $size
		perftest_list ib_send_bw $size
	done
	perftest_list ib_read_bw 65536
}

# perftest_settings: sets $launch, the words before a program, and $options.
perftest_settings() {
	options=(-F -s "${word[size]}")
	[ "${word[identity]}" != iwarp ] || options+=(-R)
	case "${word[who]}" in
	softrnic)
		local link=SOFTRNIC_SHM=0 ack=1
		[ "$BENCH_LINK" != shm ] || link=SOFTRNIC_SHM_AFTER=0
		[ "${word[ack]}" = on ] || ack=0
		launch=(env "$link" "SOFTRNIC_ACK=$ack" "SOFTRNIC_IDENTITY=${word[identity]}" SOFTRNIC_HARDWARE=0 "$softrnic" run --)
		;;
	kernel)
		launch=()
		options+=(-d "${PERFTEST_DEVICE:?the device of the kernel}")
		;;
	*) fail "who=${word[who]}: there are softrnic, kernel" ;;
	esac
}

# perftest_once COUNT: runs the test once, and sets $line to the numbers of its table.
perftest_once() {
	local port
	port=$(free_port)
	start_target "$port" "${launch[@]}" "${word[work]}" "${options[@]}" -p "$port" -n "$1"
	initiator "${launch[@]}" "${word[work]}" "${options[@]}" -p "$port" -n "$1" "$BENCH_ADDR" >"$scratch/initiator.log" 2>&1 ||
		line="status $?"
	finish_target
	[ -n "$line" ] || line=$(grep -E "^ *${word[size]} +$1 " "$scratch/initiator.log")
	[[ $line != status* ]]
}

# perftest COUNT: repeats a run without a result. On a busy machine perftest can fail to measure the
# rate of the processor's counter; it then prints no line, or infinite times. With rdma_cm on a
# device of the kernel a client can start before its server listens.
perftest() {
	local line
	for _ in 1 2 3 4; do
		line=''
		perftest_once "$1" && [[ -n $line && $line != *inf* ]] && read -ra column <<<"$line" && shows_rate && return 0
	done
	fail "${word[work]}: $line, $(tail -n 1 "$scratch/initiator.log")"
}

# message_us: prints the time of one message in the last run, in us. The columns of latency tests
# are: bytes, count, least, most, median and mean time, the deviation, p99, p99.9. Those of
# bandwidth tests are: bytes, count, peak and mean MiB/s, million messages a second.
message_us() {
	if is_latency; then
		awk -v us="${column[5]}" -v ways="$ways" 'BEGIN { print us * ways }'
	else
		awk -v size="${word[size]}" -v mib="${column[3]}" -v rate="${column[4]}" \
			'BEGIN { print (size > 1000 ? size / 1.048576 / mib : 1 / rate) }'
	fi
}
is_latency() { [[ ${word[work]} = *_lat ]]; }
# A bandwidth test prints a rate of zero if a message takes so long that the printed digits are all
# zero.
shows_rate() { is_latency || [[ ${column[3]} = *[1-9]* && ${column[4]} = *[1-9]* ]]; }

# measure: a short run determines the number of messages that take the required time, and a second
# run measures this number. If the required time is short, the first run is enough.
measure() {
	local first=200
	is_latency || first=$((word[size] > 1000 ? 1000 : 20000))
	perftest $first
	rounds=$first
	[ "${word[ms]}" -ge 50 ] || return 0
	rounds=$(awk -v us="$(message_us)" -v first=$first -v ms="${word[ms]}" \
		'BEGIN { n = ms * 1000 / (us + 0.001); printf("%d", n < first ? first : n > 4e6 ? 4e6 : n) }')
	perftest "$rounds"
}

perftest_results() {
	awk -v n="$rounds" -v us="$(message_us)" -v size="${word[size]}" 'BEGIN {
		printf "\"count\":%d,\"seconds\":%.6f,\"ops_s\":%.1f,\"bytes_s\":%.1f", n, n * us / 1e6, 1e6 / us, size * 1e6 / us }'
	is_latency || return 0
	awk -v ways="$ways" -v min="${column[2]}" -v max="${column[3]}" -v p50="${column[4]}" -v mean="${column[5]}" \
		-v p99="${column[7]}" -v p999="${column[8]}" 'BEGIN {
		printf ",\"min_us\":%.3f,\"p50_us\":%.3f,\"p99_us\":%.3f,\"p999_us\":%.3f,\"max_us\":%.3f,\"mean_us\":%.3f",
			min * ways, p50 * ways, p99 * ways, p999 * ways, max * ways, mean * ways }'
	[ "$ways" = 1 ] || printf ',"note":"twice the one-way time"'
}

peer_run() {
	local ways=1 options launch rounds column
	have "${word[work]}" || skip "${word[work]} is not installed"
	case "${word[work]}" in
	ib_write_lat | ib_send_lat) ways=2 ;;
	ib_read_lat | ib_write_bw | ib_send_bw | ib_read_bw) ;;
	*) fail "work=${word[work]}: there are ib_{write,send,read}_{lat,bw}" ;;
	esac
	perftest_settings
	measure
	print_line "\"identity\":\"${word[identity]}\",\"ack\":\"${word[ack]}\",$(perftest_results)"
}

peer_main "$@"
