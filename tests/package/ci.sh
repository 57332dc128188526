#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Executes the recipe of contrib/ci in clean systems: first the steps of its container file, whose first stage runs the
# same script as the action; afterwards foreign programs as the image's user. usage: ci.sh FOLDER
set -euo pipefail
packages=$(mkdir -p "${1:?usage: ci.sh FOLDER}" && realpath "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(realpath "$here/../..")
file=$top/contrib/ci/Containerfile
. "$here/clean.sh"

# stage N: prints the lines of the N-th stage.
stage() { awk -v n="$1" '/^FROM / { at++ } at == n' "$file"; }
# run_of N: prints the RUN line of that stage as a script.
run_of() { stage "$1" | sed -n '/^RUN /,/[^\\]$/p' | sed '1s/^RUN //'; }

new_system
stage 1 | sed -n 's/^COPY //p' | while read -r from to; do
	mkdir -p "$root${to%/*}"
	cp -r "$top/$from" "$root$to"
done
run_of 1 >"$root/run.sh"
step 600 "softrnic is built from the tree" sh -e /run.sh
mv "$root/opt/softrnic" "$packages/softrnic.new"
trap 'rm -rf "$packages/softrnic.new"; [ -z "$root" ] || rm -rf --one-file-system "$root"' EXIT

new_system
run_of 2 >"$root/run.sh"
step 300 "the image gets what programs need" sh -e /run.sh
mv "$packages/softrnic.new" "$root/opt/softrnic"
path=$(stage 2 | sed -n 's/^ENV PATH=\([^:]*\):.*/\1/p')
entry=$(stage 2 | sed -nE 's/^ENTRYPOINT \["(.*)"\]$/\1/p' | sed 's/", "/ /g')
user=$(stage 2 | sed -n 's/^USER //p')
[ "$entry" = "softrnic run" ] || die "the image starts '$entry'"

# as_user SECONDS NAME SCRIPT: runs the script in the image, with loopback as the only network.
as_user() {
	step "$1" "$2" --net setpriv --reuid "$user" --regid "$user" --init-groups --no-new-privs \
		env PATH="$path:/usr/bin:/bin" HOME=/tmp sh -euc "$3"
}
as_user 30 "the image shows the device" "$entry ibv_devinfo -d softrnic0"
as_user 60 "rping runs in the image" "
	$entry rping -s -a 127.0.0.1 -C 10 & server=\$!
	sleep 1; $entry rping -c -a 127.0.0.1 -C 10
	wait \$server || [ \$? = 1 ]"
# The two ends exchange the numbers of their queue pairs without rdma_cm.
as_user 60 "rdma-core's example runs in the image" "
	$entry ibv_rc_pingpong -g 0 & server=\$!
	sleep 1; $entry ibv_rc_pingpong -g 0 127.0.0.1
	wait \$server"
as_user 60 "perftest runs in the image" "
	$entry ib_write_bw -d softrnic0 -n 500 & server=\$!
	sleep 1; $entry ib_write_bw -d softrnic0 -n 500 127.0.0.1
	wait \$server"
