# SPDX-License-Identifier: BSD-3-Clause
"""
Durable writes of this project, and of other software that a user might choose. The guarantee of each is checked, and
all files are on one disk.

A cell is a size, a number of writes under way for each client, and a number of clients. All rows of a cell are
measured one after the other; the ratio to the local write is computed within one round.
"""

import contextlib
import dataclasses
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from . import case as cases
from . import place, rounds, servers

CELLS = {
    "quick": ((64, 1, 1), (4096, 16, 1), (64, 1, 64)),
    "full": ((64, 1, 1), (4096, 1, 1), (1 << 20, 1, 1), (64, 4, 1), (64, 16, 1), (4096, 16, 1), (1 << 20, 4, 1),
             (64, 1, 8), (4096, 1, 8), (64, 1, 64)),
}
FIRST = (64, 1, 1)
FLOOR = "local: pwrite + fdatasync"
PREFIX = "rpma-bench-durable"
SYNCS = ("fdatasync", "fsync", "msync", "sync_file_range", "pwritev2")
# With many clients each connection has few messages, so each connection moves to shared memory
# after its first message.
ENVIRONMENT = {"SOFTRNIC_SHM_AFTER": "1"}
CALL = re.compile(rf"^\d+ +({'|'.join(SYNCS)})\(")


@dataclasses.dataclass
class Row:
    """A way to write durably, and the promise of its acknowledgement."""

    name: str
    words: str
    guarantee: str
    server: type = None
    link: str = "loopback"
    ours: bool = False
    fits: callable = lambda size, depth, conns: True


def _parallel(_size, depth, conns):
    return depth * conns > 1


def _one_client(_size, _depth, conns):
    return conns == 1


_PERSISTENT = "who=ours work=write_flush flush=persistent ini=wait where={dir}"
_OUR_GUARANTEE = "in the file, on the disk"
_LOCAL_GUARANTEE = "in the file, on the disk of this machine"
ROWS = (
    Row(FLOOR, "who=local work=fdatasync where={dir}", _LOCAL_GUARANTEE),
    Row("local: pwritev2(RWF_DSYNC)", "who=local work=dsync where={dir}", _LOCAL_GUARANTEE),
    Row("local: store + msync", "who=local work=msync where={dir}", _LOCAL_GUARANTEE),
    Row("local: one fdatasync for all waiting threads", "who=local work=group where={dir}", _LOCAL_GUARANTEE,
        fits=_parallel),
    Row("librpma over TCP", _PERSISTENT, _OUR_GUARANTEE, ours=True),
    Row("librpma over rings", _PERSISTENT, _OUR_GUARANTEE, link="shm", ours=True),
    Row("librpmafile over TCP", "who=file work=sync", _OUR_GUARANTEE, servers.Served, ours=True),
    Row("librpmafile over rings", "who=file work=sync", _OUR_GUARANTEE, servers.ServedShm, "shm", True),
    Row("mirror, two copies on this disk", "who=mirror work=mirror_flush flush=persistent where={dir}",
        "in both files, on their disk", ours=True, fits=_one_client),
    Row("naive: send, pwrite, fdatasync, answer", "who=naive work=sync where={dir}", "in the file, on the disk"),
    Row("nbdkit, file plugin, FUA", "who=nbd work=fua", "in the file, on the disk", servers.Nbdkit),
    Row("tgt, iSCSI, FUA", "who=iscsi work=fua", "in the blocks of 512 B, on the disk", servers.Tgt),
    Row("Redis, appendfsync always", "who=redis work=set", "in a log on the disk, the value in memory", servers.Redis),
    Row("PostgreSQL, INSERT", "who=postgres work=insert", "as a transaction, in a log on the disk", servers.Postgres),
    Row("etcd, Put", "who=etcd work=put", "in a log on the disk of etcd's one member", servers.Etcd),
)


class Client:
    """Measures a row with its program, and with its server if it has one."""

    def __init__(self, row, programs, running):
        self.row = row
        self.programs = programs
        self.running = running  # for each class of servers: the server, or the reason why it does not run

    def _program(self, who):
        path = cases.program_path(self.programs, who)
        if not os.path.exists(path):
            raise cases.Skipped(f"the program {who} was not built: its library is not installed")
        return path

    def _server_words(self):
        found = self.running.get(self.row.server)
        if isinstance(found, str):
            raise cases.Skipped(found)
        return found.words if found else {}

    def command(self, case, where, ms):
        words = {**{name: value for name, value in case.items() if name != "who"}, **self._server_words(), "ms": ms}
        return [self._program(case["who"]), *where.words(), *(f"{name}={value}" for name, value in words.items())]

    def run(self, case, where, ms):
        return cases.run_program(self.command(case, where, ms), {**os.environ, **ENVIRONMENT}, ms)[0]

    def server_pids(self):
        """Process ids of the row's server; none if the client starts it."""
        server = self.running.get(self.row.server)
        return process_tree(server.process.pid) if server else []


def process_tree(pid):
    """Process ids of a process and its descendants."""
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as children:
                for child in children.read().split():
                    yield from process_tree(int(child))
        yield pid


# ---- the calls for which an acknowledgement waits, by strace ----

def count_syncs(trace):
    """The number of calls that wait for the disk, by name. pwritev2 counts only if it is synchronous."""
    found = {}
    for line in trace.splitlines():
        call = CALL.match(line)
        if call and (call[1] != "pwritev2" or "RWF_DSYNC" in line):
            found[call[1]] = found.get(call[1], 0) + 1
    return found


def _trace(client, command, out):
    """Run the command, and trace the calls of its server, or of all its own processes."""
    strace = ["strace", "-f", "-qq", "-o", out, "-e", f"trace={','.join(SYNCS)}"]
    pids = list(client.server_pids())
    if not pids:
        return cases.run_program([*strace, *command], {**os.environ, **ENVIRONMENT}, 0)[0]
    with subprocess.Popen([*strace, *(f"-p{pid}" for pid in pids)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as tracer:
        try:
            _await_tracer(tracer, pids)
            return cases.run_program(command, {**os.environ, **ENVIRONMENT}, 0)[0]
        finally:
            tracer.terminate()


def _await_tracer(tracer, pids):
    """Wait until strace is attached to all of these processes."""
    for pid in pids:
        while not _is_traced(pid):
            if tracer.poll() is not None:
                raise cases.Failed(f"strace: {tracer.stderr.read().strip()}")


def _is_traced(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
        return "TracerPid:\t0\n" not in status.read()
    return True  # the process has ended


def see_syncs(client, case, where, ms):
    """The numbers of writes and of calls that wait for the disk, or why they were not counted."""
    if not shutil.which("strace"):
        return {"why": "strace is not installed"}
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "trace")
        try:
            line = _trace(client, client.command(case, where, ms), out)
        except (cases.Skipped, cases.Failed, OSError, ValueError) as reason:
            return {"why": str(reason)}
        with open(out, encoding="utf-8", errors="replace") as trace:
            return {"writes": line["count"], "calls": count_syncs(trace.read())}


def is_durable(seen):
    """
    Was there at least one call that waits for the medium for each write? sync_file_range does not count, because it
    does not flush the disk's cache.
    """
    return sum(waits_for_medium(seen).values()) >= seen.get("writes", 1)


def waits_for_medium(seen):
    """The calls that wait for the medium."""
    return {call: count for call, count in seen.get("calls", {}).items() if call != "sync_file_range"}


# ---- the measurement ----

def _remove_leftovers(folder):
    """Remove the folders of runs whose process has ended; the servers of such a run ended with the process."""
    for name in os.listdir(folder):
        left = re.fullmatch(rf"{PREFIX}-(\d+)", name)
        if left and not os.path.exists(f"/proc/{left[1]}"):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)


@contextlib.contextmanager
def _folder(where):
    _remove_leftovers(where)
    made = os.path.join(os.path.abspath(where), f"{PREFIX}-{os.getpid()}")
    os.mkdir(made, 0o711)  # a server that runs as another user gets a folder in this one
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextlib.contextmanager
def _servers(rows, folder, tools):
    """For each class of servers: the server, or the reason why it does not run. The end stops all servers."""
    running = {}
    with contextlib.ExitStack() as made:
        for kind in filter(None, (row.server for row in rows)):
            server = kind(folder, tools)
            made.callback(server.stop)
            try:
                server.start()
                running[kind] = server
            except (servers.Missing, OSError, subprocess.TimeoutExpired, KeyError) as reason:
                running[kind] = str(reason)
        yield running


def _steps(rows, cells, folder, programs, running):
    """(row, cell, step); the rows of a cell are adjacent."""
    places = {link: place.Loopback(link) for link in ("loopback", "shm")}
    for cell in cells:
        for row in rows:
            if row.fits(*cell):
                words = f"{row.words.format(dir=folder)} size={cell[0]} depth={cell[1]} conns={cell[2]}"
                yield row, cell, rounds.Step(cases.parse(words), Client(row, programs, running), places[row.link])


def _record(row, cell, step, floor):
    found = {"row": row.name, "ours": row.ours, "cell": list(cell), **step.row()}
    found.pop("dist", None)
    ratio = rounds.values((step, floor), lambda number: step.lines[number]["p50_us"] / floor.lines[number]["p50_us"])
    if ratio:
        found["ratio"] = round(statistics.median(ratio), 3)
        found["ratios"] = [round(each, 3) for each in ratio]
    return found


def _see_all(measured, ms):
    for row, cell, step in measured:
        if cell == FIRST and not step.why:
            seen = see_syncs(step.runner, step.case, step.place, ms)
            yield row, seen
            if "why" not in seen and not is_durable(seen):
                print(f"WARNING: {row.name}: {seen['calls']} for {seen['writes']} writes", file=sys.stderr, flush=True)


def measure(kind, programs, folder, count, ms, rows=ROWS):
    """The rows with their ratios to the local write, and for each row the counted calls that prove its guarantee."""
    tools = os.path.join(os.path.dirname(os.path.abspath(programs)), "tools")
    with _folder(folder) as made, _servers(rows, made, tools) as running:
        measured = list(_steps(rows, CELLS[kind], made, programs, running))
        floors = {cell: step for row, cell, step in measured if row.name == FLOOR}
        rounds.run([step for _, _, step in measured], count, ms)
        seen = {row.name: {"guarantee": row.guarantee, **what} for row, what in _see_all(measured, ms)}
    return {"rows": [_record(row, cell, step, floors[cell]) for row, cell, step in measured], "seen": seen}
