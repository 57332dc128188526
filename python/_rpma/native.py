# SPDX-License-Identifier: BSD-3-Clause
"""A shared library with the prototypes of its functions, and conversions of arguments to C."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Dict, Optional, Tuple

# For each function: the type of its result, then the types of its arguments.
Prototypes = Dict[str, Tuple[Any, ...]]

INT_MAX = 2**31 - 1
UINT64_MAX = 2**64 - 1


def load(soname: str, prototypes: Prototypes) -> ctypes.CDLL:
    """
    The library of that name, found by the loader's rules. Other threads run during a call of the library, because
    CDLL releases the GIL.
    """
    try:
        library = ctypes.CDLL(soname)
    except OSError as error:
        raise ImportError(f"{error}. Install the package that has {soname}, or name its folder in LD_LIBRARY_PATH") from error
    for name, (result, *arguments) in prototypes.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def milliseconds(seconds: Optional[float]) -> int:
    """A time limit for the libraries: -1 means no limit. It is rounded up, so that a short limit does not become 0."""
    if seconds is None:
        return -1
    if not seconds >= 0:
        raise ValueError(f"a time limit is a number of seconds from 0 on, or None, and not {seconds!r}")
    return min(-int(-seconds * 1000 // 1), INT_MAX)


def word(value: int, what: str) -> int:
    """Check that a value fits into 64 bits, because ctypes would truncate it."""
    if not 0 <= value <= UINT64_MAX:
        raise ValueError(f"{what} is a number from 0 to 2**64 - 1, and not {value}")
    return value


def text(value: Optional["str | os.PathLike[str]"]) -> Optional[bytes]:
    """A name or a path in C's form."""
    if value is None:
        return None
    encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise ValueError(f"there is a NUL in {value!r}")
    return encoded
