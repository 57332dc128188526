#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs that inspect the device by files instead of verbs: they find the files that the kernel shows for a real
# device.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

device=/sys/class/infiniband/softrnic0
node=/dev/infiniband/uverbs-softrnic0
export TMPDIR=$scratch # shows the files that a program leaves

test_tools_of_the_system_find_the_device() {
	soft cat $device/ports/1/{state,link_layer,pkeys/0} >"$scratch/out" || fail "cat: status $?"
	[ "$(tr '\n' , <"$scratch/out")" = '4: ACTIVE,Ethernet,0xffff,' ] || fail "cat: $(cat "$scratch/out")"
	soft ls -l /sys/class/infiniband/ /dev/infiniband/ >"$scratch/ls.log" 2>&1 || fail "ls: status $?"
	said ls 'softrnic0 -> .*/devices/virtual/infiniband/softrnic0$'
	said ls '^crw-rw-rw- .* uverbs-softrnic0$'
	[ "$(soft stat -c '%F %a' $node)" = 'character special file 666' ] || fail "stat: $(soft stat $node)"
	soft sh -c "[ -r $node ] && [ -w $node ] && : <$node" || fail "sh does not open the node"
	soft bash -c "cd $device/ports && [ \"\$(echo *)\" = 1 ]" || fail "bash finds no port"
}

test_python_finds_the_device() {
	need python3
	soft python3 - $device $node <<-'END' >"$scratch/python.log" 2>&1 || fail "status $?"
		import os, pathlib, stat, sys
		device, node = sys.argv[1:]
		assert stat.S_ISCHR(os.stat(node).st_mode) and os.access(node, os.R_OK | os.W_OK)
		assert os.listdir(os.path.dirname(device)).count("softrnic0") == 1
		assert open(device + "/ports/1/phys_state").read() == "5: LinkUp\n"
		assert pathlib.Path(device, "node_guid").read_text().count(":") == 3
		assert os.path.isdir(os.path.realpath(device + "/../.."))
		assert not os.path.exists(device + "/device") and not os.path.exists(device + "x")
		assert [e.name for e in os.scandir(device + "/ports")] == ["1"]
	END
}

# The files and the calls of verbs report the same values. ibv_devinfo also reads a file.
test_files_and_verbs_agree() {
	need ibv_devinfo
	soft ibv_devinfo -v >"$scratch/devinfo.log" || fail "ibv_devinfo: status $?"
	said devinfo "node_guid:[[:space:]]*$(soft cat $device/node_guid)\$"
	said devinfo "fw_ver:[[:space:]]*$(soft cat $device/fw_ver)\$"
	for face in '' --iwarp; do
		SOFTRNIC_RUN_FLAGS=$face soft ibv_devinfo >"$scratch/face.log" || fail "ibv_devinfo: status $?"
		case $(SOFTRNIC_RUN_FLAGS=$face soft cat $device/node_type) in
		'4: RNIC') said face 'transport:[[:space:]]*iWARP' ;;
		'1: CA') said face 'transport:[[:space:]]*InfiniBand' ;;
		*) fail "no type of a node" ;;
		esac
	done
}

# A variable switches the files off, or adds the network device to them.
test_the_files_can_be_chosen() {
	! SOFTRNIC_SYSFS=0 soft cat $device/node_type >"$scratch/off.log" 2>&1 || fail "there are files with SOFTRNIC_SYSFS=0"
	said off 'No such file or directory'
	! SOFTRNIC_SYSFS=0 soft test -e $node || fail "there is a node with SOFTRNIC_SYSFS=0"
	! soft test -e $device/device || fail "there is a network device, unasked"
	netdev=$(soft cat $device/ports/1/gid_attrs/ndevs/0 2>/dev/null) || return 0 # a GUID belongs to no network device
	SOFTRNIC_SYSFS=device soft test -d "$device/device/net/$netdev" || fail "there is no $netdev"
}

# A program for which the files cannot be made runs without them, and one line reports the reason.
test_a_program_runs_where_the_files_cannot_be_made() {
	soft sh -c "ulimit -n 3; [ ! -e $device ] && [ ! -e $device/ports ]" 2>"$scratch/sh.log" || fail "sh: status $?"
	said sh '^softrnic: cannot make the files of softrnic0 .*: Too many open files; '
	[ "$(wc -l <"$scratch/sh.log")" = 1 ] || fail "not one line"
}

test_nothing_is_left() {
	soft cat $device/node_type >/dev/null || fail "cat: status $?"
	soft sh -c "cat $device/node_type; exec true <$device/fw_ver" >/dev/null || fail "sh: status $?"
	left=$(find "$scratch" -mindepth 1 -maxdepth 1 -name 'softrnic-*')
	[ -z "$left" ] || fail "$left is left"
}

run_test "$1"
