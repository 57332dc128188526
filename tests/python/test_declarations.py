# SPDX-License-Identifier: BSD-3-Clause
"""The declarations for ctypes must match the public headers."""

from __future__ import annotations

import os
import re
import tempfile
import unittest
from typing import Any, Dict, List, Tuple

import headers
import rpma
import rpmirror
from rpma import _library as file_library
from rpmirror import _library as mirror_library


def constants_of(header: headers.Header, prefix: str) -> Dict[str, int]:
    return {name[len(prefix) :]: value for name, value in header.constants.items() if name.startswith(prefix)}


def results_of(base: Any) -> Dict[int, str]:
    return {code: kind.__name__ for code, kind in base._by_code.items()}


class Declarations(unittest.TestCase):
    """One library: its header and its package."""

    name: str
    declared: Any
    header: headers.Header

    @classmethod
    def setUpClass(cls) -> None:
        cls.header = headers.read(os.path.join(os.environ["RPMA_INCLUDE"], cls.name))

    def compare(self, header: headers.Header) -> List[str]:
        c = self.declared
        return headers.differences(header, c.PROTOTYPES, c.STRUCTURES, c.LEFT_OUT)

    def compare_changed(self, *changes: Tuple[str, str, str]) -> None:
        """
        Each change has a text of the header, the text that replaces it, and the words that the comparison must then
        report.
        """
        with open(os.path.join(os.environ["RPMA_INCLUDE"], self.name)) as file:
            text = file.read()
        for old, new, seen in changes:
            self.assertIn(old, text)
            with tempfile.NamedTemporaryFile("w", suffix=".h") as changed:
                changed.write(text.replace(old, new))
                changed.flush()
                self.assertIn(seen, "\n".join(self.compare(headers.read(changed.name))))


class Mirror(Declarations):
    name, declared = "librpmirror.h", mirror_library

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
        self.compare_changed(
            ("uint64_t offset, len; ", "uint64_t len, offset; ", "struct rpmirror_error: len"),
            ("\tuint32_t min_copies;\n", "\tuint32_t min_copies, more;\n", "struct rpmirror_state: more"),
            ("int rpmirror_confirm(", "int rpmirror_reconfirm(", "rpmirror_reconfirm is declared only in C"),
            ("uint64_t ticket, int timeout_ms", "uint32_t ticket, int timeout_ms", "rpmirror_flush_wait is"),
            ("const void *addr, size_t len);", "const void *addr);", "rpmirror_touch is"),
        )


class File(Declarations):
    name, declared = "librpmafile.h", file_library

    def of_librpma(self, prefix: str) -> Dict[str, int]:
        path = os.path.join(os.environ["RPMA_INCLUDE"], "librpma.h")
        return constants_of(headers.read(path, prefix), prefix)

    def test_functions_and_structures(self) -> None:
        self.assertEqual(self.compare(self.header), [])
        self.assertGreaterEqual(len(self.header.functions), 20)
        self.assertGreaterEqual(len(self.header.structures), 5)

    def test_each_result_is_an_exception(self) -> None:
        of_librpma = self.of_librpma("RPMA_E_")
        used = [of_librpma[name] for name in ("UNKNOWN", "NOSUPP", "PROVIDER", "NOMEM", "INVAL", "AGAIN")]
        want = used + list(constants_of(self.header, "RPMA_FILE_E_").values())
        self.assertEqual(sorted(want), sorted(rpma.Error._by_code))
        self.assertEqual(set(results_of(rpma.Error).values()) - set(rpma.__all__), set())

    def test_other_constants(self) -> None:
        for name, value in constants_of(self.header, "RPMA_").items():
            if not name.startswith("FILE_E_"):
                self.assertEqual(getattr(file_library, name, None), value, name)

    def test_enumerations(self) -> None:
        self.assertEqual(self.of_librpma("RPMA_DURABILITY_"), {member.name: member.value for member in rpma.Durability})

    def test_a_change_of_the_header_is_noticed(self) -> None:
        self.compare_changed(
            ("void (*note)(void *arg, const char *text);\n\tvoid *note_arg;", "void *note_arg;", "rpma_file_server_options: note"),
            ("size_t count,\n\t\t\t uint64_t *ticket);", "unsigned count, uint64_t *ticket);", "rpma_file_sync_start is"),
            ("char region[48];", "char region[64];", "struct rpma_file_info: region"),
        )


if __name__ == "__main__":
    unittest.main()
