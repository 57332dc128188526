# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Helpers for the tests of the rpma program.
# shellcheck source=tests/system/lib/processes.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/processes.sh"

# shellcheck disable=SC2153 # set by CMakeLists.txt
rpma=$RPMA_TOOL
logs=(serve.err)
server='' where=''

# expect CODE PATTERN COMMAND...: the command must end with that exit code, and print exactly one
# line on stderr, which matches.
expect() {
	local want=$1 pattern=$2 got=0
	shift 2
	"$@" >out 2>err </dev/null || got=$?
	[ "$got" = "$want" ] || fail "'$*' exits with $got instead of $want: $(cat err)"
	[ "$(wc -l <err)" = 1 ] || fail "'$*' prints not one line on stderr: $(cat err)"
	grep -qE "^rpma( [a-z]+)?: .*$pattern" err || fail "'$*' does not say '$pattern': $(cat err)"
}

expect_ok() {
	"$@" >out 2>err </dev/null || fail "'$*' exits with $?: $(cat err)"
}

# serve FILE [OPTIONS AND FURTHER FILES, which come before FILE]: starts a server at a free port.
# $server is its process id, and $where its address. try_serve is like serve, but returns false if
# no server starts; serve.err has the reason.
try_serve() {
	local file=$1
	shift
	: >serve.out
	"$rpma" serve --port 0 "$@" "$file" >>serve.out 2>serve.err </dev/null &
	server=$!
	started+=("$server")
	wait_until 20 server_is_up_or_gone
	where=$(sed -nE -e '1s/.* at ([^ ]*:[0-9]+): .*/\1/p' \
		-e '1s/^\{"addr":"([^"]*)","port":([0-9]+),.*/\1:\2/p' serve.out)
	[ -n "$where" ]
}
serve() { try_serve "$@" || fail "the server announced nothing"; }

server_is_up_or_gone() { [ -s serve.out ] || is_gone "$server"; }

stop_server() {
	kill -TERM "$server"
	wait "$server" || fail "the server ends with $? after SIGTERM"
}

# kill_server: kills the server. When the function returns, no process uses the file.
kill_server() {
	kill -9 "$server"
	wait "$server" 2>/dev/null || :
}

random_file() { # NAME BYTES
	head -c "$2" /dev/urandom >"$1"
}

# on_small_disk SIZE COMMAND...: runs the command with a small file system at ./disk, which no other
# process sees. If the kernel forbids this, the test is skipped with the reason.
on_small_disk() {
	local size=$1
	shift
	mkdir -p disk
	unshare -rm true 2>/dev/null || {
		echo "SKIPPED: this user may not mount anything"
		exit 77
	}
	unshare -rm bash -c "mount -t tmpfs -o size=$size tmpfs disk && \"\$@\"" on_small_disk "$@"
}
