# SPDX-License-Identifier: BSD-3-Clause
"""The programs in the documents run as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unittest
from typing import Dict, List

from mirror_hosts import Hosts

TOP = os.environ["RPMA_SOURCE"]


def programs(document: str) -> List[str]:
    with open(os.path.join(TOP, document)) as file:
        return re.findall(r"^```python\n(.*?)^```$", file.read(), re.M | re.S)


class Documents(unittest.TestCase):
    def run_all(self, document: str, environment: Dict[str, str]) -> List[str]:
        output = []
        for program in programs(document):
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
        environment = {"RPMIRROR_SOCKET": hosts.hosts[0].socket}
        self.assertEqual(len(self.run_all("python/README.md", environment)), 1)
        self.assertEqual(hosts.content(1, 0, 5), b"hello")
        printed = self.run_all("doc/python.md", environment)
        self.assertEqual(printed[0], "durable on ['a', 'b']\n")
        self.assertEqual(hosts.content(1, 7 * 64, 5), b"entry")
        self.assertIn("no-such-set", printed[2])


if __name__ == "__main__":
    unittest.main()
