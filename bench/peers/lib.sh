# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by bench/peers/NAME.sh: functions for the words of a case, a target in the background, and a line of JSON.
# ../README.md explains the words and the environment.
set -euo pipefail

: "${BENCH_ADDR:=127.0.0.1}" "${BENCH_LINK:=loopback}" "${BENCH_TARGET:=}" "${BENCH_INITIATOR:=}"
: "${BENCH_BIN:=$(dirname "${BASH_SOURCE[0]}")/../../build-release/bench}"

skip() {
	echo "$*" >&2
	exit 77
}
fail() {
	echo "$*" >&2
	exit 1
}

have() { command -v "$1" >/dev/null; }

declare -A word=([who]='' [work]='' [size]=64 [depth]=1 [every]=1 [conns]=1 [flush]=visible [where]=memory [ms]=200)
take_words() {
	local pair
	for pair; do
		word[${pair%%=*}]=${pair#*=}
	done
}

# The files of a run are removed at its end. The folder is in memory, because UCX keeps its shared
# memory in it.
scratch=$(mktemp -d -p /dev/shm bench-peer.XXXXXX 2>/dev/null || mktemp -d)
target=''
clean_up() {
	[ -z "$target" ] || kill -TERM "$target" 2>/dev/null || :
	rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

# limit COMMAND...: ends the command after a time limit: the duration of the measurement and
# BENCH_LIMIT_S seconds. A slow machine can need a larger BENCH_LIMIT_S.
limit() { timeout -k 1 $((word[ms] / 1000 + ${BENCH_LIMIT_S:-30})) "$@"; }

# is_listening PORT: succeeds if a program listens at the port in the target's namespace.
is_listening() {
	local hex
	hex=$(printf ':%04X' "$1")
	# shellcheck disable=SC2086 # words to put in front
	$BENCH_TARGET cat /proc/net/tcp /proc/net/tcp6 |
		awk -v port="$hex" '$4 == "0A" && index($2, port) == length($2) - 4 { found = 1 } END { exit !found }'
}

# free_port: prints a free port below those that the kernel assigns. A program may use the next two
# ports for a moment, too.
free_port() {
	local port
	for _ in {1..100}; do
		port=$((13000 + RANDOM % 6000))
		is_listening $port || is_listening $((port + 1)) || is_listening $((port + 2)) || {
			echo $port
			return
		}
	done
	fail "no free port"
}

# start_target PORT COMMAND...: runs the command in the background, and waits until it listens.
start_target() {
	local port=$1
	shift
	# shellcheck disable=SC2086
	limit $BENCH_TARGET "$@" >"$scratch/target.log" 2>&1 </dev/null &
	target=$!
	for _ in {1..200}; do
		! is_listening "$port" || return 0
		kill -0 "$target" 2>/dev/null || fail "the target ended: $(tail -n 1 "$scratch/target.log")"
		sleep 0.02
	done
	fail "the target does not listen"
}

# finish_target: waits until the target ends by itself, or kills it after some time.
finish_target() {
	for _ in {1..50}; do
		kill -0 "$target" 2>/dev/null || break
		sleep 0.02
	done
	kill -TERM "$target" 2>/dev/null || :
	wait "$target" 2>/dev/null || :
	target=''
}

initiator() {
	# shellcheck disable=SC2086
	limit $BENCH_INITIATOR "$@" </dev/null
}

# print_line MORE: prints the case and the results as members of JSON.
print_line() {
	printf '{"who":"%s","work":"%s","link":"%s","size":%s,"depth":%s,"every":%s,"conns":%s,"flush":"%s",%s}\n' \
		"${word[who]}" "${word[work]}" "$BENCH_LINK" "${word[size]}" "${word[depth]}" "${word[every]}" \
		"${word[conns]}" "${word[flush]}" "$1"
}

peer_main() {
	case "${1:-}" in
	list) peer_list ;;
	run)
		shift
		take_words "$@"
		peer_run
		;;
	*) fail "usage: ${0##*/} list | run WORD=VALUE..." ;;
	esac
}

# The sizes in the plots.
# shellcheck disable=SC2034 # for those that source this
sizes=(8 64 512 4096 32768 262144 1048576)
