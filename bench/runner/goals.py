# SPDX-License-Identifier: BSD-3-Clause
"""
The goals: each with its bound, and the cases from which it is computed.

A goal is computed in each round from the lines of that round, and the median counts. The cases of a goal are words;
`{dir}` stands for the folder on a disk, and disk_goals.py has more such names.
"""

import operator

NO_GOAL = "(no goal)"
SPIN = "spin=200"  # the time in us for which the target's device spins before it sleeps
# The approximate number of bytes on the wire around a write of 64 B and its flush: 96 B to the
# target, 32 B back.
HEADER = 32


def pingpong(there, back, ways="ini=poll tgt=poll"):
    return f"who=limit work=pingpong size={there} back={back} {ways}"


def time(name):
    return lambda line: line(name)["p50_us"]


def times(over, under):
    """The time of one case as a multiple of another's."""
    return lambda line: line(over)["p50_us"] / line(under)["p50_us"]


def rates(over, under, number="ops_s"):
    return lambda line: line(over)[number] / line(under)[number]


OPERATORS = {"<=": ("≤", operator.le), ">=": ("≥", operator.ge), "<": ("<", operator.lt), ">": (">", operator.gt)}


class Goal:
    """op and bound: the goal for value(), for example "<=" 1.25. If op is None, the value is only shown."""

    def __init__(self, work, op, bound, unit, value, place="loopback", check=None, **used):
        self.work = work
        self.op = op
        self.bound = bound
        self.unit = unit
        self.value = value
        self.place = place
        self.used = used  # name: the words of a case, or (words, place)
        self.check = check  # a function of the lines: returns None, or the reason why the measurement does not count

    def met(self, measured):
        if self.op is None:
            return None
        return OPERATORS[self.op][1](measured, self.bound)

    def wanted(self):
        if self.op is None:
            return NO_GOAL
        return f"{OPERATORS[self.op][0]} {self.bound:g} {self.unit}"


def written_back(line):
    """None if the target made a write-back for each flush, otherwise the reason why the measurement does not count."""
    flushed = line("ours")
    if flushed.get("durability") != "file":
        return f"the target's memory is of class {flushed.get('durability')}"
    if flushed.get("writebacks", 0) < flushed["count"]:
        return f"{flushed['writebacks']} write-backs for {flushed['count']} flushes"
    return None


def _round_trips():
    wf = f"who=ours work=write_flush {SPIN}"
    both_wait = pingpong(96, 32, "ini=wait tgt=wait")
    yield Goal("write 64 B + flush, initiator polls, target spins", "<=", 1.25, "x ping-pong, both poll",
               times("ours", "limit"), ours=wf, limit=pingpong(96, 32))
    yield Goal("  the same, target as by default", None, 0, "x ping-pong, both poll",
               times("ours", "limit"), ours="who=ours work=write_flush", limit=pingpong(96, 32))
    yield Goal("write 64 B + flush, initiator sleeps, target idle", "<=", 1.4, "x ping-pong, both block",
               times("ours", "limit"), ours="who=ours work=write_flush ini=wait", limit=both_wait)
    yield Goal("  write 4 KiB + flush, initiator polls, target spins", None, 0, "x ping-pong, both poll",
               times("ours", "limit"), ours=f"{wf} size=4096", limit=pingpong(4096 + HEADER, 32))
    yield Goal("  write 64 B + persistent flush, tmpfs", None, 0, "x ping-pong, both poll",
               times("ours", "limit"), ours=f"{wf} flush=persistent where=/dev/shm", limit=pingpong(96, 32))
    for size, name in ((64, "64 B"), (4096, "4 KiB")):
        yield Goal(f"read {name}", "<=", 1.25, "x ping-pong, both poll", times("ours", "limit"),
                   ours=f"who=ours work=read size={size} {SPIN}", limit=pingpong(32, size + HEADER))
    yield Goal("atomic write", "<=", 1.25, "x ping-pong, both poll", times("ours", "limit"),
               ours=f"who=ours work=atomic_write size=8 {SPIN}", limit=pingpong(8 + HEADER, 32))
    yield Goal("send 64 B there and back", "<=", 1.25, "x ping-pong, both poll", times("ours", "limit"),
               ours=f"who=ours work=send tgt=poll {SPIN}", limit=pingpong(64 + HEADER, 64 + HEADER))


def _rates():
    # These cases run longer, because a stream needs some time to reach its speed.
    bulk = f"who=ours work=write_flush size=1048576 depth=4 ms=250 {SPIN}"
    stream = "who=limit work=stream size=1048576 ms=250"
    yield Goal("write 1 MiB + flush, depth 4", ">=", 0.95, "x stream", rates("ours", "limit", "bytes_s"),
               ours=f"{bulk} crc=off", limit=stream)
    yield Goal("write 1 MiB + flush, depth 4, CRC", ">=", 0.85, "x stream", rates("ours", "limit", "bytes_s"),
               ours=f"{bulk} crc=on", limit=stream)
    yield Goal("64 B writes, flush each 64", ">=", 2.5, "M/s", lambda line: line("ours")["ops_s"] / 1e6,
               ours=f"who=ours work=write every=64 depth=4 {SPIN}")
    yield Goal("loop of 1 KiB write + flush", ">=", 0.8, "x (1 / ping-pong)", rates("ours", "limit"),
               ours=f"who=ours work=write_flush size=1024 {SPIN}", limit=pingpong(1024 + HEADER, 32))
    yield Goal("batch of 16 x 64 B + flush", "<=", 1.3, "x one write + flush", times("batch", "ours"),
               batch=f"who=ours work=batch every=16 {SPIN}", ours=f"who=ours work=write_flush {SPIN}")
    yield Goal("write without a next operation, p99", "<=", 100, "us until visible",
               lambda line: line("ours")["p99_us"], ours="who=ours work=visible ms=800")  # a tail needs many samples
    yield Goal("  a write directly after 8 x (write + flush), p99", "<=", 100, "us until visible",
               lambda line: line("ours")["p99_us"], ours="who=ours work=visible every=9 ini=wait ms=800")


def _shared_memory():
    wf = f"who=ours work=write_flush {SPIN}"
    yield Goal("shm: write 64 B + flush, both spin", "<=", 0.8, "us", time("ours"), place="shm", ours=wf)
    yield Goal("shm: write 64 B + flush, both spin, against raw TCP", ">=", 10, "x faster", times("limit", "ours"),
               place="shm", ours=wf, limit=(pingpong(96, 32), "loopback"))
    yield Goal("shm: write 64 B + flush, target asleep", "<=", 8, "us", time("ours"), place="shm",
               ours="who=ours work=write_flush spin=0")
    # The time that the machine takes to wake a process: the lower bound for a message to a
    # sleeping process.
    for work, name in (("wake_socket", "a byte on a Unix socket"), ("wake_futex", "a futex")):
        yield Goal(f"  waking a sleeping process by {name}", None, 0, "us", time("limit"), place="shm",
                   limit=(f"who=limit work={work}", "loopback"))
    yield Goal("shm: write 1 MiB + flush, depth 4", ">=", 0.7, "x two copies in memory",
               rates("ours", "limit", "bytes_s"), place="shm",
               ours=f"who=ours work=write_flush size=1048576 depth=4 ms=250 {SPIN}",
               limit=("who=limit work=memcpy2 size=1048576", "loopback"))
    yield Goal("shm: 64 B writes, flush each 64", ">=", 10, "M/s", lambda line: line("ours")["ops_s"] / 1e6,
               place="shm", ours=f"who=ours work=write every=64 depth=4 {SPIN}")


SIZES = ((64, "64 B"), (4096, "4 KiB"), (1 << 20, "1 MiB"))


def _replica(work, size):
    return f"who=rpmem work=rpmem_{work} size={size} {SPIN}"


def _replica_round_trips():
    for size, name in SIZES:
        limits = {"persist": pingpong(size + HEADER, 32), "read": pingpong(32, size + HEADER)}
        for work, limit in limits.items():
            yield Goal(f"rpmem_{work} {name}", "<=", 1.2 if size == 1 << 20 else 1.5, "x ping-pong, both poll",
                       times("ours", "limit"), ours=_replica(work, size), limit=limit)
    yield Goal("  rpmem_persist 64 B, file on a disk", None, 0, "x (pwrite + fdatasync + ping-pong, one end blocks)",
               lambda line: line("ours")["p50_us"] / (line("disk")["p50_us"] + line("limit")["p50_us"]),
               check=written_back, ours="who=rpmem work=rpmem_persist flush=persistent where={dir}",
               disk="who=limit work=disk where={dir}", limit=pingpong(96, 32, "ini=poll tgt=wait"))
    yield Goal("rpmem_create, 1024 requested lanes", "<", 50, "ms", lambda line: line("ours")["p50_us"] / 1e3,
               ours="who=rpmem work=rpmem_create conns=1024")


def _replica_shared_memory():
    for size, name in SIZES:
        for work in ("persist", "read"):
            ours = _replica(work, size)
            if size < 1 << 20:
                yield Goal(f"shm: rpmem_{work} {name}", ">=", 5, "x faster than over TCP", times("tcp", "ours"),
                           place="shm", ours=ours, tcp=(ours, "loopback"))
            else:
                yield Goal(f"shm: rpmem_{work} {name}", ">=", 0.7, "x two copies in memory",
                           rates("ours", "limit", "bytes_s"), place="shm", ours=ours,
                           limit=(f"who=limit work=memcpy2 size={size}", "loopback"))


def all_goals():
    return [*_round_trips(), *_rates(), *_shared_memory()]


def net_goals():
    """The goals' work over a network of namespaces. Its results are only shown, because the goals are for loopback."""
    shown = [goal for goal in [*_round_trips(), *_rates()] if "tmpfs" not in goal.work]
    for goal in shown:
        goal.op = None
    return shown


def replica_goals():
    """Goals of librpmem, with rpmemd on tmpfs unless a goal names another place."""
    return [*_replica_round_trips(), *_replica_shared_memory()]
