# SPDX-License-Identifier: BSD-3-Clause
"""The memory of any object with the buffer protocol, without a copy."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_WRITABLE = 1  # PyBUF_WRITABLE; without other flags: contiguous bytes


class _Py_buffer(ctypes.Structure):
    """CPython's Py_buffer. It is part of the stable ABI since 3.11; earlier versions have the same layout."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


_get = ctypes.pythonapi.PyObject_GetBuffer
_get.argtypes = [ctypes.py_object, ctypes.POINTER(_Py_buffer), ctypes.c_int]
_get.restype = ctypes.c_int
_release = ctypes.pythonapi.PyBuffer_Release
_release.argtypes = [ctypes.POINTER(_Py_buffer)]
_release.restype = None


_bytes = ctypes.pythonapi.PyBytes_FromStringAndSize
_bytes.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t]
_bytes.restype = ctypes.py_object


def new_bytes(length: int) -> bytes:
    """
    A new bytes object. The caller fills it by its address before other code gets a reference, so that no copy is
    needed.
    """
    made: bytes = _bytes(None, length)
    return made


class Memory:
    """In `with Memory(data) as memory:`, memory.address and memory.length are valid, and the object does not move."""

    def __init__(self, data: "ReadableBuffer", flags: int = 0) -> None:
        self._view = _Py_buffer()
        self._held = False
        _get(data, ctypes.byref(self._view), flags)  # raises CPython's exceptions
        self._held = True
        self.address: int = self._view.buf or 0
        self.length: int = self._view.len

    def release(self) -> None:
        if self._held:
            self._held = False
            _release(ctypes.byref(self._view))

    __del__ = release

    def __enter__(self) -> "Memory":
        return self

    def __exit__(self, *_: Any) -> None:
        self.release()


def writable(data: "WriteableBuffer") -> Memory:
    """Memory for an object that the caller will change."""
    return Memory(data, _WRITABLE)
