# SPDX-License-Identifier: BSD-3-Clause
"""`rpma serve` for one file."""

from __future__ import annotations

import os
import re
import signal
import subprocess


class FileServer:
    """The server of a new file, or of a former server's file. `close()` ends the server."""

    def __init__(self, path: str, *options: str, port: int = 0) -> None:
        self.path = path
        create = [] if os.path.exists(path) else ["--create", "--size", "4M"]
        self._process = subprocess.Popen(
            [os.environ["RPMA_TOOL"], "serve", "--port", str(port), *create, *options, path],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout
        line = self._process.stdout.readline()
        address = re.search(r" at ([^ ]*:([0-9]+)):", line)
        if not address:
            self.close()
            raise RuntimeError(f"the server does not start: {line}")
        self.address, self.port = address[1], int(address[2])

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def content(self, offset: int, length: int) -> bytes:
        with open(self.path, "rb") as file:
            file.seek(offset)
            return file.read(length)

    def close(self) -> None:
        self._process.kill()
        with self._process:
            pass
