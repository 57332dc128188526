# SPDX-License-Identifier: BSD-3-Clause
"""Runs the programs in the documents unchanged."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import unittest
from typing import Any, Dict, List

import rpma
from file_server import FileServer
from mirror_hosts import Hosts

TOP = os.environ["RPMA_SOURCE"]


def programs(document: str) -> List[str]:
    with open(os.path.join(TOP, document)) as file:
        return re.findall(r"^```python\n(.*?)^```$", file.read(), re.M | re.S)


class Documents(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(dir=os.environ["RPMA_TEST_DIR"])
        self.addCleanup(folder.cleanup)
        os.chdir(folder.name)
        self.addCleanup(os.chdir, "/")
        self.servers = {name: FileServer(name) for name in ("pool", "log")}
        for server in self.servers.values():
            self.addCleanup(server.close)

    def run_all(self, document: str, environment: Dict[str, str]) -> List[str]:
        output = []
        for program in programs(document):
            # The servers of this test have free ports, while the documents' programs use the
            # default port.
            for name, server in self.servers.items():
                program = program.replace(f'"localhost:{name}"', f'"{server.address}:{name}"')
            run = subprocess.run(
                [sys.executable, "-B", "-W", "error", "-c", program],
                env={**os.environ, **environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                timeout=60,
            )
            self.assertEqual((run.returncode, run.stderr), (0, ""), program)
            output.append(run.stdout)
        return output

    def test_programs_of_the_documents(self) -> None:
        hosts = Hosts(2)
        self.addCleanup(hosts.close)
        server = self.servers["pool"]
        environment = {"RPMIRROR_SOCKET": hosts.hosts[0].socket}
        self.assertEqual(len(self.run_all("python/README.md", environment)), 2)
        self.assertEqual((server.content(0, 5), hosts.content(1, 0, 5)), (b"hello", b"hello"))
        printed = self.run_all("doc/python.md", environment)
        self.assertEqual(len(printed), 7)
        self.assertEqual(printed[0], "b'hello'\n")
        self.assertEqual(printed[1], "14 bytes are durable\n")
        self.assertEqual(self.servers["log"].content(8, 14), b"one\ntwo\nthree\n")
        self.assertEqual(self.servers["log"].content(14 + 8, 18), b"again, if need be\n")
        with open("notes", "rb") as file:
            self.assertEqual(file.read(6), b"served")
        self.assertEqual(printed[4], "durable on ['a', 'b']\n")
        self.assertEqual(hosts.content(1, 7 * 64, 5), b"entry")
        self.assertIn("no-such-set", printed[6])

    def test_a_writer_that_comes_back_leaves_what_another_has_written(self) -> None:
        (program,) = [p for p in programs("doc/python.md") if "def commit" in p]
        page: Dict[str, Any] = {}
        exec(program[: program.index("with rpma.open")], page)
        server = self.servers["log"]
        with self.assertRaisesRegex(rpma.TakenError, "another writer"), rpma.open(server.address, reconnect=20) as log:
            self.assertEqual(page["commit"](log, 0, b"mine"), 4)
            server.close()
            again = FileServer("log", port=server.port)
            self.addCleanup(again.close)
            with rpma.open(again.address) as other:
                self.assertEqual(page["commit"](other, 4, b"another's"), 13)
            page["commit"](log, 4, b"mine, too")
        self.assertEqual(again.content(0, 21), b"\x0d" + bytes(7) + b"mineanother's")


if __name__ == "__main__":
    unittest.main()
