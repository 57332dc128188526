# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions that stand for the negative results of a library: one class a result."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, Type, TypeVar

E = TypeVar("E", bound="ResultError")


class ResultError(Exception):
    """A call of a library has failed; the text is the library's own, and `code` its result."""

    code: int = 0
    _by_code: ClassVar[Dict[int, Type["ResultError"]]] = {}

    def __init_subclass__(cls, *, code: int = 0, **more: Any) -> None:
        super().__init_subclass__(**more)
        if code:
            cls.code = code
            cls._by_code[code] = cls


def error_of(base: Type[E], code: int, text: str) -> E:
    """The exception for a result; of the base itself where a newer library has results that this package does not know."""
    found = base._by_code.get(code, base)
    error = (found if issubclass(found, base) else base)(text)
    error.code = code
    return error
