# SPDX-License-Identifier: BSD-3-Clause
"""The declarations of librpmirror.so.0. They must match librpmirror.h; tests/python compares them."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_bool, c_char, c_char_p, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from typing import Dict, Type

from _rpma.native import Prototypes, load

MAP_WAIT = 1 << 0
MAP_READONLY = 1 << 1
MAP_STALE_OK = 1 << 2
MAP_ISOLATED = 1 << 3
MAP_DIRECT = 1 << 4
MAP_FENCED_ERROR = 1 << 5
MAP_FENCED_PROTECT = 1 << 6
MAP_FENCED_KILL = 1 << 7

DEGRADED = 1 << 0
SOLO = 1 << 1
LOCAL_FAILED = 1 << 2

RANGES_MAX = 65536
MEMBERS_MAX = 8
NAME_MAX = 31
ADDRESS_MAX = 271

NO_MEMBER = 2**32 - 1
AGE_UNKNOWN = 2**64 - 1


class Range(ctypes.Structure):
    _fields_ = [("addr", c_void_p), ("len", c_size_t)]


class FlushResult(ctypes.Structure):
    _fields_ = [("seq", c_uint64), ("durable_mask", c_uint32), ("failed_mask", c_uint32), ("flags", c_uint32)]


class MemberState(ctypes.Structure):
    _fields_ = [
        ("name", c_char * (NAME_MAX + 1)),
        ("address", c_char * (ADDRESS_MAX + 1)),
        ("copy", c_int),
        ("connected", c_bool),
        ("durable_seq", c_uint64),
        ("remainder", c_uint64),
        ("flush_p50_us", c_uint32),
        ("flush_p99_us", c_uint32),
        ("reason", c_char * 128),
    ]


class State(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("role", c_int),
        ("health", c_int),
        ("epoch", c_uint64),
        ("view_seq", c_uint64),
        ("flush_seq", c_uint64),
        ("acked_seq", c_uint64),
        ("self", c_uint32),
        ("insync_mask", c_uint32),
        ("config_mask", c_uint32),
        ("min_copies", c_uint32),
        ("lease_left_ms", c_uint64),
        ("age_ms", c_uint64),
        ("members", MemberState * MEMBERS_MAX),
    ]


class Event(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("type", c_int),
        ("member", c_uint32),
        ("value", c_uint64),
        ("time_ms", c_uint64),
        ("text", c_char * 256),
    ]


class LocalError(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("offset", c_uint64),
        ("len", c_uint64),
        ("repaired", c_bool),
        ("dirty", c_bool),
        ("text", c_char * 256),
    ]


# The structures by their C names.
STRUCTURES: Dict[str, Type[ctypes.Structure]] = {
    "rpmirror_range": Range,
    "rpmirror_result": FlushResult,
    "rpmirror_member_state": MemberState,
    "rpmirror_state": State,
    "rpmirror_event": Event,
    "rpmirror_error": LocalError,
}

PROTOTYPES: Prototypes = {
    "rpmirror_err_2str": (c_char_p, c_int),
    "rpmirror_errormsg": (c_char_p,),
    "rpmirror_map": (
        c_int,
        c_char_p,
        c_void_p,
        c_uint,
        POINTER(c_void_p),
        POINTER(c_void_p),
        POINTER(c_size_t),
    ),
    "rpmirror_unmap": (c_int, POINTER(c_void_p)),
    "rpmirror_flush": (c_int, c_void_p, POINTER(Range), c_uint, c_uint, POINTER(FlushResult)),
    "rpmirror_flush_start": (c_int, c_void_p, POINTER(Range), c_uint, c_uint, POINTER(c_uint64)),
    "rpmirror_flush_wait": (c_int, c_void_p, c_uint64, c_int, POINTER(FlushResult)),
    "rpmirror_flush_verify": (c_int, c_void_p, POINTER(Range), c_uint, POINTER(FlushResult)),
    "rpmirror_sync": (c_int, c_void_p, c_void_p, c_size_t),
    "rpmirror_store8": (c_int, c_void_p, c_void_p, c_uint64),
    "rpmirror_confirm": (c_int, c_void_p),
    "rpmirror_touch": (c_int, c_void_p, c_void_p, c_size_t),
    "rpmirror_get_state": (c_int, c_void_p, POINTER(State)),
    "rpmirror_get_fd": (c_int, c_void_p, POINTER(c_int)),
    "rpmirror_next_event": (c_int, c_void_p, POINTER(Event)),
    "rpmirror_get_error": (c_int, c_void_p, POINTER(LocalError)),
}

# The functions that have no binding, and the reason.
LEFT_OUT = {
    "rpmirror_set_backtrack": "it continues by siglongjmp(), which would skip frames of the interpreter",
}

lib = load("librpmirror.so.0", PROTOTYPES)
