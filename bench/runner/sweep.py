# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps: the lines of the plots. A point is the medians of a case; a line is a list of points."""

from . import case as cases
from .goal_run import Plan, peers_of
from .goals import HEADER, SPIN

SIZES = {"quick": (8, 64, 512, 4096, 32768, 262144, 1 << 20),
         "full": (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144,
                  524288, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20)}
DEPTHS = {"quick": (1, 4, 16, 64), "full": (1, 2, 4, 8, 16, 32, 64)}
CONNECTIONS = {"quick": (1, 16, 256, 1024), "full": (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)}


def _size(kind):
    for size in SIZES[kind]:
        yield "limit", size, f"who=limit work=pingpong size={size + HEADER} back=32 tgt=poll", "loopback"
        yield "limit stream", size, f"who=limit work=stream size={size}", "loopback"
        yield "limit copy", size, f"who=limit work=memcpy2 size={size}", "loopback"
        depth = 4 if size >= 65536 else 16
        for link in ("loopback", "shm"):
            yield f"ours {link}", size, f"who=ours work=write_flush size={size} {SPIN}", link
            yield f"ours {link} read", size, f"who=ours work=read size={size} {SPIN}", link
            yield f"ours {link} bulk", size, f"who=ours work=write_flush size={size} depth={depth} {SPIN}", link


def _depth(kind):
    for depth in DEPTHS[kind]:
        for link in ("loopback", "shm"):
            yield f"ours {link}", depth, f"who=ours work=write_flush depth={depth} {SPIN}", link
            yield f"ours {link} read", depth, f"who=ours work=read depth={depth} {SPIN}", link
            yield f"ours {link} writes", depth, f"who=ours work=write every=16 depth={depth} {SPIN}", link


def _dist(kind):
    ways = (("both poll", "ini=poll tgt=poll", f"ini=poll {SPIN}"), ("both sleep", "ini=wait tgt=wait", "ini=wait"))
    for name, limit, ours in ways:
        yield f"limit, {name}", 0, f"who=limit work=pingpong size=96 back=32 {limit}", "loopback"
        for link in ("loopback", "shm"):
            yield f"ours {link}, {name}", 0, f"who=ours work=write_flush {ours}", link
    yield "ours loopback, nobody follows up", 0, "who=ours work=visible", "loopback"
    yield "ours shm, nobody follows up", 0, "who=ours work=visible", "shm"


def _conns(kind):
    for conns in CONNECTIONS[kind]:
        for link in ("loopback", "shm"):
            yield f"ours {link}", conns, f"who=ours work=write_flush conns={conns}", link


SWEEPS = {"size": _size, "depth": _depth, "dist": _dist, "conns": _conns}
# A tail needs many samples.
LONGER = {"dist": 5}


def _peer_points(plan, name, bench_folder, build_folder, axis):
    for place_name, place in plan.places.items():
        for peer, case in peers_of(bench_folder, build_folder, place, name):
            line = f"{case['who']} {case['work']}"
            yield line, int({**cases.DEFAULTS, **case}.get(axis, 0)), plan.add(case, place_name, peer)


def measure(name, kind, program, places, folder, bench_folder, count, ms):
    """The rows of the sweep, each with the plot's line and its place on the axis."""
    plan = Plan(program, places, folder)
    points = [(line, at, plan.add(words, place)) for line, at, words, place in SWEEPS[name](kind)]
    points += _peer_points(plan, name, bench_folder, program.folder, name)
    plan.run(count, ms * LONGER.get(name, 1))
    return {"rows": [{"line": line, "at": at, **step.row()} for line, at, step in points]}
