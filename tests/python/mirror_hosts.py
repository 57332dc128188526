# SPDX-License-Identifier: BSD-3-Clause
"""The hosts of a mirror set on this machine, with real daemons: tests/system/mirror/hosts_main.c."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from typing import IO, List, NamedTuple, cast


class Host(NamedTuple):
    name: str
    socket: str
    data: str
    pid: int


class Hosts:
    """The hosts of the set SET. Their daemons are ended by `close()`, or when this process ends."""

    SET = "orders"

    def __init__(self, count: int, size: int = 4 << 20, lease_ms: int = 5000) -> None:
        self._folder = tempfile.TemporaryDirectory(dir=os.environ["RPMA_TEST_DIR"])
        self._log = open(os.path.join(self._folder.name, "log"), "w+")
        self._process = subprocess.Popen(
            [os.environ["MIRROR_HOSTS"], str(count), str(size), str(lease_ms)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=self._folder.name,
            text=True,
        )
        self._in = cast("IO[str]", self._process.stdin)
        self._out = cast("IO[str]", self._process.stdout)
        self.hosts: List[Host] = []
        for line in self._out:
            words = line.split()
            if words[:1] == ["ready"]:
                return
            if len(words) == 4 and words[1].startswith("/"):
                self.hosts.append(Host(words[0], words[1], words[2], int(words[3])))
        self._log.seek(0)
        raise RuntimeError("the hosts do not start: " + self._log.read())

    def send(self, host: int, number: signal.Signals) -> None:
        """Send a signal to a host's daemon."""
        os.kill(self.hosts[host].pid, number)

    def kill(self, host: int) -> None:
        """Kill a host's daemon for good."""
        self._in.write(f"kill {host}\n")
        self._in.flush()
        if self._out.readline() != "done\n":
            raise RuntimeError("the daemon is not killed")

    def content(self, host: int, offset: int, length: int) -> bytes:
        with open(self.hosts[host].data, "rb") as file:
            file.seek(offset)
            return file.read(length)

    def close(self) -> None:
        for stream in (self._in, self._out, self._log):
            stream.close()
        self._process.wait(60)
        self._folder.cleanup()
