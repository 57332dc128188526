# SPDX-License-Identifier: BSD-3-Clause
"""The call that maps a set."""

from __future__ import annotations

from ctypes import byref, c_size_t, c_void_p
from typing import Optional

from _rpma.interruptible import interruptible
from _rpma.native import text, word

from . import _library as c
from ._errors import check
from ._mapping import Mapping


def map(
    name: str,
    *,
    wait: bool = False,
    direct: bool = False,
    readonly: bool = False,
    stale_ok: bool = False,
    on_fenced: Optional[str] = None,
    hint: Optional[int] = None,
) -> Mapping:
    """
    Become the primary of a set on this host's rpmirrord, and map its file; see rpmirror_map(3).

    wait: wait until this host can become the primary, instead of raising BusyError, QuorumError, CopiesError or
    NotInSyncError. direct: stores reach the file directly, not only by flushes. readonly, together with stale_ok: map
    this host's copy in its present state, whichever process or host is the primary. on_fenced: the reaction if the
    lease is lost: "error", "protect" or "kill"; None: the value of RPMIRROR_ON_FENCED in the environment. hint: the
    preferred address of the mapping.
    """
    flags = c.MAP_WAIT * wait | c.MAP_DIRECT * direct | c.MAP_READONLY * readonly | c.MAP_STALE_OK * stale_ok
    if on_fenced is not None:
        flags |= _on_fenced(on_fenced)
    if hint is not None:
        word(hint, "an address")
    if wait:  # the wait may last for days
        return interruptible(lambda: _map(name, hint, flags), _give_up)
    return _map(name, hint, flags)


def _on_fenced(policy: str) -> int:
    policies = {"error": c.MAP_FENCED_ERROR, "protect": c.MAP_FENCED_PROTECT, "kill": c.MAP_FENCED_KILL}
    if policy not in policies:
        raise ValueError(f"on_fenced is one of {', '.join(policies)}, and not '{policy}'")
    return policies[policy]


def _give_up(mapping: Mapping) -> None:
    mapping.close(flush=False)


def _map(name: str, hint: Optional[int], flags: int) -> Mapping:
    pointer, address, size = c_void_p(), c_void_p(), c_size_t()
    check(c.lib.rpmirror_map(text(name), hint, flags, byref(pointer), byref(address), byref(size)))
    assert address.value is not None
    return Mapping(name, pointer, address.value, size.value, flags)
