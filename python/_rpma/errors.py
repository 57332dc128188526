# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions for the negative results of a library, one class for each result."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, Type, TypeVar

E = TypeVar("E", bound="ResultError")


class ResultError(Exception):
    """A call of a library has failed. The text comes from the library, and `code` is the call's result."""

    code: int = 0
    _by_code: ClassVar[Dict[int, Type["ResultError"]]] = {}

    def __init_subclass__(cls, *, code: int = 0, **more: Any) -> None:
        super().__init_subclass__(**more)
        if code:
            cls.code = code
            cls._by_code[code] = cls


def error_of(base: Type[E], code: int, text: str) -> E:
    """The exception for a result; the base class itself if a newer library returns a result that this package lacks."""
    found = base._by_code.get(code, base)
    error = (found if issubclass(found, base) else base)(text)
    error.code = code
    return error
