#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The promises of librpmafile to programs, with 'rpma serve': durable bytes are in the file under its name, and after a
# lost connection the client reports the undecided ranges.
self=$(realpath "$0")
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/lib.sh"

# start_filer NAME: starts a client that makes the calls of ask().
start_filer() {
	mkfifo "$1.in" "$1.reply"
	"$RPMA_FILER" <"$1.in" >"$1.reply" 2>"$1.err" &
	started+=("$!")
	declare -g "pid_$1=$!"
	exec {fd}>"$1.in"
	declare -g "in_$1=$fd"
	exec {fd}<"$1.reply"
	declare -g "out_$1=$fd"
}

# ask NAME CALL...: lets the client make a call, and sets $reply to its result.
ask() {
	local in=in_$1 out=out_$1
	shift
	echo "$*" >&"${!in}"
	IFS= read -r -t 60 -u "${!out}" reply || fail "no reply to '$*'"
}

# expect_reply PATTERN NAME CALL...: the result of the call must match.
expect_reply() {
	local pattern=$1
	shift
	ask "$@"
	[[ $reply =~ ^$pattern ]] || fail "'$*': '$reply' and not '$pattern'"
}

calls_are_ok() { # NAME, calls from standard input
	local call
	while read -r call; do
		expect_reply 'ok$' "$1" "$call"
	done
}

bytes_of() { # FILE OFFSET LENGTH CHARACTER: the file under its name must have these bytes, read by another process
	cmp <(tail -c "+$(($2 + 1))" "$1" | head -c "$3") <(head -c "$3" /dev/zero | tr '\0' "$4") ||
		fail "$1 has other bytes from $2"
}

test_what_was_written_is_found_under_the_name() {
	serve pool --create --size 4M
	start_filer a
	calls_are_ok a <<-CALLS
		open $where:pool
		write 100 1000 a
		write 8192 70000 b
		write 100 8 c
		write 1100 3000000 d
		sync
	CALLS
	bytes_of pool 100 8 c
	bytes_of pool 108 992 a
	bytes_of pool 1100 3000000 d
	expect_reply 'd$' a read 8192 70000
	expect_reply 'a$' a read 108 992
	expect_reply 'ok$' a verify 1100 3000000 d
	expect_reply "DIFFERS: the bytes from 1100 to 3001100 of region 'pool'" a verify 1100 3000000 e
	expect_reply '0:$' a undecided
	expect_reply 'ok$' a store8 4096 81
	expect_reply 'ok$' a close
	[ "$(tail -c +4097 pool | head -c 8 | od -An -td8 | tr -d ' ')" = 81 ] || fail "the word is not there"
	expect_ok "$rpma" get "$where" copy -l 4096 -o 0
	cmp -n 4096 copy pool || fail "the tool reads something else"
}

test_wrong_arguments_change_nothing() {
	serve pool --create --size 1M
	start_filer a
	expect_reply 'INVAL: write_offset and write_length' a open "$where" 1048576 1
	expect_reply 'INVAL: .*a member of options' a "open $where 0 0 0 1000 - $(printf x%.0s {1..65})"
	expect_reply 'ok$' a open "$where" 4096 8192
	expect_reply 'INVAL: .*outside the file' a write 1048000 1000 x
	expect_reply 'INVAL: .*not reserved' a write 4095 2 x
	expect_reply 'INVAL: .*not reserved' a write 12287 2 x
	expect_reply 'INVAL: .*not reserved' a store8 0 1
	expect_reply 'INVAL: .*multiple of 8' a store8 4100 1
	expect_reply 'INVAL: .*outside the file' a read 1048576 1
	expect_reply '0:$' a undecided
	expect_reply 'ok$' a close
	bytes_of pool 0 1048576 '\0'
	start_filer b
	expect_reply 'ok$' b open-readonly "$where"
	expect_reply 'INVAL: .*READONLY' b write 0 1 x
	expect_reply 'INVAL: .*READONLY' b sync
	expect_reply '0$' b read 0 100000
	expect_reply 'ok$' b close
}

test_refusals_say_why() {
	serve pool --create --size 1M
	start_filer a
	expect_reply "REFUSED: .*does not serve a region 'pol'" a open "$where:pol"
	expect_reply 'UNREACHED: .*does the server run' a open 127.0.0.1:1
	expect_reply 'INVAL: .*is not a region' a open "127.0.0.1:"
	head -c 32 /dev/urandom | base64 >secret
	chmod 600 secret
	expect_reply 'REFUSED: .*serves without a secret' a "open $where 0 0 0 10000 secret"
	stop_server
	serve pool --secret-file secret
	expect_reply 'REFUSED: .*requires a secret' a open "$where"
	expect_reply 'ok$' a "open $where 0 0 0 10000 secret"
	expect_reply 'ok$' a write 0 10 s
	expect_reply 'ok$' a close
	bytes_of pool 0 10 s
}

test_two_writers_have_separate_ranges() {
	serve pool --create --size 1M
	start_filer a
	start_filer b
	expect_reply 'ok$' a open "$where" 0 65536
	expect_reply 'REFUSED: another client writes' b open "$where"
	expect_reply 'REFUSED: another client writes' b open "$where" 65528 8
	expect_reply 'ok$' b open "$where" 65536 65536
	expect_reply 'ok$' a write 0 65536 a
	expect_reply 'ok$' b write 65536 65536 b
	expect_reply 'ok$' a close
	expect_reply 'ok$' b close
	bytes_of pool 0 65536 a
	bytes_of pool 65536 65536 b
	# After a writer has ended, a waiting writer gets its range.
	expect_reply 'ok$' a open "$where" 0 65536
	# shellcheck disable=SC2154 # start_filer assigns it
	kill -9 "$pid_a"
	expect_reply 'ok$' b open "$where" 0 0 10000
	expect_reply 'ok$' b close
}

test_a_killed_server_leaves_its_undecided_writes_named() {
	serve pool --create --size 4M
	start_filer a
	calls_are_ok a <<-CALLS
		open $where:pool 0 0 20000
		write 0 4096 a
		sync
		write 4096 1000 b
		write 100000 200000 c
		write 5096 24 b
	CALLS
	kill_server
	expect_reply 'LOST: .*; what was written since the last sync is undecided: see rpma_file_reopen\(3\)$' a sync
	expect_reply 'LOST: .*undecided' a write 0 1 x
	expect_reply 'LOST: ' a read 0 1
	expect_reply '2: 4096\+1024 100000\+200000$' a undecided
	bytes_of pool 0 4096 a
	serve_at_same_port pool
	expect_reply 'ok$' a reopen
	expect_reply '2: 4096\+1024 100000\+200000$' a undecided
	expect_reply 'a$' a read 0 4096
	calls_are_ok a <<-CALLS
		write 4096 1024 d
		write 100000 200000 e
		sync
	CALLS
	bytes_of pool 4096 1024 d
	bytes_of pool 100000 200000 e
	expect_reply '0:$' a undecided
	expect_reply 'ok$' a close
}

# serve_at_same_port FILE: serves the former server's file, at the former server's address.
serve_at_same_port() {
	: >serve.out
	"$rpma" serve --port "${where##*:}" "$@" >>serve.out 2>serve.err </dev/null &
	server=$!
	started+=("$server")
	wait_until 20 server_is_up_or_gone
}

# The first of two writers is cut off in the middle of its work: it must not continue with an
# outdated view of the file.
test_a_writer_that_another_one_followed_is_refused() {
	serve pool --create --size 1M
	start_filer a
	start_filer b
	calls_are_ok a <<-CALLS
		open $where:pool 0 0 20000
		write 0 4096 a
		sync
		write 4096 4096 a
	CALLS
	expect_reply '1$' a generation
	kill_server
	expect_reply 'LOST' a sync
	serve_at_same_port pool
	calls_are_ok b <<-CALLS
		open $where
		write 0 4096 b
		close
	CALLS
	expect_reply "TAKEN: another writer has taken over region 'pool' .*: claim 2, made at 20.* UTC, is newer than claim 1; close" \
		a reopen
	expect_reply 'TAKEN: ' a write 0 4096 a
	expect_reply 'TAKEN: ' a reopen
	expect_reply '1: 4096\+4096$' a undecided
	expect_reply '1$' a generation
	grep -q "refused client .*: its claim 1 of region 'pool' is no longer valid" serve.err ||
		fail "the server's log: $(cat serve.err)"
	# The same must hold after another server has taken over.
	kill_server
	serve_at_same_port pool
	expect_reply 'TAKEN: ' a close
	bytes_of pool 0 4096 b
	expect_reply 'ok$' a open "$where"
	expect_reply '3$' a generation
	expect_reply 'b$' a read 0 4096
	expect_reply 'ok$' a close
}

test_a_writer_alone_keeps_its_claim() {
	serve pool --create --size 1M
	start_filer a
	start_filer b
	expect_reply 'ok$' a open "$where" 0 65536 20000
	expect_reply 'ok$' b open-readonly "$where"
	expect_reply '0$' b generation
	expect_reply 'ok$' b close
	for round in 1 2 3; do
		kill_server
		expect_reply 'LOST' a sync
		serve_at_same_port pool
		# A writer of another range is allowed to continue.
		expect_reply 'ok$' b open "$where" 65536 65536
		expect_reply "$((round + 1))$" b generation
		expect_reply 'ok$' b close
		expect_reply 'ok$' a reopen
		expect_reply '1$' a generation
		expect_reply 'ok$' a write 0 4096 "$round"
		expect_reply 'ok$' a sync
		bytes_of pool 0 4096 "$round"
	done
	expect_reply 'ok$' a close
}

# A put counts as a writer, even if another put was refused meanwhile for another reason.
test_a_put_in_between_takes_the_claim() {
	serve pool --create --size 1M
	start_filer a
	expect_reply 'ok$' a open "$where" 0 0 20000
	kill_server
	expect_reply 'LOST' a sync
	serve_at_same_port pool
	head -c 100 /dev/zero | tr '\0' p >put
	expect_ok "$rpma" put put "$where"
	expect_reply 'TAKEN: .*claim 2' a reopen
	expect_reply 'TAKEN' a close
	bytes_of pool 0 100 p
}

# killed_at CALLS N: kills the server at the Nth of these system calls, while it stores the record
# of a second writer's claim. That writer must get no answer.
killed_at() {
	serve pool --create --size 1M
	start_filer a
	start_filer b
	expect_reply 'ok$' a open "$where" 0 0 20000
	kill_server
	expect_reply 'LOST' a sync
	serve_at_same_port pool
	strace -f -o trace -e "trace=$1" -e "inject=$1:signal=KILL:when=$2" -p "$server" 2>strace.err &
	started+=("$!")
	wait_until 10 grep -q attached strace.err || {
		echo "SKIPPED: no strace here, or it may not trace"
		exit 77
	}
	expect_reply '(LOST|UNREACHED)' b open "$where"
	wait_until 20 is_gone "$server" || fail "the server was not killed: $(cat trace)"
	serve_at_same_port pool
}

test_a_claim_counts_from_its_record_on() {
	killed_at fsync 2 # the sync of the folder
	expect_reply 'TAKEN: .*claim 2' a reopen
	expect_reply 'ok$' b open "$where"
	expect_reply '3$' b generation
	expect_reply 'ok$' b close
}

test_a_claim_without_a_record_was_none() {
	killed_at rename,renameat,renameat2,linkat 1
	expect_reply 'ok$' a reopen
	expect_reply '1$' a generation
	expect_reply 'ok$' a close
	expect_reply 'ok$' b open "$where"
	expect_reply '2$' b generation
	expect_reply 'ok$' b close
}

# A lost or damaged record has no claims. So a writer that connects again must not write, whatever
# its number is.
test_a_lost_record_lets_no_client_go_on() {
	serve pool --create --size 1M
	start_filer a
	for damage in 'rm pool.rpma' 'truncate -s 100 pool.rpma' 'printf x | dd of=pool.rpma bs=1 seek=100 conv=notrunc'; do
		expect_reply 'ok$' a open "$where" 0 0 20000
		kill_server
		expect_reply 'LOST' a sync
		eval "$damage" 2>/dev/null
		serve_at_same_port pool
		expect_reply "TAKEN: .*does not know claim 1 of region 'pool' any more: it was restarted" a reopen
		expect_reply 'TAKEN' a close
	done
}

# Memory has no record, so a claim ends with the process that serves the memory.
test_a_server_of_memory_that_was_started_anew_is_noticed() {
	serve_memory 127.0.0.1:0
	start_filer a
	expect_reply 'ok$' a open "$where:memory" 0 0 20000
	expect_reply '1$' a generation
	kill_server
	serve_memory "$where"
	expect_reply 'LOST' a sync
	expect_reply 'TAKEN: .*does not know claim 1' a reopen
	expect_reply 'TAKEN' a close
	expect_reply 'ok$' a open "$where:memory"
	expect_reply '1$' a generation
	expect_reply 'ok$' a close
	kill_server
}

# The test runs in a separate mount namespace. The bytes of a region are allocated on the disk, so
# on a full disk a writer can write if its claim has a record.
alone_test_a_full_disk_keeps_no_writer_out() {
	local record
	mkdir disk
	mount -t tmpfs -o size=3M tmpfs disk
	serve disk/pool --create --size 1M --allow-volatile
	start_filer a
	start_filer b
	dd if=/dev/zero of=disk/filler bs=4096 2>/dev/null || :
	expect_reply 'REFUSED: .*cannot write the record of region' a open-volatile "$where"
	grep -q "region 'pool': the record of its content cannot be written to .*/pool.rpma: No space left on device" serve.err ||
		fail "the server's log: $(cat serve.err)"
	rm disk/filler
	expect_reply 'ok$' a open-volatile "$where" 0 0 20000
	dd if=/dev/zero of=disk/filler bs=4096 2>/dev/null || :
	record=$(stat -c %i disk/pool.rpma)
	expect_reply 'ok$' b open-readonly "$where"
	expect_reply 'ok$' b close
	kill_server
	expect_reply 'LOST' a sync
	rm disk/filler # a starting server needs room
	serve_at_same_port disk/pool --allow-volatile
	dd if=/dev/zero of=disk/filler bs=4096 2>/dev/null || :
	expect_reply 'ok$' b open-volatile "$where"
	expect_reply '3$' b generation
	expect_reply 'ok$' b close
	expect_reply 'TAKEN: .*claim 3' a reopen
	[ "$record" = "$(stat -c %i disk/pool.rpma)" ] || fail "the disk was not full"
	[ "$(ls disk)" = $'filler\npool\npool.rpma' ] || fail "there is more: $(ls disk)"
	kill_server
	rm disk/filler
	serve_at_same_port disk/pool --allow-volatile
	expect_reply 'ok$' b open-volatile "$where"
	expect_reply '4$' b generation
	kill_server
	umount disk
}

test_a_full_disk_keeps_no_writer_out() {
	unshare -rm true 2>/dev/null || exit 77
	unshare -rm bash "$self" alone a_full_disk_keeps_no_writer_out
}

# stop_client NAME: stops the client; the server does not notice that for a long time.
stop_client() {
	local pid=pid_$1
	kill -STOP "${!pid}"
	wait_until 20 is_stopped "${!pid}"
}
is_stopped() { ! grep -h '^State:' "/proc/$1/task/"*/status | grep -qv T; }

# A former process of a program was killed, hangs, or is cut off. Its successor need not wait until
# the server notices, and afterwards no byte of the former process arrives.
test_a_successor_ends_what_its_stopped_predecessor_has() {
	serve pool --create --size 1M
	start_filer a
	start_filer b
	expect_reply 'ok$' a "open $where 0 0 0 10000 - orders"
	expect_reply 'ok$' a write 0 4096 a
	expect_reply 'ok$' a sync
	stop_client a
	expect_reply 'REFUSED: another client writes' b open "$where"
	expect_reply 'REFUSED: another client writes' b "open $where 0 0 0 10000 - others"
	expect_reply 'ok$' b "open $where 0 0 0 10000 - orders"
	expect_reply '2$' b generation
	expect_reply 'ok$' b write 0 4096 b
	expect_reply 'ok$' b sync
	kill -CONT "$pid_a"
	expect_reply 'ok$' a write 0 4096 a
	expect_reply 'LOST' a sync
	expect_reply 'TAKEN: .*claim 2' a reopen
	# The stopped client has the same name. So when it continued, it ended the connection of its
	# successor, which still has its claim.
	expect_reply 'TAKEN' a close
	expect_reply 'LOST' b sync
	expect_reply 'ok$' b reopen
	expect_reply 'b$' b read 0 4096
	expect_reply 'ok$' b close
	bytes_of pool 0 4096 b
}

# The server is stopped, too, so that the killed client's bytes wait in the server's socket when the
# next client comes.
test_bytes_of_a_killed_client_do_not_land_after_its_successor_has_opened() {
	serve pool --create --size 4M
	start_filer a
	start_filer b
	expect_reply 'ok$' a "open $where 0 0 0 10000 - orders"
	kill -STOP "$server"
	wait_until 20 all_threads_stopped
	expect_reply 'ok$' a write 0 60000 a
	expect_reply 'ok$' a start
	kill -9 "$pid_a"
	# shellcheck disable=SC2154 # start_filer assigns it
	echo "open $where 0 0 20000 10000 - orders" >&"$in_b"
	sleep 0.2
	kill -CONT "$server"
	IFS= read -r -t 60 -u "$out_b" reply || fail "no reply"
	[ "$reply" = ok ] || fail "the successor: $reply"
	expect_reply 'ok$' b write 0 60000 b
	expect_reply 'ok$' b sync
	sleep 0.3
	bytes_of pool 0 60000 b
	expect_reply 'ok$' b close
	bytes_of pool 0 60000 b
}

all_threads_stopped() { ! grep -h '^State:' "/proc/$server/task/"*/status | grep -qv T; }

# When a connection is lost the buffer of a read that is under way must no longer change, even if
# the answer arrives later.
test_a_ticket_of_a_lost_connection_is_lost() {
	serve pool --create --size 1M
	start_filer a
	calls_are_ok a <<-CALLS
		open $where:pool 0 0 20000
		write 0 4096 a
		start
		wait 10000
		start-read 0 4096
		wait 10000
	CALLS
	expect_reply 'a$' a buffer 4096
	kill -STOP "$server"
	wait_until 20 all_threads_stopped
	expect_reply 'ok$' a write 0 4096 b
	expect_reply 'ok$' a start
	expect_reply 'AGAIN' a wait 50
	expect_reply 'ok$' a start-read 0 300000
	expect_reply 'AGAIN' a wait 50
	kill_server
	expect_reply 'LOST' a wait 20000
	expect_reply '\?$' a buffer 300000
	serve_at_same_port pool
	expect_reply 'ok$' a reopen
	expect_reply '\?$' a buffer 300000
	expect_reply 'LOST: the connection of that sync .*: see rpma_file_get_undecided' a wait 1000
	expect_reply 'ok$' a sync
	expect_reply 'LOST: the connection of that sync' a wait 1000
	expect_reply 'ok$' a close
}

test_a_file_that_is_replaced_is_gone() {
	serve pool --create --size 1M
	start_filer a
	expect_reply 'ok$' a open "$where"
	expect_reply 'ok$' a write 0 4096 a
	expect_reply 'ok$' a sync
	cp pool other && mv other pool
	expect_reply 'GONE: .*was replaced by another file' a close
	expect_reply 'GONE: .*was replaced by another file' a open "$where"
}

test_a_file_that_is_truncated_is_gone() {
	serve pool --create --size 1M
	start_filer a
	expect_reply 'ok$' a open "$where"
	truncate -s 4096 pool
	expect_reply 'ok$' a write 65536 1000 a
	expect_reply 'GONE: ' a sync
	expect_reply 'GONE: ' a close
}

test_volatile_memory_is_refused_unless_it_is_asked_for() {
	local file
	file=$(mktemp -p /dev/shm rpma-file-XXXXXX)
	truncate -s 1M "$file"
	serve "$file" --allow-volatile
	start_filer a
	expect_reply 'NOSUPP: .*RPMA_FILE_VOLATILE_OK' a open "$where"
	expect_reply 'ok$' a open-volatile "$where"
	expect_reply 'ok$' a write 0 100 v
	expect_reply 'ok$' a sync
	expect_reply 'NOSUPP' a verify 0 100 v
	bytes_of "$file" 0 100 v
	expect_reply 'ok$' a close
	rm -f "$file" "$file.rpma"
}

# Runs the first steps of README.md and librpmafile(7), which store the first durable bytes.
test_the_hello_is_durable() {
	serve pool --create --size 1M
	expect_ok "$RPMA_EXAMPLES/file-hello" "$where:pool"
	stop_server
	[ "$(head -c 18 pool)" = "durable over there" ] || fail "it is not there"
}

# serve_memory ADDRESS: starts a program that serves its own memory, which is a mapped file.
serve_memory() {
	: >serve.out
	"$RPMA_EXAMPLES/file-serve" "$1" mapped >>serve.out 2>serve.err &
	server=$!
	started+=("$server")
	wait_until 20 server_is_up_or_gone
	where=127.0.0.1:$(sed -n 's/.* at port //p' serve.out)
}

test_memory_of_a_program_is_served() {
	serve_memory 127.0.0.1:0
	expect_ok "$RPMA_EXAMPLES/file-hello" "$where"
	start_filer a
	expect_reply 'ok$' a open-readonly "$where:memory"
	expect_reply 'd$' a read 0 1
	expect_reply 'ok$' a close
	[ "$(head -c 18 mapped)" = "durable over there" ] || fail "it is not there"
	expect_ok "$rpma" put "$0" "$where"
	cmp -n "$(wc -c <"$0")" "$0" mapped || fail "the tool's put is not there"
	kill_server
}

has_lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }

# After the server and the client of a log were killed, the log must contain exactly the
# acknowledged lines, in order.
test_the_log_survives_both_ends() {
	local writer killed size
	serve pool --create --size 4M
	seq 1 300 | while read -r n; do echo "$n" && sleep 0.001; done |
		"$RPMA_EXAMPLES/wal" "$where" append >acks 2>wal.err &
	writer=$!
	started+=("$writer")
	wait_until 20 has_lines acks 50 || fail "nothing is acknowledged: $(cat wal.err)"
	kill_server
	serve_at_same_port pool
	wait "$writer" || fail "the writer ends with $?: $(cat wal.err)"
	"$RPMA_EXAMPLES/wal" "$where" show | cmp - <(seq 1 300) || fail "not all of the log is there"
	mv acks acks1
	yes line | "$RPMA_EXAMPLES/wal" "$where" append >acks 2>wal.err &
	writer=$!
	started+=("$writer")
	wait_until 20 has_lines acks 3 || fail "nothing is acknowledged to the second writer: $(cat wal.err)"
	kill -9 "$writer"
	killed=$(tail -n 1 acks | sed 's/.* //')
	"$RPMA_EXAMPLES/wal" "$where" show | tail -n +301 >lines
	[ "$(sort -u lines)" = line ] || fail "a line is torn"
	# A group of lines has a head of 8 bytes, and was acknowledged once.
	killed=$((killed - 8 * $(cat acks1 acks | grep -c '[0-9]$')))
	size=$(($(seq 1 300 | wc -c) + $(wc -c <lines)))
	[ "$killed" -le "$size" ] || fail "$killed bytes were acknowledged, and there are $size"
}

# another_writer_meanwhile LINE...: appends to a log whose writer is stopped, while the server is
# killed and started again. The stopped writer must notice the other writer when it continues, so
# that the other writer's acknowledged lines stay.
another_writer_meanwhile() {
	local writer input
	serve pool --create --size 1M
	mkfifo input
	"$RPMA_EXAMPLES/wal" "$where" append <input >acks 2>wal.err &
	writer=$!
	started+=("$writer")
	exec {input}>input
	echo one >&"$input"
	wait_until 20 has_lines acks 1 || fail "nothing is acknowledged: $(cat wal.err)"
	kill -STOP "$writer"
	kill_server
	serve_at_same_port pool
	printf '%s\n' "$@" | "$RPMA_EXAMPLES/wal" "$where" append >other || fail "the other writer ends with $?"
	echo two >&"$input"
	kill -CONT "$writer"
	wait_until 20 is_gone "$writer" || fail "the former writer goes on: $(cat acks)"
	exec {input}>&-
	wait "$writer" && fail "the former writer ends as if nothing had happened"
	grep -q '^wal: another writer has taken over .*: claim 2, made ' wal.err || fail "the former writer says: $(cat wal.err)"
	has_lines acks 2 && fail "what the former writer did not write was acknowledged to it"
	"$RPMA_EXAMPLES/wal" "$where" show | cmp - <(printf '%s\n' one "$@") || fail "another log is there"
}

test_a_writer_that_comes_back_leaves_what_another_has_written() { another_writer_meanwhile B1 B2 B3; }
test_a_writer_that_comes_back_knows_its_own_words_from_another_s() { another_writer_meanwhile two; }

if [ "$1" = alone ]; then
	"alone_test_$2"
else
	"test_$1"
fi
