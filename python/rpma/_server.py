# SPDX-License-Identifier: BSD-3-Clause
"""A server of regions in the program's own process."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from ctypes import byref, c_int, c_uint16, c_void_p, sizeof
from typing import TYPE_CHECKING, Any, Callable, List, Mapping, Optional, Union

from _rpma.buffers import Memory, writable
from _rpma.handle import Handle
from _rpma.native import milliseconds, text, word

from . import _library as c
from ._errors import check

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    Exported = Union[str, os.PathLike[str], WriteableBuffer]

_SLICE_MS = 250  # serve_forever() delays a handler of a signal, or close(), by at most this time


class Server:
    """
    Regions that this program serves; rpma.serve() returns one. Writes and syncs of clients need no call of the
    program.
    """

    def __init__(self, pointer: c_void_p, kept: List[Any]) -> None:
        def release(pointer: c_void_p) -> None:
            check(c.lib.rpma_file_server_delete(byref(pointer)))
            for memory in kept:
                if isinstance(memory, Memory):
                    memory.release()

        self._handle = Handle("the server", pointer, release)
        self._alone = threading.Lock()  # only one thread at a time may call functions of a server
        self._finalizer = weakref.finalize(self, self._handle.close)
        port, fd = c_uint16(), c_int()
        check(c.lib.rpma_file_server_get_port(pointer, byref(port)))
        check(c.lib.rpma_file_server_get_fd(pointer, byref(fd)))
        self.port = port.value
        self._fd = fd.value

    def fileno(self) -> int:
        """
        A descriptor for select and asyncio, readable when step() has work. The library owns the descriptor: do not
        close it.
        """
        with self._handle:
            return self._fd

    def step(self, timeout: Optional[float] = 0) -> Optional[float]:
        """
        Wait for at most `timeout` seconds (None: no limit) for work, for instance a client to admit, and do it.
        Returns the number of seconds after which the program has to call step() again at the latest, or None: only
        when fileno() is readable.
        """
        next_ms = self._step(milliseconds(timeout))
        return None if next_ms < 0 else next_ms / 1000

    def _step(self, ms: int) -> int:
        next_ms = c_int()
        with self._handle as server, self._alone:
            check(c.lib.rpma_file_server_step(server, ms, byref(next_ms)))
        return next_ms.value

    def serve_forever(self) -> None:
        """
        Serve until another thread or a handler of a signal calls close(), or until a handler raises an exception, as
        for Ctrl-C.
        """
        while not self.closed:
            try:
                self._step(_SLICE_MS)
            except ValueError:
                if not self.closed:
                    raise

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def close(self) -> None:
        """Disconnect all clients and stop."""
        self._finalizer.detach()
        self._handle.close()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_handle") and not self.closed:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self)

    def __repr__(self) -> str:
        return f"<rpma.Server{', closed' if self.closed else f', port {self.port}'}>"


def _noting(note: Callable[[str], None]) -> Any:
    return c.Note(lambda _, line: note(line.decode(errors="replace")))


def serve(
    exports: Mapping[str, "Exported"],
    address: str = "localhost",
    *,
    secret_file: Optional[Union[str, "os.PathLike[str]"]] = None,
    volatile_ok: bool = False,
    create_size: Optional[int] = None,
    max_clients: int = 0,
    note: Optional[Callable[[str], None]] = None,
) -> Server:
    """
    Serve regions by their names. A region is a file, given by its path, or memory: a writable object with the buffer
    protocol, such as a shared mmap.mmap. Clients open regions by rpma.open() or the tool rpma.

    address: "HOST" or "HOST:PORT"; port 0: any free port, which Server.port returns. create_size: create the files
    with that many bytes; they must not exist. volatile_ok: accept memory that cannot be persisted. note: a function
    that this call and step() call with a line about each event, such as a refused client.
    """
    kept: List[Any] = []
    array = (c.Export * len(exports))()
    for entry, (name, thing) in zip(array, exports.items()):
        entry.name = text(name)
        if isinstance(thing, (str, os.PathLike)):
            entry.path = text(thing)
        else:
            kept.append(writable(thing))
            entry.addr, entry.length = kept[-1].address, kept[-1].length
    options = c.ServerOptions(
        size=sizeof(c.ServerOptions),
        flags=c.FILE_SERVE_VOLATILE_OK * volatile_ok | c.FILE_SERVE_CREATE * (create_size is not None),
        secret_file=text(secret_file),
        create_size=word(create_size or 0, "a size"),
        max_clients=max_clients,
    )
    if note:
        kept.append(_noting(note))
        options.note = kept[-1]
    pointer = c_void_p()
    check(c.lib.rpma_file_serve(text(address), array, len(array), byref(options), byref(pointer)))
    return Server(pointer, kept)
