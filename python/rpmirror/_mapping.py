# SPDX-License-Identifier: BSD-3-Clause
"""A mapped set: its bytes, and the calls that make them durable."""

from __future__ import annotations

import ctypes
import select
import threading
import warnings
import weakref
from ctypes import byref, c_int, c_void_p, sizeof
from typing import TYPE_CHECKING, Any, Callable, Iterable, List, Optional, Sequence, Tuple, Union, overload

from _rpma.handle import Handle
from _rpma.interruptible import interruptible
from _rpma.native import milliseconds, word
from _rpma.ranges import Pair, Ranges

from . import _library as c
from ._errors import Error, InvalidError, NoEventError, NoMemoryError, check, last_error
from ._results import Event, LocalError, Result, State
from ._ticket import Ticket

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_SLICE_MS = 500  # a wait for events delays close() by at most this time


def _unmap(pointer: c_void_p) -> None:
    check(c.lib.rpmirror_unmap(byref(pointer)))


class Mapping:
    """
    A set that this process has mapped; rpmirror.map() returns one.

    It is a sequence of bytes. Assigned ranges (`m[0:5] = b"hello"`) are remembered, and flush() makes them durable
    here and on every in-sync copy. `view` is the memory itself. At the end of a `with` block the remembered ranges
    are flushed and the set is unmapped; after an exception it is only unmapped.
    """

    def __init__(self, name: str, pointer: c_void_p, address: int, size: int, flags: int) -> None:
        self.name = name
        self.readonly = bool(flags & c.MAP_READONLY)
        self.direct = bool(flags & c.MAP_DIRECT)
        self._address = address
        self._size = size
        self._handle = Handle(f"the mapping of {name}", pointer, _unmap)
        # The array needs a separate class, because a bare array supports neither weak references
        # nor further attributes.
        self._memory_type: Any = type("Memory", (ctypes.c_ubyte * size,), {})
        self._bytes = self._view_of(self._memory_type.from_address(address))
        # The lock guards the remembered ranges, the unfinished flushes that have taken some of
        # these ranges, and the views that programs have.
        self._lock = threading.Lock()
        self._remembered = Ranges()
        self._begun: List[Ticket] = []
        self._viewed: Callable[[], Any] = lambda: None
        self._closing = False
        self._finalizer = weakref.finalize(self, self._handle.close)

    def _view_of(self, memory: Any) -> memoryview:
        view = memoryview(memory).cast("B")
        return view.toreadonly() if self.readonly else view

    # Bytes

    def __len__(self) -> int:
        return self._size

    @property
    def view(self) -> memoryview:
        """
        The memory itself, without a copy. Stores through it are not remembered: flush their ranges, add them by
        remember(), or call sync(). All views are released before close().
        """
        with self._handle, self._lock:
            memory = self._viewed()
            if self._closing:
                raise ValueError(f"the mapping of {self.name} is closed")
            if memory is None:
                memory = self._memory_type.from_address(self._address)
                memory.mapping = self  # the set stays mapped as long as a view exists
                self._viewed = weakref.ref(memory)
            return self._view_of(memory)

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> bytes: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[int, bytes]:
        with self._handle:
            found = self._bytes[index]
            return found.tobytes() if isinstance(found, memoryview) else found

    @overload
    def __setitem__(self, index: int, value: int) -> None: ...

    @overload
    def __setitem__(self, index: slice, value: "ReadableBuffer") -> None: ...

    def __setitem__(self, index: Union[int, slice], value: Any) -> None:
        """A slice accepts any object with the buffer protocol and the slice's number of bytes."""
        if isinstance(index, slice):
            offset, end, step = index.indices(self._size)
            length = max(0, end - offset)
            source = memoryview(value)
            if step != 1 or source.nbytes != length:
                raise ValueError(f"{source.nbytes} bytes do not fit to {length} bytes in steps of {step}")
            if length:
                self._store(offset, source.cast("B"))
            return
        offset = range(self._size)[index]
        self._store(offset, memoryview(bytes((value,))))

    def _store(self, offset: int, source: memoryview) -> None:
        length = len(source)
        with self._handle as m:
            if self.direct:
                self._make_writable(m, offset, length)
            self._bytes[offset : offset + length] = source
            # The range is added after the store, so that a flush in another thread that takes the
            # range contains the new bytes.
            with self._lock:
                self._remembered.add(offset, length)

    def _make_writable(self, m: c_void_p, offset: int, length: int) -> None:
        """
        Make an extent ready for stores. The first store to an extent waits for a record; this call waits without the
        GIL, so that other threads of Python run.
        """
        code = c.lib.rpmirror_touch(m, self._address + offset, length)
        if code not in (0, NoMemoryError.code):  # no memory: the store itself will wait for a record
            raise last_error(code)

    def remember(self, offset: int, length: int) -> None:
        """Add a range to those that the next flush() takes, after stores through a view."""
        self._checked([(offset, length)])
        with self._lock:
            self._remembered.add(offset, length)

    @property
    def remembered(self) -> List[Pair]:
        """Offset and length of the ranges that the next flush() takes."""
        with self._lock:
            return self._remembered.pairs()

    # Flushes

    def flush(self, ranges: Optional[Iterable[Pair]] = None) -> Result:
        """
        Make ranges, pairs of an offset and a length, durable here and on every in-sync copy. Without `ranges`: all
        remembered ranges, including ranges that another thread's flush has taken and that are not durable yet.
        """
        while True:
            ticket, others = self._flush_start(ranges)
            result = ticket.wait()
            if ranges is not None or not any([other._has_failed() for other in others]):
                return result
            # If a flush in another thread failed, the ranges that it had taken are remembered
            # again.

    def flush_start(self, ranges: Optional[Iterable[Pair]] = None) -> Ticket:
        """
        Begin a flush. The content of the ranges is copied before the call returns. Without `ranges`: all remembered
        ranges, except those that earlier tickets have taken.
        """
        return self._flush_start(ranges)[0]

    def _flush_start(self, ranges: Optional[Iterable[Pair]]) -> Tuple[Ticket, List[Ticket]]:
        ticket, pairs, others = self._book(ranges)
        ticket._begin(lambda: ticket._start(pairs))
        return ticket, others

    def flush_verify(self, ranges: Optional[Iterable[Pair]] = None) -> Result:
        """
        Flush, and afterwards compare digests of the bytes on each member's medium. If members differ, they are
        excluded, and VerifyError is raised with these members in result.failed_mask. During the call no thread may
        store into the ranges or flush them.
        """
        ticket, pairs, _ = self._book(ranges)
        array, raw = self._array(pairs), c.FlushResult()

        def call() -> None:
            with self._handle as m:
                code = c.lib.rpmirror_flush_verify(m, array, len(array), byref(raw))
            if code:
                raise last_error(code, Result._from(raw))

        ticket._begin(call, whole=True)
        return Result._from(raw)

    def sync(self, offset: Optional[int] = None, length: Optional[int] = None) -> None:
        """
        Flush one range or, without a range, all stores, including stores through views: each page with stores since
        the set was mapped or, in a direct mapping, each extent with unflushed stores.
        """
        if (offset is None) != (length is None):
            raise InvalidError("sync() takes an offset and a length, or neither")
        ranges = None if offset is None or length is None else [(offset, length)]
        address = None if offset is None else self._address + offset
        while True:
            ticket, _, others = self._book(ranges)
            ticket._begin(lambda: self._call("rpmirror_sync", address, length or 0), whole=True)
            if ranges is not None or not any([other._has_failed() for other in others]):
                return

    def store8(self, offset: int, value: int) -> None:
        """
        Store an aligned word of 8 bytes in the byte order of this machine, durably, and atomically here and in every
        copy. No copy ever has the word without the bytes of this thread's earlier flushes.
        """
        self._checked([(offset, 8)])
        self._call("rpmirror_store8", self._address + offset, word(value, "a word"))

    def confirm(self) -> None:
        """Confirm that earlier reads were not stale. Raises LeaseError or FencedError otherwise."""
        self._call("rpmirror_confirm")

    def touch(self, offset: int, length: int) -> None:
        """For a direct mapping: permit the kernel to store into a range, as by readinto(), until its flush."""
        self._checked([(offset, length)])
        self._call("rpmirror_touch", self._address + offset, length)

    def _call(self, name: str, *arguments: Any) -> None:
        with self._handle as m:
            check(getattr(c.lib, name)(m, *arguments))

    def _checked(self, ranges: Iterable[Pair]) -> List[Pair]:
        """Check ranges, because ctypes would truncate addresses that do not fit."""
        pairs = [(offset, length) for offset, length in ranges]
        for offset, length in pairs:
            if offset < 0 or length < 0 or offset + length > self._size:
                raise InvalidError(f"offset {offset}, length {length}: the mapping of {self.name} has {self._size} bytes")
        return pairs

    def _array(self, pairs: Sequence[Pair]) -> "ctypes.Array[c.Range]":
        return (c.Range * len(pairs))(*[c.Range(self._address + offset, length) for offset, length in pairs])

    def _book(self, ranges: Optional[Iterable[Pair]]) -> Tuple[Ticket, List[Pair], List[Ticket]]:
        """A ticket with the remembered ranges that it takes, the ranges to flush, and the earlier flushes."""
        pairs = None if ranges is None else self._checked(ranges)
        with self._lock:
            others = list(self._begun)
            if pairs is None:
                taken = pairs = self._remembered.take_all()
            else:
                taken = [part for pair in pairs for part in self._remembered.take(*pair)]
            ticket = Ticket(self, taken)
            if taken:
                self._begun.append(ticket)
        return ticket, pairs, others

    def _settle(self, ticket: Ticket, taken: List[Pair], failed: bool) -> None:
        with self._lock:
            if taken:
                self._begun.remove(ticket)
            if failed:
                self._remembered.add_all(taken)

    # State, events, errors

    def state(self) -> State:
        """The role, the members and their copies; for a read-only mapping, also its age."""
        raw = c.State(size=sizeof(c.State))
        self._call("rpmirror_get_state", byref(raw))
        return State._from(raw)

    def fileno(self) -> int:
        """
        A descriptor for select and asyncio, readable while an event is pending. The library owns the descriptor:
        neither read nor close it.
        """
        fd = c_int()
        self._call("rpmirror_get_fd", byref(fd))
        return fd.value

    def next_event(self) -> Optional[Event]:
        """The oldest pending event, or None. The call never waits."""
        raw = c.Event(size=sizeof(c.Event))
        try:
            self._call("rpmirror_next_event", byref(raw))
        except NoEventError:
            return None
        return Event._from(raw)

    def events(self) -> List[Event]:
        """All pending events."""
        return _all(self.next_event)

    def wait_event(self, timeout: Optional[float] = None) -> Optional[Event]:
        """The next event, or None if no event comes within `timeout` seconds."""
        left = milliseconds(timeout)
        while True:
            event = self.next_event()
            if event or not left:
                return event
            ms = _SLICE_MS if left < 0 else min(left, _SLICE_MS)
            with self._handle:
                poll = select.poll()
                poll.register(self.fileno(), select.POLLIN)
                poll.poll(ms)
            left = left if left < 0 else left - ms

    def next_error(self) -> Optional[LocalError]:
        """The oldest pending error of this host's medium, or None."""
        raw = c.LocalError(size=sizeof(c.LocalError))
        try:
            self._call("rpmirror_get_error", byref(raw))
        except NoEventError:
            return None
        return LocalError._from(raw)

    def errors(self) -> List[LocalError]:
        """
        All pending errors. While one of them reports lost stores (repaired and dirty), flushes raise MediumError: take
        the errors, return to a consistent state, and flush again.
        """
        return _all(self.next_error)

    # The end

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def close(self, *, flush: bool = True) -> None:
        """
        Flush remembered ranges and give up the role in good order, so that another member can be promoted without
        delay. The set is unmapped even if a step fails. Raises BufferError if views exist; nothing was done then.
        """
        with self._lock:
            if self._viewed() is not None:
                raise BufferError(f"there are views of the mapping of {self.name}: release them before")
            self._closing = True
        error: Optional[Exception] = None
        try:
            if flush and not self.closed and (self._remembered or self._begun):
                self.flush()
        except Error as first:
            error = first
        try:
            interruptible(lambda: self._handle.close(self._bytes.release))
        except Error as second:
            error = error or second
        self._finalizer.detach()
        if error:
            raise error

    def __enter__(self) -> "Mapping":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            return self.close()
        try:
            self.close(flush=False)
        except (Error, BufferError):  # the traceback has a view: the set is unmapped when the view is gone
            pass

    def __del__(self) -> None:
        if not self.closed:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self)

    def __repr__(self) -> str:
        return f"<rpmirror.Mapping {self.name!r}, {'closed' if self.closed else f'{self._size} bytes'}>"


def _all(take: Callable[[], Any]) -> List[Any]:
    return list(iter(take, None))
