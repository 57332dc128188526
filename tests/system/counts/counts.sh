#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# counts.sh calls|allocations|instructions|rings|polled|librpma: compares the cost of operations, at both ends together,
# with bounds that are slightly above the present cost, so that also a small growth fails. doc/performance.md has the
# same numbers and their reasons.
set -euo pipefail
: "${COUNTS:?the program}" "${RPMA_DIR:?librpma}" "${SOFTRNIC_DIR:?libsoftrnic}"

export RPMA_PROVIDER=softrnic SOFTRNIC_SPIN_US=0 SOFTRNIC_SHM=0
ours=$RPMA_DIR:$SOFTRNIC_DIR
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

skip() {
	echo "$*"
	exit 77
}

# run LIBRARIES PRELOAD N WORK HOW COMMAND...: runs the program under COMMAND, at a free port.
run() {
	local libraries=$1 preload=$2 n=$3 work=$4 how=$5 port
	shift 5
	for _ in 1 2 3; do
		port=$((20000 + RANDOM % 10000))
		if env LD_LIBRARY_PATH="$libraries" ${preload:+LD_PRELOAD="$preload"} PORT=$port \
			timeout 60 "$@" "$COUNTS" "$n" "$work" "$how" >"$scratch/out" 2>&1; then
			return 0
		fi
	done
	cat "$scratch/out"
	echo "$work $how: the program failed"
	exit 1
}

# check WHAT COUNT BOUND: fails if the count is above the bound; both are in hundredths.
check() {
	local verdict=ok
	if [ "$2" -gt "$3" ]; then
		verdict="MORE THAN IT MAY BE"
		failed=1
	fi
	printf '%-34s %8s of at most %8s  %s\n' "$1" "$(hundredths "$2")" "$(hundredths "$3")" "$verdict"
}
# The difference of two runs can be negative by chance.
hundredths() {
	local n=$1 sign=
	[ "$n" -ge 0 ] || { sign=- n=$((-n)); }
	printf '%s%d.%02d' "$sign" $((n / 100)) $((n % 100))
}

# --- system calls ---------------------------------------------------------------------------

# calls_of FILE NAMES BOUNDED: prints the number of successful calls. NAMES is NAME|NAME for calls of
# these names; or "others" for calls that are not in BOUNDED, the names with a bound of their own; or
# "in vain NAME|NAME" for calls that failed, such as receives without bytes. Calls that wait for a
# lock (futex) are not counted, because their number is random.
calls_of() {
	awk -v name="${2#in vain }" -v vain="${2%% *}" -v known="^($3|futex|total)$" '
		name == "others" ? $1 !~ known : $1 ~ "^(" name ")$" {
			n += vain == "in" ? $3 : $2 - $3 } END { print n + 0 }' "$1"
}

# bounded_names NAMES BOUND ...: prints the names of all calls that have a bound, as NAME|NAME.
bounded_names() {
	local names=
	while [ $# -gt 0 ]; do
		names+=${names:+|}${1#in vain }
		shift 2
	done
	echo "$names"
}

# calls WORK HOW NAMES BOUND ...: checks the number of calls for each operation, in hundredths. The
# number is the difference of two runs, because both include the start and the end of the program.
calls() {
	local work=$1 how=$2 few=100 many=600 bounded n more less
	shift 2
	bounded=$(bounded_names "$@")
	for n in $few $many; do
		run "$ours" "" $n "$work" "$how" \
			strace -f -qq -c -U name,calls,errors -o "$scratch/$n"
	done
	while [ $# -gt 0 ]; do
		more=$(calls_of "$scratch/$many" "$1" "$bounded")
		less=$(calls_of "$scratch/$few" "$1" "$bounded")
		check "$work, $how: $1" $(((more - less) * 100 / (many - few))) "$2"
		shift 2
	done
}

# A program under strace is slow. So it has more wake-ups by timers, and the time between its waits
# is too long for a lease. The counts include the calls that result, which are rare without strace.
#
# The engine or the thread that waits receives the answer, whichever runs first. If it is the engine,
# the thread is woken by the event descriptor, so the calls for this (read, write, poll, fcntl,
# epoll_ctl) have bounds that suffice if this happens every time.
count_calls() {
	local sends='sendmsg|sendto' receives='recvmsg|recvfrom'
	local woken=(read 120 write 120 fcntl 380 others 20) once=(poll 140 epoll_ctl 260) twice=(poll 240 epoll_ctl 460)
	command -v strace >/dev/null || skip "there is no strace"
	calls write wait "$sends" 240 "$receives" 240 "in vain $receives" 180 epoll_wait 370 timerfd_settime 180 "${woken[@]}" "${once[@]}"
	calls write poll "$sends" 240 "$receives" 240 timerfd_settime 150
	calls batch wait "$sends" 240 "$receives" 240 "in vain $receives" 180 epoll_wait 370 timerfd_settime 180 "${woken[@]}" "${once[@]}"
	calls read wait "$sends" 240 "$receives" 240 "in vain $receives" 180 epoll_wait 270 timerfd_settime 80 "${woken[@]}" "${once[@]}"
	calls send wait "$sends" 240 "$receives" 240 "in vain $receives" 260 epoll_wait 300 timerfd_settime 100 "${woken[@]}" "${twice[@]}"
}

# --- allocations, and mutexes that are taken by a call ----------------------------------------

# sum_of COLUMN FILE: prints the sum of a column over all processes.
sum_of() { awk -v column="$1" '{ n += $column } END { print n + 0 }' "$2"; }

# allocations WORK HOW [MUTEXES]: checks the numbers of allocations and of locked mutexes. MUTEXES
# is a bound in hundredths; it is omitted for work in which each early poll locks some mutexes.
allocations() {
	local few=200 many=1200 n what column=0 less more bound
	for n in $few $many; do
		rm -f "$scratch/allocations.$n"
		run "$ours" "$ALLOCATIONS_PRELOAD" $n "$1" "$2" env ALLOCATIONS="$scratch/allocations.$n"
	done
	for what in allocations ${3:+"calls that take a mutex"}; do
		column=$((column + 1))
		bound=${3:-}
		# A timer or a thread that starts during one of the two runs can add some
		# allocations.
		[ $column = 2 ] || bound=2
		less=$(sum_of $column "$scratch/allocations.$few")
		more=$(sum_of $column "$scratch/allocations.$many")
		[ "$less" -gt 50 ] || {
			echo "$what are not counted"
			exit 1
		}
		check "$1, $2: $what" $(((more - less) * 100 / (many - few))) "$bound"
	done
}

count_allocations() {
	allocations write wait 1600
	allocations write poll
	allocations batch wait 1600
	allocations read wait 1800
	allocations send wait 1800
	export SOFTRNIC_SHM=1
	allocations write wait 1600
	allocations batch wait 1600
}

# --- instructions ---------------------------------------------------------------------------

# all_instructions N: prints the instructions of both processes. If one process is both ends, only
# those of its working thread are counted.
all_instructions() {
	awk '/^(summary|totals):/ && !seen[FILENAME]++ { n += $2 } END { print n }' "$scratch"/cg."$1".*
}

# instructions WORK BOUND [HOW PRELOAD OPTION]: checks the number of instructions for one operation.
instructions() {
	local few=300 many=1300 how=${3:-wait} n
	for n in $few $many; do
		run "$ours" "${4:-}" $n "$1" "$how" taskset -c 0 valgrind --quiet --tool=callgrind ${5:-} \
			--callgrind-out-file="$scratch/cg.$n.%p"
		rm -f "$scratch"/cg.$n.*-0[2-9] "$scratch"/cg.$n.*-[1-9]?
	done
	check "$1, $how: instructions" \
		$((($(all_instructions $many) - $(all_instructions $few)) * 100 / (many - few))) "${2}00"
	rm -f "$scratch"/cg.*
}

count_instructions() {
	command -v valgrind >/dev/null || skip "there is no valgrind"
	instructions write "$BOUND_WRITE"
	instructions batch "$BOUND_BATCH"
	instructions read "$BOUND_READ"
	instructions send "$BOUND_SEND"
}

# Counts the instructions over rings in shared memory.
count_rings() {
	command -v valgrind >/dev/null || skip "there is no valgrind"
	export SOFTRNIC_SHM=1
	instructions write "$BOUND_RINGS_WRITE"
	instructions batch "$BOUND_RINGS_BATCH"
}

# Counts the instructions of one thread that polls both ends. Under valgrind the polls are too slow
# for a lease, so the clock also runs 200 times as slowly.
count_polled() {
	command -v valgrind >/dev/null || skip "there is no valgrind"
	export SOFTRNIC_SHM=1
	instructions write "$BOUND_POLLED_WRITE" both "$SLOW_CLOCK" --separate-threads=yes
	instructions batch "$BOUND_POLLED_BATCH" both "$SLOW_CLOCK" --separate-threads=yes
	instructions send "$BOUND_POLLED_SEND" both "$SLOW_CLOCK" --separate-threads=yes
}

# --- instructions in librpma itself, compared with another librpma -----------------------------

# own_of N: prints the instructions in librpma.so itself, of the process that has more of them.
own_of() {
	local f
	for f in "$scratch"/cg."$1".*; do
		callgrind_annotate --threshold=100 "$f" 2>/dev/null |
			awk '/librpma\.so/ { gsub(",", "", $1); n += $1 } END { print n + 0 }'
	done | sort -n | tail -1
}

# own LIBRARIES PRELOAD: prints the instructions for each operation, in hundredths.
own() {
	local few=300 many=1300 n
	for n in $few $many; do
		run "$1" "$2" $n write wait taskset -c 0 \
			valgrind --quiet --tool=callgrind --callgrind-out-file="$scratch/cg.$n.%p"
	done
	echo $((($(own_of $many) - $(own_of $few)) * 100 / (many - few)))
	rm -f "$scratch"/cg.*
}

# Compares two kinds of work: a write, a flush and the poll that finds the completion, and the same
# with the waits before the poll.
count_librpma() {
	local theirs
	command -v valgrind >/dev/null || skip "there is no valgrind"
	[ -n "${THEIR_LIBDIR:-}" ] || skip "there is no librpma of the distribution"
	theirs=$(own "$THEIR_LIBDIR:$SOFTRNIC_DIR" "$INTERPOSER")
	check "librpma's own instructions" "$(own "$ours" "")" $((theirs - 1))
}

case ${1:-} in
calls | allocations | instructions | rings | polled | librpma) ;;
*) exit 2 ;;
esac
# Another process on the same CPU adds wake-ups by timers. A real growth of the number appears in
# each repetition.
for _ in 1 2 3; do
	failed=0
	"count_$1"
	[ $failed = 1 ] || break
done
exit $failed
