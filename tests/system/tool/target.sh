#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Properties that get keeps of the file that it writes to: name, links, mode, owner, attributes, as
# cp does.
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/lib.sh"

begin() {
	random_file region 100000
	serve region
}

inode() { stat -c %i "$1"; }

no_leftovers() { # HOW MANY FILES
	[ "$(find . -name '*target*' | wc -l)" = "$1" ] || fail "a temporary file is left: $(ls -la)"
}

test_a_new_file_gets_the_mode_of_the_umask() {
	local mask
	begin
	for mask in 022 077 007; do
		rm -f target
		(umask $mask && expect_ok "$rpma" get "$where" target)
		[ "$(stat -c %a target)" = "$(printf %o $((0666 & ~mask)))" ] ||
			fail "mode $(stat -c %a target) with umask $mask"
	done
}

test_an_existing_file_keeps_its_mode_and_is_replaced_as_a_whole() {
	local mode old
	begin
	for mode in 600 640 664 755 4755; do
		random_file target 200000
		chmod $mode target
		old=$(inode target)
		exec 5<target
		expect_ok "$rpma" get "$where" target 5<&-
		cmp region target || fail "something else arrived"
		[ "$(stat -c %a target)" = $mode ] || fail "mode $mode became $(stat -c %a target)"
		[ "$(inode target)" != "$old" ] || fail "it was not replaced as a whole"
		[ "$(wc -c <&5)" = 200000 ] || fail "who had it open sees it change"
		exec 5<&-
		no_leftovers 1
	done
}

test_symbolic_links_are_followed() {
	begin
	mkdir there
	echo old >there/target
	chmod 600 there/target
	ln -s there/target link
	ln -s link second
	expect_ok "$rpma" get "$where" second
	[ "$(readlink second)" = link ] && [ "$(readlink link)" = there/target ] || fail "a link was replaced"
	cmp region there/target || fail "the link's target is something else"
	[ "$(stat -c %a there/target)" = 600 ] || fail "the mode is not kept"
	no_leftovers 1
	ln -s nowhere dangling
	expect 3 'dangling is a symbolic link to something that does not exist' "$rpma" get "$where" dangling
	[ -L dangling ] && [ ! -e nowhere ] || fail "something was made"
}

test_a_file_with_other_links_is_written_in_place() {
	begin
	random_file target 200000
	ln target other
	expect_ok "$rpma" get "$where" target
	cmp region target && cmp region other || fail "the links are not one file with the new content any more"
	[ target -ef other ] || fail "the link is cut off"
}

test_a_file_that_we_were_given_open_is_written_in_place() {
	begin
	random_file target 200000
	exec 5<target
	expect_ok "$rpma" get "$where" /dev/fd/5
	cmp region target || fail "something else is in the file"
	cmp region /proc/self/fd/5 || fail "the descriptor leads to something else"
	exec 5<&-
}

# The user has no right to create a file in the folder. root runs the program without capabilities.
test_a_file_in_a_folder_that_may_not_be_written_is_written_in_place() {
	local without=() old
	begin
	mkdir closed
	random_file closed/target 200000
	old=$(inode closed/target)
	chmod 555 closed
	[ "$(id -u)" != 0 ] || without=(setpriv --bounding-set=-all --inh-caps=-all)
	"${without[@]}" true 2>/dev/null || exit 77
	expect_ok "${without[@]}" "$rpma" get "$where" closed/target
	cmp region closed/target || fail "something else arrived"
	[ "$(inode closed/target)" = "$old" ] || fail "it was replaced"
	expect 3 'cannot create closed/new: Permission denied' "${without[@]}" "$rpma" get "$where" closed/new
	chmod 755 closed
	chmod 400 closed/target
	expect 3 'cannot write to closed/target: Permission denied' \
		"${without[@]}" "$rpma" get "$where" closed/target
}

test_extended_attributes_are_kept() {
	begin
	echo old >target
	python3 -c 'import os; os.setxattr("target", "user.kept", b"yes")' 2>/dev/null || exit 77
	expect_ok "$rpma" get "$where" target
	python3 -c 'import os, sys; sys.exit(os.getxattr("target", "user.kept") != b"yes")' ||
		fail "the attribute is gone"
}

# If root runs the program, a new file keeps the old file's owner, too. For a user without the right
# to change owners the program writes in place.
test_owner_and_group_are_kept() {
	local old
	[ "$(id -u)" = 0 ] || exit 77
	begin
	echo old >target
	chown 65534:12345 target || exit 77
	chmod 2640 target
	old=$(inode target)
	expect_ok "$rpma" get "$where" target
	[ "$(stat -c '%u %g %a' target)" = '65534 12345 2640' ] || fail "became $(stat -c '%u %g %a' target)"
	[ "$(inode target)" != "$old" ] || fail "it was not replaced as a whole"
	cmp region target || fail "something else arrived"
	chmod 666 target
	old=$(inode target)
	expect_ok setpriv --bounding-set=-all --inh-caps=-all "$rpma" get "$where" target
	[ "$(stat -c '%u %g %a' target)" = '65534 12345 666' ] || fail "became $(stat -c '%u %g %a' target)"
	[ "$(inode target)" = "$old" ] || fail "it was replaced without its owner"
	cmp region target || fail "something else arrived"
	no_leftovers 1
}

# A file that is a mount point cannot be replaced, which the program notices only when it renames
# the new file.
test_a_file_that_is_mounted_on_another_is_written() {
	[ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null || exit 77
	begin
	random_file mounted 200000
	: >target
	unshare -m bash -c 'mount --bind mounted target && exec "$@"' test "$rpma" get "$where" target \
		>out 2>err || fail "$(cat err)"
	cmp region mounted || fail "something else arrived"
	no_leftovers 1
}

# The program must write the content, the name and the folder to the disk, in this order, before it
# reports success.
test_what_was_got_is_on_the_disk_before_get_succeeds() {
	begin
	strace -o trace -e trace=fsync,rename,renameat2,write "$rpma" get "$where" target >out 2>err || :
	grep -q exited trace || exit 77 # strace is missing, or is not permitted to trace
	echo old >existing
	strace -o trace -e trace=fsync,rename,renameat2 "$rpma" get "$where" existing >out 2>err ||
		fail "$(cat err)"
	[ "$(grep -oE '^(fsync|rename)' trace | tr '\n' ' ')" = 'fsync rename fsync ' ] || fail "calls: $(cat trace)"
	ln existing second
	strace -o trace -e trace=fsync,rename,renameat2 "$rpma" get "$where" existing >out 2>err ||
		fail "$(cat err)"
	[ "$(grep -c '^fsync' trace)" = 2 ] || fail "written in place, calls: $(cat trace)"
	strace -o trace -e trace=fsync "$rpma" get "$where" - >back 2>err || fail "$(cat err)"
	[ "$(grep -c '^fsync(.*= 0$' trace)" = 1 ] || fail "standard output, calls: $(cat trace)"
}

"test_$1"
