#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh RPMA FIO ENGINE [OPTION OF FIO...]: runs a small job of fio with a server on this host. The options are options
# of the job. The region is a file of 64 MiB in memory, which is removed at the end.
set -euo pipefail

[ $# -ge 3 ] || {
	echo "usage: ${0##*/} RPMA FIO ENGINE [OPTION OF FIO...]" >&2
	exit 2
}
rpma=$1 fio=$2 engine=$3
shift 3
[ $# -gt 0 ] || set -- --rw=randwrite --bs=4k --iodepth=4 --flush=visible --time_based --runtime=2

scratch=$(mktemp -d /dev/shm/rpma-fio-XXXXXX)
server=
finish() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || :
	[ -z "$server" ] || wait "$server" || :
	rm -rf "$scratch"
}
trap finish EXIT

"$rpma" serve --port 0 --create --size 64M --json --allow-volatile "$scratch/pool" >"$scratch/out" 2>"$scratch/err" </dev/null &
server=$!
for _ in {1..200}; do
	port=$(sed -nE '1s/^\{"addr":"[^"]*","port":([0-9]+),.*/\1/p' "$scratch/out")
	[ -z "$port" ] && kill -0 "$server" 2>/dev/null || break
	sleep 0.05
done
[ -n "$port" ] || {
	cat "$scratch/err" >&2
	exit 1
}
"$fio" --name=rpma --ioengine="external:$engine" --hostname=127.0.0.1 --port="$port" --region=pool --size=64M "$@"
