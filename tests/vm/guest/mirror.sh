# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# VM_ARGS=MEMBER,REGISTER_PORT,CHECK,BROKEN: the sets of tests/vm/mirror.sh, whose member g or h is in this guest.
# CHECK: whether to check the records acknowledged before the power cut. BROKEN: the programs that do not write back
# (none, daemon, writers, or both). Afterwards the job executes the words in $VM_OUT/mirror/orders, one on each line;
# reply.N has the status of line N, and output.N has its output.
. "$VM_TREE/tests/vm/guest/lib.sh"
IFS=, read -r member register_port check broken <<<"$VM_ARGS"
programs=$VM_BUILD/tests/vm/mirror
register=etcd://10.0.2.2:$register_port
shared=$VM_OUT/mirror
export RPMA_PROVIDER=softrnic RPMIRROR_SOCKET=/run/rpmirrord.socket RPMIRROR_ON_FENCED=error
sets=(dax disk dax-direct disk-direct)
declare -A writers=()

# medium SET, mapping SET: print the medium and the kind of mapping of a set, which its name
# contains.
medium() { case $1 in dax*) echo pmem ;; *) echo disk ;; esac }
mapping() { case $1 in *-direct) echo direct ;; *) echo isolated ;; esac }
file() { echo "/$(medium "$1")/$1"; }
slot() { [ "$member" = g ] && echo 0 || echo 1; }

# look SET: checks the set's copy, and prints whether its acknowledged records were kept or lost.
look() {
	"$programs/mirror_check" "$(file "$1")" "$shared/$1.journal" "$(slot)" "$(mapping "$1")"
	local result=$?
	# Status 2: the copy has no records to check, which a missing write-back does not explain.
	[ $result -lt 2 ] || fail "the copy of $1 cannot be checked"
	echo "$1 $([ $result = 0 ] && echo kept || echo lost)"
}

# run WHO LOG COMMAND...: runs the command in the background.
run() {
	local who=$1 log=$2
	shift 2
	[ "$broken" != "$who" ] && [ "$broken" != both ] || export LD_PRELOAD=$programs/libmirror_no_write_back.so
	"$@" >"$shared/guest.$log.log" 2>&1 &
	unset LD_PRELOAD
}

# make_copy SET: makes the copy of a new set, or of a set that another host has made.
make_copy() {
	local how=(--join "$member") address
	if [ -e "$shared/new_set" ]; then
		how=(--here "$member" --size 16M --lease 12 --replica-timeout 20)
		while IFS='=' read -r name address; do
			how+=(--member "$name=$address:$(file "$1")")
		done <"$shared/new_set"
	fi
	"$VM_BUILD/tools/rpmirror/rpmirror" init "$1" "${how[@]}" --register "$register" --timeout 60
}

start_daemon() {
	local set
	{
		printf '%s\n' 'listen = 10.0.2.15:7000' "socket = $RPMIRROR_SOCKET" 'peer-timeout = 20000' 'register-timeout = 10000'
		for set in "${sets[@]}"; do
			printf '%s\n' "[set $set]" "member = $member" "data = $(file "$set")" "register = $register" 'auto = yes'
		done
	} >/run/rpmirrord.conf
	run daemon daemon "$VM_BUILD/src/mirrord/rpmirrord" --config /run/rpmirrord.conf
	for _ in $(seq 600); do
		[ ! -S "$RPMIRROR_SOCKET" ] || return 0
		sleep 0.1
	done
	fail "no daemon: $(cat "$shared/guest.daemon.log")"
}

start_writers() {
	local set
	for set in "${sets[@]}"; do
		run writers "$set" "$programs/mirror_writer" "$set" "$shared/$set.journal" "$(mapping "$set")" "$shared/$set.seen"
		writers[$set]=$!
	done
}

# expect_end STATUS: all writers must end with this status.
expect_end() {
	local set status result=0
	for set in "${!writers[@]}"; do
		wait "${writers[$set]}"
		status=$?
		if [ "$status" != "$1" ]; then
			echo "the writer of $set ends with $status: $(cat "$shared/guest.$set.log")"
			result=1
		fi
	done
	writers=()
	return $result
}

# No set can be promoted on this host, because its copy lacks acknowledged records.
promote_in_vain() {
	local set status result=0
	for set in "${sets[@]}"; do
		"$VM_BUILD/tools/rpmirror/rpmirror" promote "$set" "$member" --timeout 100
		status=$?
		echo "promote $set $member: $status"
		[ $status = 5 ] || result=1
	done
	return $result
}

wait_healthy() {
	local set
	for set in "${sets[@]}"; do
		"$VM_BUILD/tools/rpmirror/rpmirror" wait "$set" --until health=healthy --timeout 90 ||
			fail "$("$VM_BUILD/tools/rpmirror/rpmirror" explain "$set" 2>&1)"
	done
}

obey() {
	case $1 in
	write) start_writers ;;
	stop)
		kill "${writers[@]}"
		expect_end 0
		;;
	kill)
		kill -KILL "${writers[@]}"
		expect_end 137
		;;
	pause) kill -STOP "${writers[@]}" ;;
	continue) kill -CONT "${writers[@]}" ;;
	fenced) expect_end 3 ;;
	promote) promote_in_vain ;;
	healthy) (wait_healthy) ;;
	sum)
		for set in "${sets[@]}"; do
			(cd "/$(medium "$set")" && sha256sum "$set")
		done >"$shared/guest.sums"
		;;
	end) exit 0 ;;
	esac
}

modprobe -a virtio_net
nvdimm_up
disk_up
if [ "$check" = yes ]; then
	for set in "${sets[@]}"; do
		look "$set"
	done
fi
user_net_up
for set in "${sets[@]}"; do
	[ -e "$(file "$set")" ] || make_copy "$set" || fail "the copy of $set cannot be made"
done
start_daemon
echo ready >"$shared/ready"
done=0
while :; do
	count=$(grep -c . "$shared/orders" || :)
	while [ "$done" -lt "$count" ]; do
		done=$((done + 1))
		obey "$(sed -n "${done}p" "$shared/orders")" >"$shared/output.$done" 2>&1
		echo $? >"$shared/reply.new"
		mv "$shared/reply.new" "$shared/reply.$done"
	done
	sleep 0.3
done
