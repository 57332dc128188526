#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# one_sendmsg.sh PROGRAM: by strace, PROGRAM sends its batch by one sendmsg and by no other system
# call.
set -eu
program=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

export SOFTRNIC_SHM=0 # rings need no sendmsg

# strace writes one file for each thread, so that no line is cut in two by another thread's line.
strace -ff -s 0 -e trace=getppid,sendmsg,sendmmsg,sendto,write,writev,pwritev -o "$dir/trace" \
	"$program"
poster=$(grep -l '^getppid(' "$dir"/trace.*)
marks=$(grep -c '^getppid(' "$poster")
[ "$marks" -eq 2 ] || { echo "$marks marks instead of 2"; exit 1; }
# If the answer arrives while the posting thread still works, that thread writes 8 bytes to an event
# descriptor.
awk '/^getppid\(/ { marks++; next } /^write\(.*, 8\) *= 8$/ { next } marks == 1' "$poster" \
	>"$dir/posted"
[ "$(wc -l <"$dir/posted")" -eq 1 ] && grep -q '^sendmsg(.* = 16[0-9][0-9][0-9]$' "$dir/posted" || {
	echo "not one sendmsg of 16 KiB and some headers, but:"
	cut -c 1-200 "$dir/posted"
	exit 1
}
