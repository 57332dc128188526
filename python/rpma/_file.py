# SPDX-License-Identifier: BSD-3-Clause
"""An open region of a server."""

from __future__ import annotations

import enum
import os
import warnings
import weakref
from contextlib import ExitStack
from ctypes import byref, c_size_t, c_uint64, c_void_p, sizeof
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterable, List, Optional, Tuple, Union

from _rpma.buffers import Memory, new_bytes, writable
from _rpma.handle import Handle
from _rpma.interruptible import interruptible
from _rpma.native import milliseconds, text, word
from _rpma.pending import Pending
from _rpma.ranges import Pair

from . import _library as c
from ._errors import AgainError, Error, check

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer


class Durability(enum.IntEnum):
    UNKNOWN = 0
    VOLATILE = 1  # memory that cannot be persisted
    FILE = 2  # a file on a file system
    DAX = 3  # persistent memory


@dataclass(frozen=True)
class Info:
    length: int
    durability: Durability
    region: str
    server: str
    device: str
    link: str  # "tcp", "shm" or "rdma"


class Holds(enum.IntEnum):
    BYTES = c.FILE_HOLDS_BYTES  # the region has no file
    PARTIAL = c.FILE_HOLDS_PARTIAL  # a put of a file is under way or has failed
    WHOLE = c.FILE_HOLDS_WHOLE  # a whole file, stored by `rpma put`


@dataclass(frozen=True)
class Region:
    """
    A region of a server. If it holds BYTES, the members about a stored file are zero; a PARTIAL file may have no
    length yet.
    """

    name: str
    length: int
    durability: Durability
    holds: Holds
    file_length: Optional[int]
    file_time_ns: int
    file_digest: bytes  # BLAKE2b-256 of a WHOLE file


class Ticket(Pending):
    """A sync that File.sync_start() or store8_start() has begun. Any thread can wait for it, any number of times."""

    def __init__(self, handle: Handle) -> None:
        super().__init__()
        self._handle = handle
        self._number = c_uint64()

    def wait(self, timeout: Optional[float] = None) -> None:
        """Wait for its end. Raises AgainError, a TimeoutError, if it still runs after `timeout` seconds."""
        self._wait(timeout)

    def _look(self, ms: int) -> bool:
        with self._handle as f:
            code: int = c.lib.rpma_file_sync_wait(f, self._number, ms)
        if code != AgainError.code:
            check(code)
        return code == 0

    def _again(self) -> Exception:
        return AgainError("the sync still runs")


def _close(pointer: c_void_p) -> None:
    check(c.lib.rpma_file_close(byref(pointer)))


class File:
    """
    A region of a server; rpma.open() returns one.

    Written bytes are durable after a sync has returned, and not before. The end of a `with` block syncs them, and the
    server checks whether the file still has its name.
    """

    def __init__(self, target: str, pointer: c_void_p) -> None:
        self.target = target
        self._handle = Handle(f"the file {target}", pointer, _close)
        self._finalizer = weakref.finalize(self, self._handle.close)

    def _call(self, name: str, *arguments: Any) -> None:
        with self._handle as f:
            check(getattr(c.lib, name)(f, *arguments))

    @property
    def size(self) -> int:
        size = c_uint64()
        self._call("rpma_file_size", byref(size))
        return size.value

    @property
    def generation(self) -> int:
        """The number of this writer's claim, greater than that of each earlier writer; 0 if the file is only read."""
        generation = c_uint64()
        self._call("rpma_file_get_generation", byref(generation))
        return generation.value

    def info(self) -> Info:
        raw = c.Info(size=sizeof(c.Info))
        self._call("rpma_file_get_info", byref(raw))
        texts = [part.decode(errors="replace") for part in (raw.region, raw.server, raw.device, raw.link)]
        return Info(raw.length, Durability(raw.durability), *texts)

    def pwrite(self, data: "ReadableBuffer", offset: int) -> None:
        """
        Write a whole object with the buffer protocol. The program may change the object after the call; the bytes are
        durable after a sync.
        """
        with Memory(data) as memory:
            self._call("rpma_file_pwrite", memory.address, memory.length, word(offset, "an offset"))

    def pwritev(self, buffers: Iterable["ReadableBuffer"], offset: int) -> None:
        """Write several objects one after the other, as pwrite() writes one."""
        with ExitStack() as stack:
            parts = [stack.enter_context(Memory(data)) for data in buffers]
            array = (c.Iovec * len(parts))(*[c.Iovec(part.address, part.length) for part in parts])
            self._call("rpma_file_pwritev", array, len(parts), word(offset, "an offset"))

    def pread(self, length: int, offset: int) -> bytes:
        """Read bytes of the region, including those written through this file."""
        if length < 0:
            raise ValueError(f"a length is not negative, and not {length}")
        data = new_bytes(length)
        with Memory(data) as memory:
            self._call("rpma_file_pread", memory.address, length, word(offset, "an offset"))
        return data

    def pread_into(self, buffer: "WriteableBuffer", offset: int) -> None:
        """Read into an object with the buffer protocol, until it is full."""
        with writable(buffer) as memory:
            self._call("rpma_file_pread", memory.address, memory.length, word(offset, "an offset"))

    def sync(self, ranges: Optional[Iterable[Pair]] = None) -> None:
        """Make written bytes durable: all of them, or those in `ranges`, pairs of an offset and a length."""
        self.sync_start(ranges).wait()

    def sync_start(self, ranges: Optional[Iterable[Pair]] = None) -> Ticket:
        """Begin a sync. Several syncs can be under way; they end in the order in which they began."""
        pairs = [] if ranges is None else list(ranges)
        if ranges is not None and not pairs:  # the library would sync all bytes if it got no range
            return self._start(lambda _: None, whole=True)
        array = (c.Range * len(pairs))(*[c.Range(word(a, "an offset"), word(n, "a length")) for a, n in pairs])
        return self._start(lambda number: self._call("rpma_file_sync_start", array, len(array), number))

    def store8(self, offset: int, value: int) -> None:
        """
        Store an aligned word of 8 bytes in the byte order of this machine, durably, after all earlier writes are
        durable. A reader, and the file after a crash, has either the former word or the new word.
        """
        self.store8_start(offset, value).wait()

    def store8_start(self, offset: int, value: int) -> Ticket:
        """Begin a store8()."""
        arguments = word(offset, "an offset"), word(value, "a word")
        return self._start(lambda number: self._call("rpma_file_store8_start", *arguments, number))

    def _start(self, call: Callable[[Any], None], *, whole: bool = False) -> Ticket:
        ticket = Ticket(self._handle)
        ticket._begin(lambda: call(byref(ticket._number)), whole=whole)
        return ticket

    def verify(self, data: "ReadableBuffer", offset: int) -> None:
        """
        Sync, and compare the digest of the bytes on the server's medium with that of `data`. Raises DiffersError if
        they differ.
        """
        with Memory(data) as memory:
            self._call("rpma_file_verify", memory.address, memory.length, word(offset, "an offset"))

    def undecided(self) -> List[Pair]:
        """
        Offset and length of the written ranges that are possibly not durable. After LostError each range may have
        arrived completely, in part, or not at all.
        """
        room = 0
        while True:
            array, count = (c.Range * room)(), c_size_t(room)
            self._call("rpma_file_get_undecided", array, byref(count))
            if count.value <= room:
                return [(part.offset, part.length) for part in array[: count.value]]
            room = count.value

    def reopen(self) -> None:
        """
        Connect again after LostError. After this call no byte of the former connection arrives. Undecided ranges stay
        undecided until they are written or synced again. Raises TakenError if another writer has claimed the range
        meanwhile.
        """
        interruptible(lambda: self._call("rpma_file_reopen"))

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def close(self) -> None:
        """
        Sync written bytes, let the server check whether the file still has its name, and disconnect. The file is
        closed even if one of these steps fails.
        """
        self._finalizer.detach()
        interruptible(self._handle.close)

    def __enter__(self) -> "File":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            self.close()
        except Error:
            if kind is None:
                raise

    def __del__(self) -> None:
        if not self.closed:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self)

    def __repr__(self) -> str:
        return f"<rpma.File {self.target!r}{', closed' if self.closed else ''}>"


def open(
    target: str,
    *,
    readonly: bool = False,
    volatile_ok: bool = False,
    timeout: Optional[float] = 60,
    reconnect: Optional[float] = 0,
    secret_file: Optional[Union[str, "os.PathLike[str]"]] = None,
    reserve: Tuple[int, int] = (0, 0),
    owner: Optional[str] = None,
) -> File:
    """
    Open "HOST", "HOST:PORT", "HOST:REGION" or "HOST:PORT:REGION" of a server, `rpma serve` for instance.

    readonly: the file cannot be written. volatile_ok: accept memory that the server cannot persist; a sync then only
    makes written bytes visible. timeout: the longest time for an answer, in seconds; None: no limit. reconnect: the
    time in seconds for which open() and reopen() repeat the attempt while no server answers. reserve: offset and
    length of the part that this client writes, so that other clients can write the rest; length 0: to the end. owner:
    a name that this program uses at each start; connections of an earlier process of that name are ended before the
    file opens.
    """
    options = c.Options(
        size=sizeof(c.Options),
        flags=c.FILE_READONLY * readonly | c.FILE_VOLATILE_OK * volatile_ok,
        timeout_ms=milliseconds(timeout) or 1,  # 0 would be the default
        reconnect_ms=milliseconds(reconnect),
        secret_file=text(secret_file),
        write_offset=word(reserve[0], "an offset"),
        write_length=word(reserve[1], "a length"),
        owner=text(owner),
    )
    encoded = text(target)

    def call() -> File:
        pointer = c_void_p()
        check(c.lib.rpma_file_open(encoded, byref(options), byref(pointer)))
        return File(target, pointer)

    return interruptible(call, File.close)


def regions(
    target: str,
    *,
    timeout: Optional[float] = 60,
    reconnect: Optional[float] = 0,
    secret_file: Optional[Union[str, "os.PathLike[str]"]] = None,
) -> List[Region]:
    """The regions of a server, with the files that they hold. If the target names a region, only this region."""
    options = c.Options(
        size=sizeof(c.Options),
        timeout_ms=milliseconds(timeout) or 1,  # 0 would be the default
        reconnect_ms=milliseconds(reconnect),
        secret_file=text(secret_file),
    )
    encoded = text(target)
    array, count = (c.Region * c.FILE_REGIONS_MAX)(), c_size_t(c.FILE_REGIONS_MAX)
    interruptible(lambda: check(c.lib.rpma_file_list(encoded, byref(options), array, byref(count))))
    return [
        Region(
            r.name.decode(errors="replace"),
            r.length,
            Durability(r.durability),
            Holds(r.holds),
            None if r.file_length == 2**64 - 1 else r.file_length,
            r.file_time_ns,
            bytes(r.file_digest),
        )
        for r in array[: count.value]
    ]
