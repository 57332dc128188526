# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# VM_ARGS=REGISTER_PORT,CHECK,BROKEN: the sets `dax` and `disk`, of which member g is here. CHECK: whether to look for
# what was acknowledged before the power cut. BROKEN: who does not write back (none, daemon, or writers).
# Then it does what $VM_OUT/mirror/orders says, a word a line.
. "$VM_TREE/tests/vm/guest/lib.sh"
IFS=, read -r register_port check broken <<<"$VM_ARGS"
programs=$VM_BUILD/tests/vm/mirror
register=etcd://10.0.2.2:$register_port
shared=$VM_OUT/mirror
export RPMA_PROVIDER=softrnic RPMIRROR_SOCKET=/run/rpmirrord.socket RPMIRROR_ON_FENCED=error
declare -A folders=([dax]=/pmem [disk]=/disk) writers=()

# look SET
look() {
	"$programs/mirror_check" "${folders[$1]}/$1" "$shared/$1.journal" 0
	local result=$?
	# 2: there was nothing to check, which a missing write-back does not explain.
	[ $result -lt 2 ] || fail "the copy of $1 cannot be checked"
	echo "$1 $([ $result = 0 ] && echo kept || echo lost)"
}

# run WHO COMMAND...: in the background
run() {
	local who=$1
	shift
	[ "$broken" != "$who" ] || export LD_PRELOAD=$programs/libmirror_no_write_back.so
	"$@" >"$shared/guest.$who.log" 2>&1 &
	unset LD_PRELOAD
}

start_daemon() {
	local set
	{
		printf '%s\n' 'listen = 10.0.2.15:7000' "socket = $RPMIRROR_SOCKET" 'peer-timeout = 10000' 'register-timeout = 10000'
		for set in dax disk; do
			printf '%s\n' "[set $set]" 'member = g' "data = ${folders[$set]}/$set" "register = $register" 'auto = yes'
		done
	} >/run/rpmirrord.conf
	run daemon "$VM_BUILD/src/mirrord/rpmirrord" --config /run/rpmirrord.conf
	for _ in $(seq 300); do
		[ ! -S "$RPMIRROR_SOCKET" ] || return 0
		sleep 0.1
	done
	fail "no daemon: $(cat "$shared/guest.daemon.log")"
}

obey() {
	local set
	case $1 in
	write)
		for set in dax disk; do
			run writers "$programs/mirror_writer" "$set" "$shared/$set.journal"
			writers[$set]=$!
		done
		;;
	sum)
		(cd /pmem && sha256sum dax && cd /disk && sha256sum disk) >"$shared/guest.new"
		mv "$shared/guest.new" "$shared/guest.sums"
		;;
	end) exit 0 ;;
	esac
}

modprobe -a virtio_net
nvdimm_up
disk_up
if [ "$check" = yes ]; then
	look dax
	look disk
fi
user_net_up
for set in dax disk; do
	[ -e "${folders[$set]}/$set" ] || "$VM_BUILD/tools/rpmirror/rpmirror" init "$set" --join g --register "$register" --timeout 60 ||
		fail "the copy of $set cannot be made"
done
start_daemon
echo ready >"$shared/ready"
done=0
while :; do
	count=$(grep -c . "$shared/orders" || :)
	while [ "$done" -lt "$count" ]; do
		done=$((done + 1))
		obey "$(sed -n "${done}p" "$shared/orders")"
	done
	sleep 0.3
done
