#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every symbol of the interposer exists in rdma-core with the same version. The interposer replaces each family of
# symbols completely, because a program must not mix objects of softrnic and of rdma-core.
set -euo pipefail
interposer=$1 libdir=$2 dropin=$3

symbols() {
	nm -D --defined-only --with-symbol-versions "$@" |
		awk '$2 == "T" || $2 == "W" || $2 == "i" { print $3 }' | sed 's/@@*/@/' | sort -u
}

# Calls of libc that replace the process or take a file's name. The interposer defines these calls
# without a version, so that it replaces every version of them.
libc='execve execv execvpe execvp fexecve execveat execl execlp execle _exit _Exit
access canonicalize_file_name chdir eaccess euidaccess faccessat fopen fopen64 getxattr lgetxattr
open open64 openat openat64 __open_2 __open64_2 __openat_2 __openat64_2 opendir scandir scandir64
readlink readlinkat __readlink_chk __readlinkat_chk realpath __realpath_chk
stat stat64 lstat lstat64 fstatat fstatat64 statx
__xstat __xstat64 __lxstat __lxstat64 __fxstatat __fxstatat64'
all=$(symbols "$interposer")
for library in "$interposer" "$dropin/libibverbs.so.1"; do
	of_libc=$(symbols "$library" | grep -v @)
	[ "$of_libc" = "$(tr ' ' '\n' <<<"$libc" | sort -u)" ] || {
		echo "$library: of no version, or of libc and not replaced: $of_libc" >&2
		exit 1
	}
done
ours=$(grep @ <<<"$all" | grep -v @SOFTRNIC_PRIVATE)
theirs=$(symbols "$libdir/libibverbs.so.1" "$libdir/librdmacm.so.1")

strange=$(comm -23 <(echo "$ours") <(echo "$theirs"))
[ -z "$strange" ] || {
	echo "not in rdma-core under this version: $strange" >&2
	exit 1
}

# Calls that need no object of the interposer: for text, numbers, the kernel's own formats, and
# protection around fork.
plain='rdma_event_str|ibv_(register_driver|copy|.*_str$|fork_init|is_fork|do(nt)?fork|get_sysfs|read_sysfs|rate_to|cmd_|read_ibdev)|mbps_|mult_'
missing=$(comm -13 <(sed 's/@.*//' <<<"$ours" | sort -u) \
	<(sed -n 's/@\(IBVERBS_1\|RDMACM\).*//p' <<<"$theirs" | grep -E '^(rdma_|_?ibv_)' | grep -vE "^($plain)" | sort -u))
[ -z "$missing" ] || {
	echo "not replaced: $missing" >&2
	exit 1
}

# A library that replaces another library by name must have the version nodes of that library.
nodes() { objdump -p "$1" | sed -n '/^Version definitions:/,/^$/s/^[0-9]\+ 0x0[02] 0x[0-9a-f]* //p'; }
for name in libibverbs.so.1 librdmacm.so.1; do
	[ -n "$(nodes "$libdir/$name")" ] || {
		echo "$libdir/$name has no version nodes" >&2
		exit 1
	}
	diff <(nodes "$libdir/$name") <(nodes "$dropin/$name") >&2 || {
		echo "$dropin/$name has other version nodes than rdma-core's" >&2
		exit 1
	}
done
