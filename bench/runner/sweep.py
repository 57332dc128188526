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

# The links, as named behind each line of ours.
LINKS = (("loopback", ", TCP"), ("shm", ", shm"))


def _size(kind):
    for size in SIZES[kind]:
        yield "raw TCP, there and back", size, f"who=limit work=pingpong size={size + HEADER} back=32 tgt=poll", "loopback"
        yield "raw TCP stream", size, f"who=limit work=stream size={size}", "loopback"
        yield "two copies in memory", size, f"who=limit work=memcpy2 size={size}", "loopback"
        depth = 4 if size >= 65536 else 16
        for link, name in LINKS:
            yield f"write + flush{name}", size, f"who=ours work=write_flush size={size} {SPIN}", link
            yield f"read{name}", size, f"who=ours work=read size={size} {SPIN}", link
            yield f"bulk write + flush{name}", size, f"who=ours work=write_flush size={size} depth={depth} {SPIN}", link


def _depth(kind):
    for depth in DEPTHS[kind]:
        for link, name in LINKS:
            yield f"write + flush{name}", depth, f"who=ours work=write_flush depth={depth} {SPIN}", link
            yield f"read{name}", depth, f"who=ours work=read depth={depth} {SPIN}", link
            yield f"16 writes + flush{name}", depth, f"who=ours work=write every=16 depth={depth} {SPIN}", link


def _dist(kind):
    ways = (("poll", "ini=poll tgt=poll", f"ini=poll {SPIN}"), ("sleep", "ini=wait tgt=wait", "ini=wait"))
    for way, limit, ours in ways:
        yield f"raw TCP, both {way}", 0, f"who=limit work=pingpong size=96 back=32 {limit}", "loopback"
        for link, name in LINKS:
            yield f"write + flush{name}, both {way}", 0, f"who=ours work=write_flush {ours}", link
    for link, name in LINKS:
        yield f"write alone until visible{name}", 0, "who=ours work=visible", link


def _conns(kind):
    for conns in CONNECTIONS[kind]:
        for link, name in LINKS:
            yield f"write + flush{name}", conns, f"who=ours work=write_flush conns={conns}", link


SWEEPS = {"size": _size, "depth": _depth, "dist": _dist, "conns": _conns}
# A tail needs many samples.
LONGER = {"dist": 5}


def _peer_points(plan, name, scripts, build_folder, axis):
    for place_name, place in plan.places.items():
        for peer, case in peers_of(scripts, build_folder, place, name):
            line = f"{case['who']} {case['work']}"
            yield line, int({**cases.DEFAULTS, **case}.get(axis, 0)), plan.add(case, place_name, peer)


def measure(name, kind, program, places, folder, scripts, count, ms):
    """The rows of the sweep, each with the plot's line and its place on the axis."""
    plan = Plan(program, places, folder)
    points = [(line, at, plan.add(words, place)) for line, at, words, place in SWEEPS[name](kind)]
    points += _peer_points(plan, name, scripts, program.folder, name)
    plan.run(count, ms * LONGER.get(name, 1))
    return {"rows": [{"line": line, "at": at, **step.row()} for line, at, step in points]}
