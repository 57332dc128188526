# SPDX-License-Identifier: BSD-3-Clause
"""
A memory-mapped file with copies on other hosts: librpmirror for Python.

    with rpmirror.map("orders") as m:
        m[0:5] = b"hello"
        m.flush()  # durable here and on every in-sync copy

doc/python.md is the manual, librpmirror(7) has the promises. Errors are exceptions, a subclass of rpmirror.Error for
each result. Other threads run while a call waits.
"""

from ._errors import (
    AgainError,
    BusyError,
    CopiesError,
    DaemonError,
    Error,
    FencedError,
    InvalidError,
    LeaseError,
    MediumError,
    NoEventError,
    NoMemoryError,
    NotInSyncError,
    NotSupportedError,
    ProviderError,
    QuorumError,
    SplitError,
    UnknownError,
    VerifyError,
)
from ._map import map
from ._mapping import Mapping
from ._results import Copy, Event, EventType, Health, LocalError, Member, Result, Role, State
from ._ticket import Ticket

__all__ = [
    "AgainError",
    "BusyError",
    "CopiesError",
    "Copy",
    "DaemonError",
    "Error",
    "Event",
    "EventType",
    "FencedError",
    "Health",
    "InvalidError",
    "LeaseError",
    "LocalError",
    "Mapping",
    "MediumError",
    "Member",
    "NoEventError",
    "NoMemoryError",
    "NotInSyncError",
    "NotSupportedError",
    "ProviderError",
    "QuorumError",
    "Result",
    "Role",
    "SplitError",
    "State",
    "Ticket",
    "UnknownError",
    "VerifyError",
    "map",
]
