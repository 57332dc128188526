# SPDX-License-Identifier: BSD-3-Clause
# Starts one guest at a time, waits for its end, and kills it by its process id if it does not end
# by itself.
# shellcheck shell=bash

vm_qemu_pid=
vm_log=
vm_more_devices=()

# choose_forwards: sets two free ports, below those that the kernel assigns, for vm_boot.
choose_forwards() {
	read -r vm_forward vm_forward2 < <(python3 -c '
import random, socket
bound = []
while len(bound) < 2:
    s = socket.socket()
    try:
        s.bind(("127.0.0.1", random.randrange(24000, 32000)))
        bound.append(s)
    except OSError:
        s.close()
print(*(s.getsockname()[1] for s in bound))')
}

# vm_boot JOB [ARGS]: starts a guest in the background. Two disks stay after the guest's end:
# $vm_disks/nvdimm, which is persistent memory in the guest, and $vm_disks/disk. vm_forward and
# vm_forward2 are ports of this machine that lead to the guest's ports 7000 and 7001. If
# vm_net_is_open is set, the guest reaches this machine's 127.0.0.1 at 10.0.2.2.
vm_boot() {
	local job=$1 args=${2:-} net=user,id=net0
	[ "${vm_net_is_open:-}" ] || net+=,restrict=on
	mkdir -p "$vm_out" "$vm_disks"
	[ -e "$vm_disks/nvdimm" ] || truncate -s 256M "$vm_disks/nvdimm"
	[ -e "$vm_disks/disk" ] || truncate -s 256M "$vm_disks/disk"
	[ -z "${vm_forward:-}" ] || net+=,hostfwd=tcp:127.0.0.1:$vm_forward-:7000,hostfwd=tcp:127.0.0.1:$vm_forward2-:7001
	vm_log=$vm_out/$job.console
	: >"$vm_log"
	rm -f "$vm_out/$job.result"
	nice qemu-system-x86_64 -machine q35,nvdimm=on,nvdimm-persistence=mem-ctrl \
		-accel tcg,thread=multi -smp 2 -cpu "$vm_cpu" -m 2G,slots=2,maxmem=4G \
		-nodefaults -no-user-config -display none -no-reboot -serial "file:$vm_log" \
		-kernel "$vm_cache/$vm_kernel/vmlinux" -initrd "$vm_cache/$vm_initramfs.gz" \
		-append "console=ttyS0 quiet no_timer_check panic=-1 loglevel=4 vm.tree=$vm_top vm.build=$vm_programs_dir vm.out=$vm_out vm.job=$job vm.args=$args" \
		-object "memory-backend-file,id=pmem,share=on,mem-path=$vm_disks/nvdimm,size=256M,align=2M" \
		-device nvdimm,id=nvdimm1,memdev=pmem \
		-drive "file=$vm_disks/disk,format=raw,if=none,id=disk,cache=none,aio=threads" \
		-device virtio-blk-pci,drive=disk \
		-netdev "$net" -device virtio-net-pci,netdev=net0 "${vm_more_devices[@]}" \
		-virtfs "local,path=$vm_top,mount_tag=tree,security_model=none,readonly=on" \
		-virtfs "local,path=$vm_programs_dir,mount_tag=build,security_model=none,readonly=on" \
		-virtfs "local,path=$vm_out,mount_tag=out,security_model=none" \
		</dev/null >"$vm_out/$job.qemu" 2>&1 &
	vm_qemu_pid=$!
}

vm_is_running() { [ "$vm_qemu_pid" ] && kill -0 "$vm_qemu_pid" 2>/dev/null; }

# vm_kill: kills the guest; this is also the power cut.
vm_kill() {
	[ "$vm_qemu_pid" ] || return 0
	kill -KILL "$vm_qemu_pid" 2>/dev/null || :
	wait "$vm_qemu_pid" 2>/dev/null || :
	vm_qemu_pid=
}

# vm_end: ends the guest, and every other process of the test. A recorder ends by itself when its
# connection ends.
vm_end() {
	vm_kill
	both_end
	mirror_end
	drbd_end
	[ -z "${stop_client:-}" ] || kill "$stop_client" 2>/dev/null || :
}

# vm_wait SECONDS: waits until the guest has powered off.
vm_wait() {
	local end=$((SECONDS + $1))
	while vm_is_running; do
		if [ "$SECONDS" -ge "$end" ]; then
			vm_kill
			echo "vm: the guest did not end within $1 s; its last words:" >&2
			tail -n 30 "$vm_log" >&2
			return 1
		fi
		sleep 0.2
	done
	wait "$vm_qemu_pid" 2>/dev/null || :
	vm_qemu_pid=
}

# vm_wait_line FILE TEXT SECONDS: waits until the guest has printed TEXT.
vm_wait_line() {
	local end=$((SECONDS + $3))
	until grep -qsF "$2" "$1"; do
		vm_is_running || return 1
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.1
	done
}

# vm_job JOB SECONDS [ARGS]: runs a guest for one job. The job's output goes to $vm_out/JOB.log.
vm_job() {
	vm_boot "$1" "${3:-}"
	vm_wait "$2" || return 1
	if [ "$(cat "$vm_out/$1.result" 2>/dev/null)" != 0 ]; then
		echo "vm: job $1 failed (${vm_out}/$1.log):" >&2
		tail -n 40 "$vm_out/$1.log" "$vm_log" >&2
		return 1
	fi
}
