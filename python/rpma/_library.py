# SPDX-License-Identifier: BSD-3-Clause
"""The declarations of librpmafile.so.0. They must match librpmafile.h; tests/python compares them."""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_char, c_char_p, c_int, c_size_t, c_uint, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Dict, Type

from _rpma.native import Prototypes, load

FILE_READONLY = 1 << 0
FILE_VOLATILE_OK = 1 << 1
FILE_UNCLAIMED = 1 << 2
FILE_SERVE_VOLATILE_OK = 1 << 0
FILE_SERVE_CREATE = 1 << 1
FILE_HOLDS_BYTES = 0
FILE_HOLDS_PARTIAL = 1
FILE_HOLDS_WHOLE = 2
FILE_REGIONS_MAX = 32
FILE_DIGEST_MAX = 32 << 20

Note = CFUNCTYPE(None, c_void_p, c_char_p)


class Range(ctypes.Structure):
    _fields_ = [("offset", c_uint64), ("length", c_uint64)]


class Iovec(ctypes.Structure):
    _fields_ = [("iov_base", c_void_p), ("iov_len", c_size_t)]


class Options(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("flags", c_uint32),
        ("timeout_ms", c_int),
        ("reconnect_ms", c_int),
        ("secret_file", c_char_p),
        ("write_offset", c_uint64),
        ("write_length", c_uint64),
        ("owner", c_char_p),
    ]


class Info(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("length", c_uint64),
        ("durability", c_int),
        ("region", c_char * 48),
        ("server", c_char * 280),
        ("device", c_char * 64),
        ("link", c_char * 16),
        ("persists", c_int),
        ("verifies", c_int),
        ("holds", c_int),
        ("file_length", c_uint64),
        ("file_time_ns", c_uint64),
        ("file_digest", c_uint8 * 32),
    ]


class Region(ctypes.Structure):
    _fields_ = [
        ("name", c_char * 48),
        ("length", c_uint64),
        ("durability", c_int),
        ("holds", c_int),
        ("file_length", c_uint64),
        ("file_time_ns", c_uint64),
        ("file_digest", c_uint8 * 32),
    ]


class Export(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("path", c_char_p), ("addr", c_void_p), ("length", c_size_t)]


class ServerOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("flags", c_uint32),
        ("secret_file", c_char_p),
        ("create_size", c_uint64),
        ("max_clients", c_uint),
        ("note", Note),
        ("note_arg", c_void_p),
    ]


# The structures by their C names.
STRUCTURES: Dict[str, Type[ctypes.Structure]] = {
    "rpma_file_range": Range,
    "iovec": Iovec,
    "rpma_file_options": Options,
    "rpma_file_info": Info,
    "rpma_file_region": Region,
    "rpma_file_export": Export,
    "rpma_file_server_options": ServerOptions,
}

PROTOTYPES: Prototypes = {
    "rpma_file_err_2str": (c_char_p, c_int),
    "rpma_file_errormsg": (c_char_p,),
    "rpma_file_open": (c_int, c_char_p, POINTER(Options), POINTER(c_void_p)),
    "rpma_file_close": (c_int, POINTER(c_void_p)),
    "rpma_file_reopen": (c_int, c_void_p),
    "rpma_file_get_undecided": (c_int, c_void_p, POINTER(Range), POINTER(c_size_t)),
    "rpma_file_size": (c_int, c_void_p, POINTER(c_uint64)),
    "rpma_file_get_generation": (c_int, c_void_p, POINTER(c_uint64)),
    "rpma_file_get_info": (c_int, c_void_p, POINTER(Info)),
    "rpma_file_list": (c_int, c_char_p, POINTER(Options), POINTER(Region), POINTER(c_size_t)),
    "rpma_file_pwrite": (c_int, c_void_p, c_void_p, c_size_t, c_uint64),
    "rpma_file_pwritev": (c_int, c_void_p, POINTER(Iovec), c_int, c_uint64),
    "rpma_file_pread": (c_int, c_void_p, c_void_p, c_size_t, c_uint64),
    "rpma_file_sync": (c_int, c_void_p, POINTER(Range), c_size_t),
    "rpma_file_sync_start": (c_int, c_void_p, POINTER(Range), c_size_t, POINTER(c_uint64)),
    "rpma_file_sync_wait": (c_int, c_void_p, c_uint64, c_int),
    "rpma_file_store8": (c_int, c_void_p, c_uint64, c_uint64),
    "rpma_file_store8_start": (c_int, c_void_p, c_uint64, c_uint64, POINTER(c_uint64)),
    "rpma_file_verify": (c_int, c_void_p, c_void_p, c_size_t, c_uint64),
    "rpma_file_serve": (
        c_int,
        c_char_p,
        POINTER(Export),
        c_size_t,
        POINTER(ServerOptions),
        POINTER(c_void_p),
    ),
    "rpma_file_server_get_fd": (c_int, c_void_p, POINTER(c_int)),
    "rpma_file_server_step": (c_int, c_void_p, c_int, POINTER(c_int)),
    "rpma_file_server_get_port": (c_int, c_void_p, POINTER(c_uint16)),
    "rpma_file_server_delete": (c_int, POINTER(c_void_p)),
}

LEFT_OUT: Dict[str, str] = {
    "rpma_file_claim": "rpma.open() takes the range",
    "rpma_file_put_begin": "files are put by the tool",
    "rpma_file_put_end": "files are put by the tool",
    "rpma_file_pread_start": "a buffer that is filled later is no object of Python's",
    "rpma_file_digest": "File.verify() compares",
}

lib = load("librpmafile.so.0", PROTOTYPES)
