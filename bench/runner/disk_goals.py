# SPDX-License-Identifier: BSD-3-Clause
"""Goals for durable writes to a disk: rows as in goals.py, of librpma and librpmirror."""

import contextlib

from . import goal_run
from .goals import HEADER, Goal, pingpong, rates, times, written_back
from .loop_disks import LoopDisks
from .place import Missing

OURS = "who=ours work=write_flush flush=persistent where={dir}"
MIRROR = "who=mirror work=mirror_flush flush=persistent"
LOCAL = "who=limit work=disk where={dir}"
WAYS = (("wait", "initiator waits"), ("poll", "initiator polls"))
# The blocks are so far apart that neither the block layer nor a write-back merges two of them.
APART = "apart=65536"
RINGS_US = 10  # us that a write over rings may take in addition to the disk's time


def _remote_writes():
    """
    The target spins only for the default time, because a target that spins while the disk works takes the CPU that the
    write-back needs.
    """
    for size, name in ((64, "64 B"), (4096, "4 KiB")):
        for ini, how in WAYS:
            yield Goal(f"write {name} + persistent flush, {how}", "<=", 1.1,
                       "x (pwrite + fdatasync + ping-pong of the same kind)",
                       lambda line: line("ours")["p50_us"] / (line("disk")["p50_us"] + line("limit")["p50_us"]),
                       check=written_back, ours=f"{OURS} size={size} ini={ini}", disk=f"{LOCAL} size={size}",
                       limit=pingpong(size + HEADER, 32, f"ini={ini} tgt=wait"))
    yield Goal("  write 64 B + persistent flush, initiator polls", None, 0,
               "x a program that makes these calls: send, recv, msync, send", times("ours", "bare"),
               ours=f"{OURS} ini=poll", bare="who=limit work=persist size=96 where={dir}")
    for ini, how in WAYS:
        yield Goal(f"shm: write 64 B + persistent flush, {how}", "<=", 1.05, f"x (pwrite + fdatasync) + {RINGS_US} us",
                   lambda line: (line("ours")["p50_us"] - RINGS_US) / line("disk")["p50_us"], place="shm",
                   check=written_back, ours=f"{OURS} ini={ini}", disk=(LOCAL, "loopback"))


def _batches():
    many = f"every=16 {APART}"
    for ini, how in WAYS:
        yield Goal(f"batch of 16 scattered x 64 B + persistent flush, {how}", "<=", 1.15, "x one write + persistent flush",
                   times("ours", "one"), check=written_back,
                   ours=f"who=ours work=batch flush=persistent where={{dir}} {many} ini={ini}", one=f"{OURS} ini={ini}")
    yield Goal("  16 scattered x pwrite of 64 B + fdatasync", None, 0, "x one pwrite + fdatasync", times("many", "one"),
               many=f"{LOCAL} {many}", one=LOCAL)


def _clients():
    """These cases run longer, because each client gets only its share of the time."""
    group = "who=local work=group conns=64 ms=400 where={dir}"
    for place, name in (("loopback", ""), ("shm", "shm: ")):
        yield Goal(f"{name}64 clients, write 64 B + persistent flush", ">=", 0.9,
                   "x 64 threads that call pwrite and share fdatasync", rates("ours", "local"), place=place,
                   check=written_back, ours=f"{OURS} ini=wait conns=64 ms=400", local=(group, "loopback"))


def _write_backs(line):
    """Expects one write-back at each end for each flush, and a few more for the warm-up and the end."""
    flushed = line("mirror")
    for end in ("writebacks", "local_writebacks"):
        if flushed.get(end, 0) < flushed["count"]:
            return f"{end}: {flushed.get(end, 0)} for {flushed['count']} flushes"
    if flushed["local_writebacks"] > 1.05 * flushed["count"] + 2:
        return f"{flushed['local_writebacks']} local write-backs for {flushed['count']} flushes"
    return None


def _mirror_on(name, where, tgt_where=""):
    flush = f"{MIRROR} where={where}{tgt_where}"
    yield Goal(f"flush 64 B, files on {name}", "<=", 1.1, "x max(pwrite + fdatasync, librpma's persistent flush)",
               lambda line: line("mirror")["p50_us"] / max(line("disk")["p50_us"], line("ours")["p50_us"]),
               check=_write_backs, mirror=flush, disk=f"who=limit work=disk where={where}",
               ours=f"who=ours work=write_flush flush=persistent where={where}{tgt_where}")
    # Both programs send the same messages and make the same write-backs.
    yield Goal(f"  flush 64 B, files on {name}", None, 0,
               "x a program that makes these calls: send, fdatasync, recv; recv, msync, send", times("mirror", "bare"),
               mirror=flush, bare=f"who=limit work=mirrored size=212 where={where}{tgt_where}")


def _written(name, copies, blocks):
    """Bytes that reach the disk of each copy: data, inodes and the journal."""
    return lambda line: line(name)["disk_bytes"] / (line(name)["count"] * copies * blocks) / 1024


def _bytes():
    """These cases use loop devices, because no other program writes to them."""
    for count in (1, 64):
        blocks = f"size=4096 every={count} {APART} ms=400"
        scattered = f"{count} scattered blocks of 4 KiB" if count > 1 else "4 KiB"
        yield Goal(f"write {scattered} + persistent flush: bytes that reach the disk", "<=", 12, "KiB a block",
                   _written("ours", 1, count), check=written_back,
                   ours=f"who=ours work=batch flush=persistent where={{loop1}} {blocks}")
        yield Goal(f"flush of {scattered}: bytes that reach the disk of each copy", "<=", 12, "KiB a block",
                   _written("mirror", 2, count), check=_write_backs,
                   mirror=f"{MIRROR} where={{loop1}} tgt_where={{loop2}} {blocks}")


def _mirror(two_disks):
    one_disk = f"{MIRROR} where={{dir}}"
    yield from _mirror_on("a disk", "{dir}")
    yield from _mirror_on(two_disks, "{disk1}", " tgt_where={disk2}")
    yield Goal("flush 64 B, both copies on the same disk", "<=", 1.25, "x two processes that call pwrite + fdatasync",
               times("mirror", "disk"), check=_write_backs, mirror=one_disk, disk=f"{LOCAL} conns=2")
    for count in (8, 64):
        blocks = f"size=4096 every={count} {APART} ms=300"
        yield Goal(f"flush of {count} scattered blocks of 4 KiB, both copies on the same disk", "<=", 2,
                   "x (pwrite of each block + one fdatasync)", times("mirror", "disk"), check=_write_backs,
                   mirror=f"{one_disk} {blocks}", disk=f"{LOCAL} {blocks}")


def goals(two_disks="two disks"):
    return [*_remote_writes(), *_batches(), *_bytes(), *_clients(), *_mirror(two_disks)]


def measure(program, places, folder, folder2, count, ms):
    """folder2: a folder on another disk, or None. With None, two loop devices serve as disks, if they can be made."""
    with contextlib.ExitStack() as made:
        try:
            loops = made.enter_context(LoopDisks(folder)).paths
        except OSError as reason:
            loops = [Missing("loopback", str(reason))] * 2
        disks, name = ((folder, folder2), "two disks") if folder2 else (loops, "two disks (loop devices on one)")
        plan = goal_run.Plan(program, places, folder, loop1=loops[0], loop2=loops[1], disk1=disks[0], disk2=disks[1])
        return goal_run.measure(goals(name), plan, count, ms)
