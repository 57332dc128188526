# SPDX-License-Identifier: BSD-3-Clause
"""Goals for librpmirror: rows as in goals.py, and the places of their cases."""

import contextlib

from . import goal_run, place
from .goals import SPIN, Goal, times

LIMITED = "1gbit"
LIMITED_BYTES_S = 1e9 / 8
OURS = f"who=ours work=write_flush {SPIN}"
FLUSH = f"who=mirror work=mirror_flush {SPIN}"


def _more(over, under):
    return lambda line: line(over)["p50_us"] - line(under)["p50_us"]


def _flushes(where, name):
    """Goals of flushes. Both ends poll. The compared program uses librpma on the same link."""
    yield Goal(f"{name}flush 64 B, 1 replica", "<=", 2, "us more than librpma's write + flush", _more("mirror", "ours"),
               place=where, mirror=FLUSH, ours=OURS)
    yield Goal(f"  {name}the same", None, 0, "x librpma's write + flush", times("mirror", "ours"), place=where,
               mirror=FLUSH, ours=OURS)
    yield Goal(f"{name}flush of 64 ranges of 64 B", "<=", 2, "x one range", times("many", "mirror"), place=where,
               many=f"{FLUSH} every=64", mirror=FLUSH)
    if where == "shm":
        # No software can avoid the time that 64 cache lines need from one processor to another.
        bare = "who=limit work=ranges"
        yield Goal(f"  {name}the same", None, 0, "x a bare copy of 64 ranges through shared memory", times("many", "bare"),
                   place=where, many=f"{FLUSH} every=64", bare=f"{bare} every=64")
        yield Goal(f"  {name}a bare copy of 64 ranges", None, 0, "x one range", times("many", "one"), place=where,
                   many=f"{bare} every=64", one=bare)
    for count in (2, 3):
        # This case has more processes than the machine has cores, so the latency is only shown.
        # The tests system.counts check the cost.
        yield Goal(f"  {name}flush 64 B, {count} replicas", None, 0, "x of one replica", times("more", "mirror"),
                   place=where, more=f"{FLUSH} conns={count}", mirror=FLUSH)
    yield Goal(f"  {name}store8, 1 replica", None, 0, "x flush of 64 B", times("store", "mirror"), place=where,
               store=f"who=mirror work=mirror_store8 {SPIN}", mirror=FLUSH)
    yield Goal(f"  {name}flush 64 B into a cold extent", None, 0, "x into a hot one", times("cold", "mirror"),
               place=where, cold=f"who=mirror work=mirror_activate {SPIN}", mirror=FLUSH)


def _take_over():
    for where, name in (("{dir}", "files on a disk"), ("memory", "files in memory")):
        yield Goal(f"killed process: time until another process has mapped the set, {name}", "<=", 200, "ms",
                   lambda line: line("mirror")["p50_us"] / 1e3,
                   mirror=f"who=mirror work=mirror_failover ms=1500 where={where}")
        yield Goal(f"switch-over: time from unmap until another process has mapped the set, {name}", "<=", 100, "ms",
                   lambda line: line("mirror")["p50_us"] / 1e3,
                   mirror=f"who=mirror work=mirror_switch ms=1500 where={where}")


def _resync():
    resync = "who=mirror work=mirror_resync conns=2 size=1048576 every=128 ms=1000"
    yield Goal("resync of 128 MiB beside flushes, 1 Gbit/s", ">=", 0.7, "x of the link",
               lambda line: line("mirror")["bytes_s"] / LIMITED_BYTES_S, place=LIMITED, mirror=resync)
    yield Goal("p99 of the flushes beside the resync", "<=", 2, "x without the resync",
               lambda line: line("mirror")["p99_us"] / line("mirror")["calm_p99_us"], place=LIMITED, mirror=resync)


def _goals():
    return [*_flushes("loopback", ""), *_take_over(), *_resync(), *_flushes("shm", "shm: ")]


def measure(program, places, folder, count, ms):
    """Measure the goals. The limited link exists only if the process may make namespaces."""
    with contextlib.ExitStack() as made:
        try:
            limited = made.enter_context(place.Veth(1500, LIMITED))
        except OSError as reason:
            limited = place.Missing(LIMITED, str(reason))
        return goal_run.measure(_goals(), goal_run.Plan(program, {**places, LIMITED: limited}, folder), count, ms)
