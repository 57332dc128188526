# SPDX-License-Identifier: BSD-3-Clause
"""
Files of another machine: librpmafile for Python.

    with rpma.open("host:pool") as f:
        f.pwrite(b"hello", 0)
        f.sync()  # on the medium of the other machine

doc/python.md is the manual, librpmafile(7) has the promises. Errors are exceptions, a subclass of rpma.Error for each
result. Other threads run while a call waits.
"""

from ._errors import (
    AgainError,
    DiffersError,
    Error,
    GoneError,
    InvalidError,
    LostError,
    MediumError,
    NoMemoryError,
    NotSupportedError,
    ProviderError,
    RefusedError,
    TakenError,
    UnknownError,
    UnreachedError,
)
from ._file import Durability, File, Holds, Info, Region, Ticket, open, regions
from ._server import Server, serve

__all__ = [
    "AgainError",
    "DiffersError",
    "Durability",
    "Error",
    "File",
    "GoneError",
    "Holds",
    "Info",
    "InvalidError",
    "LostError",
    "MediumError",
    "NoMemoryError",
    "NotSupportedError",
    "ProviderError",
    "RefusedError",
    "Region",
    "Server",
    "TakenError",
    "Ticket",
    "UnknownError",
    "UnreachedError",
    "open",
    "regions",
    "serve",
]
