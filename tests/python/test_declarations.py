# SPDX-License-Identifier: BSD-3-Clause
"""The declarations for ctypes are those of the public headers."""

from __future__ import annotations

import os
import re
import tempfile
import unittest
from typing import Any, Dict, List

import headers
import rpmirror
from rpmirror import _library as mirror_library


def constants_of(header: headers.Header, prefix: str) -> Dict[str, int]:
    return {name[len(prefix) :]: value for name, value in header.constants.items() if name.startswith(prefix)}


def results_of(base: Any) -> Dict[int, str]:
    return {code: kind.__name__ for code, kind in base._by_code.items()}


class Mirror(unittest.TestCase):
    path = os.path.join(os.environ["RPMA_INCLUDE"], "librpmirror.h")

    header: headers.Header

    @classmethod
    def setUpClass(cls) -> None:
        cls.header = headers.read(cls.path)

    def compare(self, header: headers.Header) -> List[str]:
        c = mirror_library
        return headers.differences(header, c.PROTOTYPES, c.STRUCTURES, c.LEFT_OUT)

    def test_functions_and_structures(self) -> None:
        self.assertEqual(self.compare(self.header), [])
        self.assertGreaterEqual(len(self.header.functions), 17)
        self.assertEqual(len(self.header.structures), 6)

    def test_each_result_is_an_exception(self) -> None:
        want = constants_of(self.header, "RPMIRROR_E_")
        self.assertEqual(sorted(want.values()), sorted(rpmirror.Error._by_code))
        self.assertEqual(set(results_of(rpmirror.Error).values()) - set(rpmirror.__all__), set())

    def test_enumerations(self) -> None:
        for prefix, kind in (
            ("ROLE", rpmirror.Role),
            ("HEALTH", rpmirror.Health),
            ("COPY", rpmirror.Copy),
            ("EVENT", rpmirror.EventType),
        ):
            want = constants_of(self.header, f"RPMIRROR_{prefix}_")
            self.assertEqual(want, {member.name: member.value for member in kind}, prefix)

    def test_other_constants(self) -> None:
        for name, value in constants_of(self.header, "RPMIRROR_").items():
            if not re.match("(E|ROLE|HEALTH|COPY|EVENT)_", name):
                self.assertEqual(getattr(mirror_library, name, None), value, name)

    def test_a_change_of_the_header_is_noticed(self) -> None:
        with open(self.path) as file:
            text = file.read()
        for old, new, seen in (
            ("uint64_t offset, len; ", "uint64_t len, offset; ", "struct rpmirror_error: len"),
            ("	uint32_t min_copies;\n", "	uint32_t min_copies, more;\n", "struct rpmirror_state: more"),
            ("int rpmirror_confirm(", "int rpmirror_reconfirm(", "rpmirror_reconfirm is declared only in C"),
            ("uint64_t ticket, int timeout_ms", "uint32_t ticket, int timeout_ms", "rpmirror_flush_wait is"),
            ("const void *addr, size_t len);", "const void *addr);", "rpmirror_touch is"),
        ):
            self.assertIn(old, text)
            with tempfile.NamedTemporaryFile("w", suffix=".h") as changed:
                changed.write(text.replace(old, new))
                changed.flush()
                found = "\n".join(self.compare(headers.read(changed.name)))
            self.assertIn(seen, found)


if __name__ == "__main__":
    unittest.main()
