#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# programs.sh [-l] [-j JOBS] [-c CASES] [PATTERN]: runs the whole product of foreign verbs programs, their flags, and
# the ways in which two ends can connect. Prints a table with a line for each row, and fails if a case of any row fails.
#
# PATTERN: only rows that match it (a regular expression). CASES: only ways that match it. -l lists rows and ways.
#
# A way is LINK-CHECKSUM-PLACE-DIALS-APART:
#   tcp, rings        the link. rings are between processes of one host
#   crc, nocrc        SOFTRNIC_CRC
#   one, two          both ends on loopback, or in two network namespaces
#   server, client    the end whose queue pair has the greater number, and which therefore dials
#   at-once, late     the client starts when the server listens, or 5 s later
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# A row is a program with its flags. A program has one row for each of the following flags that it
# supports: events (-e), several queue pairs (-q), both directions (-b), a time (-D), inline data
# (-I), a shared receive queue, and all sizes (-a).
rows() {
	local test
	printf 'ibv_rc_pingpong -g 0%s\n' '' ' -e' ' -c -s 1' ' -e -c -s 1048576 -n 1000' ' -s 1048576 -n 10000' ' -o' ' -t' ' -N'
	printf 'ibv_srq_pingpong -g 0%s\n' '' ' -e'
	printf 'ibv_ud_pingpong -g 0%s\n' '' ' -e'
	printf 'ib_send_%s -c UD\n' lat 'bw -n 20'
	printf 'ibv_uc_pingpong -g 0%s\n' '' ' -e'
	printf 'ib_%s -c UC\n' {send,write}_{lat,bw}
	for test in send write read atomic; do
		printf "ib_${test}_%s\n" lat 'lat -D 2' bw 'bw -q 8' 'bw -b' 'bw -D 2'
	done
	printf 'ib_%s -e\n' {send,read,atomic}_{lat,bw}
	printf 'ib_%s -a -n 100\n' {send,write,read}_{bw,lat}
	printf 'ib_%s -I 64 -s 64\n' {send,write}_{lat,bw}
	printf 'ib_send_%s --use-srq\n' lat 'bw -q 8'
	printf 'ib_atomic_bw -A CMP_AND_SWAP\n'
	printf 'ucx_perftest -x rc_verbs -d softrnic0:1 -t %s\n' am_lat put_bw 'get -s 4096 -D bcopy' add_lat cswap
	printf 'ucx_perftest -t %s\n' tag_lat 'tag_bw -s 65536'
}

ways() {
	local link crc place dials apart
	for apart in at-once late; do
		for link in tcp rings; do
			for crc in nocrc crc; do
				for place in one two; do
					for dials in server client; do
						[ "$link-$place" = rings-two ] || echo "$link-$crc-$place-$dials-$apart"
					done
				done
			done
		done
	done
}

# ---- one case ----

# ASAN_RUNTIME is the sanitizer's library, if the launcher is from a build with ASan. This library
# must be loaded before the interposer, so the interposer is not preloaded but replaces rdma-core's
# libraries. ASan does not search for leaks, because the programs are not this project's.
with_sanitizer() {
	SOFTRNIC_RUN_FLAGS=-d
	as_user=(env "LD_PRELOAD=$ASAN_RUNTIME $(dirname "$SOFTRNIC")/libsoftrnic-verbs.so" "ASAN_OPTIONS=detect_leaks=0:abort_on_error=1" "${as_user[@]}")
}

# The numbers of queue pairs begin with ports of these ranges. Each job has its own ranges.
set_numbers() {
	local low high
	: "${SLOT:?}"
	low=$((20000 + SLOT * 200)) high=$((20100 + SLOT * 200))
	server_ports=$low-$((low + 99)) client_ports=$high-$((high + 99))
	[ "$1" = client ] || { server_ports=$high-$((high + 99)) client_ports=$low-$((low + 99)); }
}

set_link() {
	case $1 in
	tcp) export SOFTRNIC_SHM=0 ;;
	rings) export SOFTRNIC_SHM_AFTER=0 ;;
	esac
}

# Sets $program to the whole command of an end, except for the port and the server's address.
set_program() {
	read -ra program <<<"$1"
	case ${program[0]} in
	ib_*) program+=(-F) && [[ " $1 " =~ \ -(a|D|n)\  ]] || program+=(-n 100) ;;
	ibv_*) [[ " $1 " = *" -n "* ]] || program+=(-n 200) ;;
	ucx_perftest)
		program+=(-n 1000 -w 100)
		export UCX_TLS=rc_v,self UCX_NET_DEVICES=softrnic0:1
		;;
	esac
	need "${program[0]}"
}

# one_case ROW WAY: runs one row in one way.
one_case() {
	local link crc place dials apart address=127.0.0.1
	local -a program
	IFS=- read -r link crc place dials apart <<<"$2"
	set_numbers "$dials"
	set_link "$link"
	export SOFTRNIC_CRC=on
	[ "$crc" = crc ] || SOFTRNIC_CRC=off
	set_program "$1"
	[ "$place" = one ] || { second_host && address=10.77.0.2; }
	for _ in {1..8}; do
		case_once && return 0
		is_by_chance || break
	done
	fail "$1 ($2): server $status_server, client $status_client"
}

case_once() {
	local port
	port=$(free_port) status_server=0 status_client=0
	at_second_host=${there:-} SOFTRNIC_QP_PORTS=$server_ports serve server "$port" "${program[@]}" -p "$port"
	[ "$apart" != late ] || sleep 5
	SOFTRNIC_QP_PORTS=$client_ports soft "${program[@]}" -p "$port" "$address" >"$scratch/client.log" 2>&1 || status_client=$?
	wait "$server" || status_server=$?
	[ "$status_server$status_client" = 00 ] && ! grep -q ' ERROR ' "$scratch"/{server,client}.log
}

# Succeeds if the case failed by a known chance, which is no fault of this project: perftest could
# not measure the processor's clock, or one end of ibv_srq_pingpong ended before the other end
# (plain.sh).
is_by_chance() {
	has_no_rate && return 0
	case ${program[0]} in
	ibv_srq_pingpong) grep -q 'retry counter exceeded' "$scratch"/{server,client}.log ;;
	*) return 1 ;;
	esac
}

# ---- the table ----

# start_case ROW WAY SLOT: starts the case in the background, in a separate process.
start_case() {
	local network=() how=-n
	[ "$(id -u)" = 0 ] || how=-Urn
	[[ $2 != *-two-* ]] || network=(unshare "$how" env OWN_NETWORK=1)
	SLOT=$3 INTEROP_PORTS=$((INTEROP_PORTS + $3 * 100)) "${network[@]}" bash "$0" one "$1" "$2" >"$logs/$3" 2>&1 &
	row_of[$!]=$1 way_of[$!]=$2 slot_of[$!]=$3
}

# end_case PID STATUS: adds the result of the case whose process has ended.
end_case() {
	local pid=$1 status=$2
	local row=${row_of[$pid]} way=${way_of[$pid]} slot=${slot_of[$pid]}
	free_slots+=("$slot")
	unset "row_of[$pid]" "way_of[$pid]" "slot_of[$pid]"
	case $status in
	0) passed[$row]=$((${passed[$row]:-0} + 1)) ;;
	77) skipped[$row]=$((${skipped[$row]:-0} + 1)) ;;
	*)
		failed[$row]+=" $way"
		printf -- '---- %s (%s)\n' "$row" "$way" >&2
		cat "$logs/$slot" >&2
		;;
	esac
}

await_case() {
	local status=0 ended=
	wait -n -p ended "${!row_of[@]}" || status=$?
	end_case "$ended" "$status"
}

print_row() {
	printf '%-56s %3d passed' "$1" "${passed[$1]:-0}"
	[ -z "${skipped[$1]:-}" ] || printf ', %d left out' "${skipped[$1]}"
	[ -z "${failed[$1]:-}" ] || printf ', FAILED:%s' "${failed[$1]}"
	printf '\n'
}

run_all() {
	local row way slot
	local -A passed=() skipped=() failed=() row_of=() way_of=() slot_of=()
	local -a free_slots=()
	logs=$scratch/logs
	mkdir "$logs"
	for ((slot = 0; slot < jobs; slot++)); do
		free_slots+=("$slot")
	done
	while IFS= read -r row; do
		while read -r way; do
			[ ${#free_slots[@]} -gt 0 ] || await_case
			slot=${free_slots[-1]}
			unset 'free_slots[-1]'
			start_case "$row" "$way" "$slot"
		done < <(ways | grep -E -- "$cases")
	done < <(rows | grep -E -- "$pattern")
	while [ ${#row_of[@]} -gt 0 ]; do
		await_case
	done
	while IFS= read -r row; do
		print_row "$row"
	done < <(rows | grep -E -- "$pattern")
	[ ${#failed[@]} -eq 0 ] || return 1
	[ ${#passed[@]} -gt 0 ] || exit 77
}

export SOFTRNIC_IDENTITY=roce PAIR_LIMIT_S=${PAIR_LIMIT_S:-600}
: "${SOFTRNIC_RUN_FLAGS:=}" "${SOFTRNIC_REFUSED_MS:=5000}"
export SOFTRNIC_RUN_FLAGS SOFTRNIC_REFUSED_MS
if [ "${1:-}" = one ]; then
	[ -z "${OWN_NETWORK:-}" ] || own_network
	[ -z "${ASAN_RUNTIME:-}" ] || with_sanitizer
	one_case "$2" "$3"
	exit
fi
jobs=$(nproc) cases=. pattern=.
while getopts 'lj:c:' option; do
	case $option in
	l) rows && ways && exit ;;
	j) jobs=$OPTARG ;;
	c) cases=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
pattern=${1:-.}
run_all
