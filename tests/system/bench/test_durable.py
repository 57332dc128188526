#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Durable writes (bench/runner/durable.py): each row is measured for some milliseconds with its real server, which must
wait for the disk at least once for each write. No process and no file may remain. Exit status 77: a program that the
row needs is not installed.
"""

import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BENCH = os.path.join(os.environ["RPMA_SOURCE"], "bench")
PROGRAMS = os.path.join(os.environ["RPMA_BINARY"], "bench")
sys.path.insert(0, BENCH)
from runner import durable, durable_table, plot, servers  # noqa: E402

servers.DISK_MIB = 8  # enough for the few connections of these tests
# A program that runs until a signal ends it.
FOREVER = """
import signal, sys
sys.path.insert(0, sys.argv[1])
from runner import durable
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
rows = [row for row in durable.ROWS if row.name in (durable.FLOOR, "librpmafile over TCP")]
durable.measure("quick", sys.argv[2], sys.argv[3], 10000, 20, rows)
"""


def until(condition, what):
    for _ in range(1000):
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(what)


def processes_in(folder):
    """Processes whose command contains that folder."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as words:
                if folder.encode() in words.read() and int(path.split("/")[2]) != os.getpid():
                    yield path
        except OSError:
            continue


class Durable(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ["RPMA_BINARY"])
        self.addCleanup(self.folder.cleanup)
        os.chmod(self.folder.name, 0o711)

    def measure(self, name, ms=20):
        """The row of that name, and the counted calls that prove its guarantee."""
        rows = [row for row in durable.ROWS if row.name in (durable.FLOOR, name)]
        durable.CELLS["test"] = (durable.FIRST,)
        record = durable.measure("test", PROGRAMS, self.folder.name, 1, ms, rows)
        self.assertEqual(os.listdir(self.folder.name), [])
        self.assertEqual(list(processes_in(self.folder.name)), [])
        row = next(row for row in record["rows"] if row["row"] == name)
        why = row.get("why", "")
        if why.endswith("is not installed"):
            self.skip(why)
        self.assertEqual(why, "")
        return row, record["seen"][name]

    def is_served(self):
        return glob.glob(os.path.join(self.folder.name, "*", "rpma-serve", "log")) and list(processes_in("rpma-serve/disk"))

    def skip(self, why):
        print(why, file=sys.stderr)
        self.folder.cleanup()
        os._exit(77)

    def check(self, name):
        row, seen = self.measure(name)
        self.assertGreater(row["p50_us"], 0)
        self.assertGreater(row["ratio"], 0)
        if "strace" in seen.get("why", ""):
            self.skip(seen["why"])
        self.assertTrue(durable.is_durable(seen), seen)

    def test_local_fdatasync(self):
        self.check(durable.FLOOR)

    def test_local_dsync(self):
        self.check("local: pwritev2(RWF_DSYNC)")

    def test_local_msync(self):
        self.check("local: store + msync")

    def test_librpma(self):
        self.check("librpma over TCP")

    def test_librpmafile(self):
        self.check("librpmafile over TCP")

    def test_librpmafile_rings(self):
        self.check("librpmafile over rings")

    def test_mirror(self):
        self.check("mirror, two copies on this disk")

    def test_naive(self):
        self.check("naive: send, pwrite, fdatasync, answer")

    def test_nbdkit(self):
        self.check("nbdkit, file plugin, FUA")

    def test_tgt(self):
        self.check("tgt, iSCSI, FUA")

    def test_redis(self):
        self.check("Redis, appendfsync always")

    def test_postgres(self):
        self.check("PostgreSQL, INSERT")

    def test_etcd(self):
        self.check("etcd, Put")

    def test_many_at_a_time(self):
        """Cells with several writes under way or several clients: pipelines, threads and parts of the file."""
        names = (durable.FLOOR, "local: one fdatasync for all waiting threads", "librpma over TCP", "librpmafile over TCP",
                 "naive: send, pwrite, fdatasync, answer", "nbdkit, file plugin, FUA", "Redis, appendfsync always")
        durable.CELLS["test"] = ((4096, 4, 8),)
        record = durable.measure("test", PROGRAMS, self.folder.name, 1, 20,
                                 [row for row in durable.ROWS if row.name in names])
        for row in record["rows"]:
            if not row.get("why", "").endswith("is not installed"):
                self.assertGreater(row.get("ratio", 0), 0, row)

    def test_a_server_that_does_not_start_is_a_reason(self):
        class Absent(servers.Server):
            name = "absent"

            def command(self):
                return ["sh", "-c", "echo no such thing; exit 1"]

        durable.CELLS["test"] = (durable.FIRST,)
        rows = [durable.ROWS[0], durable.Row("absent", "who=naive work=sync", "none", Absent)]
        record = durable.measure("test", PROGRAMS, self.folder.name, 1, 20, rows)
        self.assertIn("no such thing", record["rows"][1]["why"])

    def test_nothing_is_left_after_an_interrupt(self):
        with subprocess.Popen([sys.executable, "-B", "-c", FOREVER, BENCH, PROGRAMS, self.folder.name],
                              stderr=subprocess.DEVNULL) as process:
            until(self.is_served, "no server was started")
            process.send_signal(signal.SIGTERM)
        until(lambda: not list(processes_in(self.folder.name)), "a process is left")
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_a_killed_run_ends_its_servers_and_the_next_one_removes_its_folder(self):
        with subprocess.Popen([sys.executable, "-B", "-c", FOREVER, BENCH, PROGRAMS, self.folder.name],
                              stderr=subprocess.DEVNULL) as process:
            until(self.is_served, "no server was started")
            process.kill()
        until(lambda: not list(processes_in(self.folder.name)), "a process is left")
        self.check(durable.FLOOR)

    def test_calls_that_wait_for_the_disk_are_counted(self):
        trace = ("12 fdatasync(5) = 0\n12 pwritev2(3, [{iov_len=64}], 1, 0, RWF_DSYNC) = 64\n12 fdatasync(5 <unfinished ...>\n"
                 "13 pwritev2(3, [{iov_len=64}], 1, 0, 0) = 64\n12 <... fdatasync resumed>) = 0\n")
        self.assertEqual(durable.count_syncs(trace), {"fdatasync": 2, "pwritev2": 1})

    def test_a_sync_that_does_not_reach_the_medium_is_not_durable(self):
        self.assertTrue(durable.is_durable({"writes": 9, "calls": {"fdatasync": 9}}))
        self.assertFalse(durable.is_durable({"writes": 9, "calls": {"fdatasync": 8}}))
        self.assertFalse(durable.is_durable({"writes": 9, "calls": {"sync_file_range": 9}}))
        self.assertFalse(durable.is_durable({"writes": 9, "calls": {}}))

    def record(self):
        def row(name, cell, ours=False, **more):
            return {"row": name, "ours": ours, "cell": cell, "p50_us": 20, "p99_us": 30, "ops_s": 50000, "ratio": 2,
                    "ratios": [1, 2, 3], **more}
        first, other = list(durable.FIRST), [4096, 16, 1]
        seen = {name: {"guarantee": "in the file", "writes": 10, "calls": {"msync": 11, "fsync": 1}}
                for name in (durable.FLOOR, "librpma over TCP")}
        missing = {"row": "tgt", "ours": False, "cell": first, "why": "tgtd is not installed"}
        return {"rows": [row(durable.FLOOR, first), row("librpma over TCP", first, True), missing,
                         row("librpma over TCP", other, True, ratio=1.5)], "seen": seen}

    def test_the_tables_have_each_row_with_its_guarantee_and_each_cell(self):
        text = "".join(durable_table.markdown(self.record(), "here"))
        self.assertIn("| **librpma over TCP** | in the file | `msync` | 20 | 30 | 50,000 | 2.00 | 1.00 .. 3.00 |", text)
        self.assertIn("| tgt | not measured: tgtd is not installed |", text)
        self.assertIn("| **librpma over TCP** | 1.50 (50,000) |", text)
        shown = "\n".join(durable_table.lines(self.record()["rows"]))
        self.assertIn("64 B, 1 at a time, one client", shown)
        self.assertIn("4 KiB, 16 at a time, one client", shown)
        self.assertIn("not measured: tgtd is not installed", shown)

    def test_what_is_not_durable_is_named_so(self):
        record = self.record()
        record["seen"]["librpma over TCP"]["calls"] = {"msync": 3}
        self.assertIn("**not durable**", "".join(durable_table.markdown(record, "here")))

    def test_the_front_page_has_one_sentence_and_its_bars(self):
        self.assertIn("`fdatasync`, is 2.00 x over TCP. All were measured in the same minutes, on one disk (here).",
                      durable_table.sentence(self.record(), "here"))
        self.assertEqual([name for name, _, _ in durable_table.bars(self.record())], [durable.FLOOR, "librpma over TCP"])
        for page in ("README.md", "bench/README.md"):
            with open(os.path.join(os.environ["RPMA_SOURCE"], page), encoding="utf-8") as text:
                self.assertIn("<!-- durable: begin -->\n", text.read())

    def test_the_bars_are_drawn(self):
        if not shutil.which("gnuplot"):
            self.skip("gnuplot is not installed")
        path = os.path.join(self.folder.name, "bars")
        plot.draw_bars(durable_table.bars(self.record()), path, durable_table.TITLE, "x")
        for ending in plot.FORMATS:
            self.assertGreater(os.path.getsize(f"{path}.{ending}"), 1000)

    def test_rows_of_the_sentence_exist(self):
        self.assertLessEqual({name for name, _ in durable_table.SENTENCE}, {row.name for row in durable.ROWS})


if __name__ == "__main__":
    unittest.main()
