#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The include rules. The table has one row for each room: its folder, the headers of this project that it may
# include, and the system headers that it must not include. A room may always include files of its own folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

net='(sys/(socket|epoll|eventfd|select)|netdb|poll)\.h'
threads='(pthread|threads)\.h'
rdma='(infiniband|rdma)/.*'
none='-'

rooms="
src/base               | base/.*                                              | $rdma
src/verbs_ext          | verbs_ext/.*                                         | $net|$threads
src/softrnic/proto     | (base|softrnic/proto)/.*|verbs_ext/values\.h         | $net|$threads|$rdma|(sys/)?time\.h
src/softrnic/rnic      | (base|verbs_ext|softrnic/(proto|rnic))/.*            | $net|rdma/.*
src/softrnic/stream    | (base|verbs_ext|softrnic/(proto|rnic|stream))/.*     | $net|$threads
src/softrnic/persist   | (base|verbs_ext|softrnic/persist)/.*                 | $net|$rdma
src/softrnic/trace     | (base|softrnic/(proto|trace))/.*                     | $net|$threads|$rdma|(sys/)?time\.h
src/softrnic/io        | (base|verbs_ext|softrnic/(stream|persist|trace|io))/.*|softrnic/(proto/ud|rnic/ud_flow)\.h | $none
src/softrnic/verbs     | (base|verbs_ext|softrnic/(rnic|stream|persist|io|verbs))/.*|softrnic/(softrnic|proto/cm_qp)\.h | $none
src/provider           | (base|verbs_ext|provider)/.*|softrnic/softrnic\.h       | $none
src/rpma               | (base|verbs_ext|rpma)/.*|provider/provider\.h|librpma\.h       | $none
src/service            | (base|service)/.*|librpma\.h                         | rdma/.*
src/regions            | (base|service|regions)/.*|librpma(|file)\.h          | rdma/.*
src/rpmem              | (base|service|poolset|rpmem)/.*|librpm(a|em)\.h       | rdma/.*
src/rpmemd             | (base|service|poolset|rpmem|rpmemd)/.*|librpma\.h      | rdma/.*
src/mirror/core        | (base|mirror/core)/.*                                | $net|$threads|$rdma|(sys/)?time\.h
src/mirror/file        | (base|mirror/(core|file))/.*|librpma\.h               | $net|$threads|rdma/.*
src/mirror/wire        | (base|mirror/(core|wire))/.*                         | $net|$threads|$rdma
src/mirror/peer        | (base|mirror/(core|wire|peer))/.*|librpma\.h            | $net|$threads|rdma/.*
src/mirror/register    | (base|mirror/(core|register))/.*                     | $rdma
src/mirror             | (base|service|mirror)/.*|librpm(a|irror)\.h          | rdma/.*
src/mirrord            | (base|service|mirror/(core|wire|peer|file|register)|mirrord)/.*|librpma\.h | rdma/.*
src/poolset            | (base|poolset)/.*                                    | $rdma
src/interposer         | (interposer|verbs_ext)/.*|base/nearest\.h|softrnic/softrnic\.h                | $none
tools                  | (base|service|regions)/.*|librpm(a|afile|em|irror)\.h | rdma/.*
tools/rpmirror         | (base|mirror/(core|file|register))/.*|librpma\.h      | rdma/.*|$threads
examples               | librpm(a|afile|em|irror)\.h                          | $none
bench                  | lib/.*|librpm(a|afile|em|irror)\.h|regions/session\.h           | $none
"

bad=0
complain() {
	printf '%s: %s\n' "$1" "$2" >&2
	bad=1
}

# includes_of FOLDER: prints a line "file:line:<header>" or "file:line:"header"" for every include
# below the folder. tools/rpmirror is a separate room, so it is omitted for tools.
includes_of() {
	local not=(-false)
	[ "$1" != tools ] || not=(-path 'tools/rpmirror/*')
	find "$1" -name '*.[ch]' -not "${not[@]}" -exec \
		grep -HnoE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"][^>"]+[>"]' {} + |
		sed -E 's/#[[:space:]]*include[[:space:]]*//; s/:[[:space:]]+/:/g'
}

check_room() {
	local room=$1 ours=$2 never=$3 file line header name
	while IFS=: read -r file line header; do
		name=${header:1:-1}
		if [[ $header == \"* ]]; then
			[ -e "$(dirname "$file")/$name" ] || [[ $name =~ ^($ours)$ ]] ||
				complain "$file:$line" "room $room must not include \"$name\""
		elif [ -e "include/$name" ]; then
			[[ $name =~ ^($ours)$ ]] || complain "$file:$line" "room $room must not include <$name>"
		elif [[ $name =~ ^($never)$ ]]; then
			complain "$file:$line" "room $room must not include <$name>"
		fi
	done < <(includes_of "$room")
}

while IFS='|' read -r room rest; do
	room=${room//[[:space:]]/}
	if [ -z "$room" ] || [ ! -d "$room" ]; then
		continue
	fi
	ours=$(sed -E 's/ \| .*//; s/[[:space:]]//g' <<<"$rest")
	never=$(sed -E 's/.* \| //; s/[[:space:]]//g' <<<"$rest")
	check_room "$room" "$ours" "$never"
done <<<"$rooms"

# Only files of the same folder may include the inner header of an object, x_impl.h or x_parts.h.
# The same holds for each header that includes an inner header.
inside='_(impl|parts)\.h'
while shown=$(grep -rlE --include='*.h' "^#include \"[^\"]*($inside)\"" src | sed 's,^src/,,' | grep -vE "($inside)\$"); do
	inside="$inside|$(paste -sd'|' <<<"$shown")"
done
while IFS=: read -r file line text; do
	header=${text#*\"} header=${header%\"*}
	[ "src/${header%/*}" = "${file%/*}" ] || [ "$header" = "${header%/*}" ] ||
		complain "$file:$line" "\"$header\" shows the inside of an object: only its own folder may include it"
done < <(grep -rnE --include='*.[ch]' "^#include \"[^\"]*($inside)\"" src tools)

# These commands use librpmafile like any other program, so they must not include its inner headers.
behind=$(cd tools && grep -nE '#include "(client\.h|regions/|service/)' remote.h {put,get,ls,copy,copy_opts,check,resume,source,output}.c \
	copy.h check.h resume.h source.h output.h || :)
[ -z "$behind" ] || complain "tools/$behind" "put, get and ls use librpmafile.h, and no room behind it"

# Only the links may use sockets, and only the poller may use epoll. The objects of verbs access
# sockets and epoll through the links and the poller.
sockets=$(grep -rlE '#include <(sys/(socket|epoll|un)|netinet/.*|linux/(if|sockios).*)\.h>' \
	src/softrnic/io src/softrnic/verbs | grep -vE '/io/(link_[a-z_]+\.[ch]|poller\.c)$' || :)
[ -z "$sockets" ] || complain "$sockets" "only links (io/link_*) use sockets, and poller.c epoll"

# An object that threads share may have a mutex in any module. Only these modules may start threads,
# and only by base/thread.c, which blocks the application's signals in the threads.
starters='^src/(softrnic/(io|persist)|regions|rpmemd|mirror|mirrord)/'
makers=$(grep -rlE 'pthread_create\([^)]' src --include='*.c' | grep -v '^src/base/thread\.c$' || :)
[ -z "$makers" ] || complain "$makers" "threads are started by thread_start() of base/thread.h"
makers=$(grep -rlE 'thread_start\(' src --include='*.c' | grep -vE "^src/base/thread\.c$|$starters" || :)
[ -z "$makers" ] || complain "$makers" "only softrnic/io, softrnic/persist, regions and the daemons start threads"

# librpma may call verbs directly only where infiniband/verbs.h inlines a call through
# ibv_context.ops.
if [ -d src/rpma ]; then
	inlined='ibv_(post_send|post_recv|post_srq_recv|poll_cq|req_notify_cq)'
	direct=$(grep -nEr --include='*.c' '(^|[^>._[:alnum:]])(ibv|rdma)_[a-z_0-9]+\(' src/rpma |
		grep -vE "[^_]$inlined\(|:[[:space:]]*(\*|/\*|//)|\"[^\"]*(ibv|rdma)_" || :)
	[ -z "$direct" ] || complain "$direct" "room src/rpma calls verbs past the provider seam"
fi

# librpma may use a provider only through the provider's table.
named=$(grep -nEri 'softrnic' src/rpma | grep -v 'CAP_SOFTRNIC' || :)
[ -z "$named" ] || complain "$named" "room src/rpma names a provider"

# Declarations beyond verbs must be in verbs_ext. Only one file may compare librpma's numbers with
# those of verbs_ext.
copies=$(grep -nErl '_Static_assert\(.*RPMA_.*VEXT_' src | grep -v '^src/rpma/vocabulary\.c$' || :)
[ -z "$copies" ] || complain "$copies" "only src/rpma/vocabulary.c compares RPMA_ with VEXT_"
exit "$bad"
