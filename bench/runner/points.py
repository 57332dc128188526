# SPDX-License-Identifier: BSD-3-Clause
"""The points of the sweeps: a case, its plot and line, and its limit."""

import dataclasses

from .goals import HEADER, SPIN, pingpong


@dataclasses.dataclass
class Point:
    plot: str
    line: str
    at: int  # position on the axis
    words: str
    place: str = "loopback"
    limit: str = ""  # the words of the case, on loopback
    number: str = "p50_us"  # the number that is compared with the limit


SIZES = {"quick": (8, 64, 1024, 8192, 65536, 1 << 20), "full": tuple(1 << bit for bit in range(3, 25))}
QUICK_PEER_SIZES = (64, 1 << 20)
DEPTHS = {"quick": (1, 4, 16, 64), "full": tuple(1 << bit for bit in range(7))}
CONNECTIONS = {"quick": (1, 16, 256, 1024), "full": tuple(1 << bit for bit in range(11))}

# The names of the links, at the end of the name of each line of this project's programs.
LINKS = (("loopback", ", TCP"), ("shm", ", shm"))


def _size_latency(size):
    there, back = pingpong(size + HEADER, 32), pingpong(32, size + HEADER)
    yield Point("latency", "raw TCP, there and back", size, there)
    for link, name in LINKS:
        ours = f"size={size} {SPIN}"
        yield Point("latency", f"write + flush{name}", size, f"who=ours work=write_flush {ours}", link, there)
        yield Point("latency", f"read{name}", size, f"who=ours work=read {ours}", link, back)


def _size_bandwidth(size):
    depth = 4 if size >= 65536 else 16
    bulk = f"who=ours work=write_flush size={size} depth={depth} {SPIN}"
    stream, copies = f"who=limit work=stream size={size}", f"who=limit work=memcpy2 size={size}"
    yield Point("bandwidth", "raw TCP stream", size, stream)
    yield Point("bandwidth", "two copies in memory", size, copies)
    yield Point("bandwidth", "write + flush, TCP", size, f"{bulk} crc=off", "loopback", stream, "bytes_s")
    yield Point("bandwidth", "write + flush, TCP, CRC", size, f"{bulk} crc=on", "loopback", stream, "bytes_s")
    yield Point("bandwidth", "write + flush, shm", size, bulk, "shm", copies, "bytes_s")


def _size_persistent(size):
    disk = f"who=limit work=disk size={size} where={{dir}}"
    flush = f"who=ours work=write_flush size={size} flush=persistent"
    yield Point("persistent", "pwrite + fdatasync, local", size, disk)
    yield Point("persistent", "write + persistent flush, file on a disk", size, f"{flush} where={{dir}}", limit=disk)
    yield Point("persistent", "write + persistent flush, tmpfs", size, f"{flush} where=/dev/shm")
    yield Point("persistent", "write + flush to visibility", size, f"who=ours work=write_flush size={size}")


def _size(kind):
    for size in SIZES[kind]:
        yield from _size_latency(size)
        yield from _size_bandwidth(size)
        yield from _size_persistent(size)


def _depth(kind):
    for depth in DEPTHS[kind]:
        for link, name in LINKS:
            yield Point("rate", f"write + flush{name}", depth, f"who=ours work=write_flush depth={depth} {SPIN}", link)
            yield Point("rate", f"read{name}", depth, f"who=ours work=read depth={depth} {SPIN}", link)
            yield Point("rate", f"16 writes + flush{name}", depth, f"who=ours work=write every=16 depth={depth} {SPIN}",
                        link)


def _dist(_kind):
    ways = (("poll", "ini=poll tgt=poll", f"ini=poll {SPIN}"), ("sleep", "ini=wait tgt=wait", "ini=wait"))
    for way, raw, ours in ways:
        limit = pingpong(96, 32, raw)
        yield Point("distribution", f"raw TCP, both {way}", 0, limit)
        for link, name in LINKS:
            yield Point("distribution", f"write + flush{name}, both {way}", 0, f"who=ours work=write_flush {ours}",
                        link, limit)
    for link, name in LINKS:
        yield Point("distribution", f"write alone until visible{name}", 0, "who=ours work=visible", link)


def _conns(kind):
    for conns in CONNECTIONS[kind]:
        for link, name in LINKS:
            yield Point("connections", f"write + flush{name}", conns, f"who=ours work=write_flush conns={conns}", link)


SWEEPS = {"size": _size, "depth": _depth, "dist": _dist, "conns": _conns}


def peer_point(sweep, case, place):
    """The plot and line of a peer's case. The sweep of sizes compares streams by bandwidth, other cases by time."""
    plots = {"size": "bandwidth" if case["work"] == "write" else "latency", "depth": "rate", "dist": "distribution",
             "conns": "connections"}
    at = {"size": case.get("size", 64), "depth": case.get("depth", 1), "conns": case.get("conns", 1)}.get(sweep, 0)
    return Point(plots[sweep], f"{case['who']} {case['work']}", int(at), "", place)
