#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Demonstrates the main task: a real file is written to remote memory on a real disk. The server is
# killed by SIGKILL during a second transfer, and all acknowledged bytes are still on the disk.
# usage: tools/demo.sh BUILD_DIR
set -euo pipefail
export LC_ALL=C

build=$(realpath "${1:?usage: demo.sh BUILD_DIR}")
rpma=$build/tools/rpma
[ -x "$rpma" ] || {
	echo "demo: $rpma is not built" >&2
	exit 1
}

size=$((80 << 20))
flush_every=$((1 << 20))
kill_after=12 # number of acknowledgements

exec 3>&2 # for fail(), even while the messages of the shell itself are discarded
step=0
server='' putter='' dir=''

say() {
	step=$((step + 1))
	printf '\n\033[1m%d. %s\033[0m\n' "$step" "$*"
}
tell() { printf '   %s\n' "$*"; }
fail() {
	printf '\ndemo: FAILED: %s\n' "$*" >&3
	exit 1
}

# End only processes that this script started, by their process ids.
cleanup() {
	local pid
	for pid in $putter $server; do
		kill -9 "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	[ -z "$dir" ] || rm -rf "$dir"
}
trap cleanup EXIT

dir=$(mktemp -d "$build/demo.XXXXXX")
fs=$(df --output=fstype "$dir" | tail -n 1)
case "$fs" in
tmpfs | ramfs) fail "$dir is on $fs, which is memory; the demo needs a build tree on a real disk" ;;
esac
file=$dir/region

system_files() { find /usr/lib /usr/bin /usr/share -type f -size +16k 2>/dev/null | sort; }

# Concatenates files of the system, and makes a second file, which differs from the first in every
# byte. head ends the pipe early, which is no failure.
make_files() {
	{ system_files | xargs -d '\n' cat 2>/dev/null || :; } | head -c "$size" >"$dir/first"
	[ "$(stat -c %s "$dir/first")" -ge $((64 << 20)) ] ||
		fail "the system's libraries do not add up to 64 MiB"
	size=$(stat -c %s "$dir/first")
	tr '\000-\377' '\001-\377\000' <"$dir/first" >"$dir/second"
}

start_server() {
	local i
	rm -f "$dir/announcement"
	"$rpma" serve --port 0 --region demo "$@" "$file" >"$dir/announcement" 2>"$dir/serve.log" &
	server=$!
	for ((i = 0; i < 300; i++)); do
		[ ! -s "$dir/announcement" ] || break
		kill -0 "$server" 2>/dev/null || fail "the server ended: $(cat "$dir/serve.log")"
		sleep 0.05
	done
	[ -s "$dir/announcement" ] || fail "the server did not start within 15 s"
	tell "$(cat "$dir/announcement")"
	where=$(sed -n "s/.* at \([^ ]*:[0-9]*\): .*/\1/p" "$dir/announcement")
	grep -q 'durability \(file\|dax\)$' "$dir/announcement" ||
		fail "the server does not call this memory persistent"
}

collect_the_dead() {
	local rc=0
	wait "$server" || :
	server=''
	wait "$putter" || rc=$?
	putter=''
	[ "$rc" = 1 ] || fail "the second put ended with $rc, although its server was killed"
}

# Reads each acknowledgement when it arrives. After the number kill_after, kills the server.
put_and_kill() {
	local line acknowledgements=0
	mkfifo "$dir/acks"
	"$rpma" put --offset "$size" --flush-every "$flush_every" --verbose \
		"$dir/second" "$where" >"$dir/acks" 2>"$dir/put.log" &
	putter=$!
	acked=$size
	while read -r line; do
		case "$line" in
		"flushed up to offset "*)
			acked=${line##* }
			acknowledgements=$((acknowledgements + 1))
			[ "$acknowledgements" -ne "$kill_after" ] || kill -9 "$server"
			;;
		esac
	done <"$dir/acks"
	rm "$dir/acks"
	[ "$acknowledgements" -ge "$kill_after" ] ||
		fail "the second put ended after $acknowledgements acknowledgements: $(cat "$dir/put.log")"
	collect_the_dead
	tell "the client says: $(grep '^rpma put' "$dir/put.log")"
	tell "$acknowledgements flushes were acknowledged: $((acked - size)) of $size bytes"
}

first_difference() { # of the second file and its range in the region; counts from 0
	local found
	found=$({ cmp -i "0:$size" "$dir/second" "$file" || :; } 2>/dev/null |
		sed -nE 's/.* (byte|char) ([0-9]+),.*/\2/p')
	echo "$((${found:-$((size + 1))} - 1))"
}

compare() {
	local reached
	cmp -n "$size" "$dir/first" "$file" || fail "the first file is damaged"
	tell "the first file, acknowledged as a whole:   intact ($size bytes)"
	cmp -i "0:$size" -n "$((acked - size))" "$dir/second" "$file" ||
		fail "bytes of the second file are missing although their flush was acknowledged"
	tell "the second file, acknowledged part:        intact ($((acked - size)) bytes)"
	reached=$(first_difference)
	[ "$reached" -lt "$size" ] || fail "the second put was complete; nothing was interrupted"
	tell "the second file, never acknowledged:       stops at byte $reached of $size"
}

printf '\033[1mA durable remote write without RDMA hardware\033[0m (%s on %s)\n' "$dir" "$fs"

say "A server exports a new file as remote memory"
make_files
start_server --create --size "$((2 * size))"

say "A client puts $((size >> 20)) MiB of system libraries into it, flushed to the disk and read back from it"
"$rpma" put "$dir/first" "$where" | sed 's/^/   /'

say "During a second put, behind the first, the server is killed with SIGKILL"
put_and_kill 2>/dev/null # discard the shell's message "Killed"

say "What the dead server's file holds"
compare

say "The server is started again, the first file is read back"
start_server
"$rpma" get --length "$size" "$where" "$dir/back" | sed 's/^/   /'
sent=$(sha256sum <"$dir/first")
back=$(sha256sum <"$dir/back")
tell "sha256 sent:     ${sent%% *}"
tell "sha256 got back: ${back%% *}"
[ "$sent" = "$back" ] || fail "the digests differ"

say "How long it takes"
"$rpma" ping "$where" | sed 's/^/   /'

kill -TERM "$server"
wait "$server" || fail "the server did not end cleanly: $(cat "$dir/serve.log")"
server=''
printf '\n\033[1mEverything that was acknowledged survived.\033[0m (%d s)\n' "$SECONDS"
