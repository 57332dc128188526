# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# VM_ARGS=NODE: a DRBD node on a disk; the other node is in another guest. The job runs the commands in $VM_OUT/orders,
# one on each line. It writes the output of line N first, and the status to reply.N afterwards.
. "$VM_TREE/tests/vm/guest/lib.sh"
node=$VM_ARGS
declare -A address=([a]=10.8.0.1 [b]=10.8.0.2)

# configure: writes an administrator's settings to /etc. They are the defaults, except for limits of
# time and rate, because these guests are slow.
configure() {
	local name
	sysctl -q "kernel.hostname=$node"
	{
		echo 'global { usage-count no; }'
		echo 'resource r0 {'
		echo 'net { protocol C; ping-timeout 50; }' 'disk { c-plan-ahead 0; c-min-rate 0; resync-rate 100M; }'
		for name in a b; do
			echo "on $name { device /dev/drbd0; disk /dev/vda; meta-disk internal; address ${address[$name]}:7789; }"
		done
		echo '}'
	} >/etc/drbd.conf
}

link_up() {
	local device
	device=$(basename "$(dirname "$(grep -l "52:54:00:00:08:0$node" /sys/class/net/*/address)")")
	ip addr add "${address[$node]}/24" dev "$device"
	ip link set "$device" up
}

# write JOURNAL: starts the writer in the background.
write() {
	"$VM_BUILD/tests/vm/mirror/mirror_writer" /data/records "$1" >"$VM_OUT/writer.log" 2>&1 </dev/null &
	echo $! >/run/writer
}

# The writer is the child of another shell, which has its exit code. So a failure shows only in the
# writer's output.
stop_writing() {
	local pid
	pid=$(cat /run/writer 2>/dev/null) || return 0
	kill "$pid" 2>/dev/null
	while [ -d "/proc/$pid" ] && ! grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null; do
		sleep 0.1
	done
	cat "$VM_OUT/writer.log"
	[ ! -s "$VM_OUT/writer.log" ]
}

# last_resync: prints the amount that the last resync had to transfer, which the kernel logs.
last_resync() { dmesg | grep -oE 'will sync [0-9]+ KB' | tail -n 1 | tr -dc 0-9; }

modprobe -a virtio_net virtio_blk ext4
modprobe drbd usermode_helper=/bin/true
mkdir -p /data /run/lock /run/drbd
configure
link_up
done=0
while :; do
	count=$(grep -c . "$VM_OUT/orders")
	while [ "$done" -lt "$count" ]; do
		done=$((done + 1))
		# The order runs in a separate shell, so that it cannot end this shell.
		(eval "$(sed -n "${done}p" "$VM_OUT/orders")") >"$VM_OUT/output.$done" 2>&1 </dev/null
		echo $? >"$VM_OUT/reply.new"
		mv "$VM_OUT/reply.new" "$VM_OUT/reply.$done"
	done
	sleep 0.2
done
