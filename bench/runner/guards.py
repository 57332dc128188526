# SPDX-License-Identifier: BSD-3-Clause
"""
Goals with a regression test. A time on a shared machine proves little, so a test counts its causes (system calls,
instructions) in each test run. The first table of goals omits such a row as long as every round meets its goal.
"""

_RINGS, _CALLS, _LIBRPMEM = "system.counts.rings", "system.counts.calls", "system.librpmem_counts"
# For each work, the test that fails if the cost of this work grows.
GUARDS = {
    "read 64 B": _CALLS,
    "write 4 KiB + persistent flush: bytes that reach the disk": "system.written",
    "write 64 scattered blocks of 4 KiB + persistent flush: bytes that reach the disk": "system.written",
    "flush of 4 KiB: bytes that reach the disk of each copy": "system.mirror_written",
    "flush of 64 scattered blocks of 4 KiB: bytes that reach the disk of each copy": "system.mirror_written",
    "send 64 B there and back": _CALLS,
    "64 B writes, flush each 64": "system.counts.instructions",
    "shm: write 64 B + flush, both spin": "system.counts.polled",
    "shm: write 64 B + flush, both spin, against raw TCP": "system.counts.polled",
    "shm: 64 B writes, flush each 64": _RINGS,
    "rpmem_persist 64 B": _LIBRPMEM,
    "rpmem_read 64 B": _LIBRPMEM,
    "rpmem_persist 4 KiB": _LIBRPMEM,
    "shm: rpmem_persist 64 B": _LIBRPMEM,
    "shm: rpmem_read 64 B": _LIBRPMEM,
    "shm: rpmem_persist 4 KiB": _LIBRPMEM,
    "flush of 64 ranges of 64 B": "system.mirror_flush_counts",
    "instructions per write + flush + get_wc, against librpma-1.2": "system.counts.librpma",
}
