# SPDX-License-Identifier: BSD-3-Clause
"""The parts that both packages share: ranges, memory of other objects, handles, time limits."""

from __future__ import annotations

import array
import random
import threading
import time
import unittest
from ctypes import c_void_p, string_at
from typing import Any, List, Set, Tuple

from _rpma import native
from _rpma.buffers import Memory, writable
from _rpma.handle import Handle
from _rpma.ranges import Ranges


class RangesOfBytes(unittest.TestCase):
    def test_ranges_are_a_set_of_bytes(self) -> None:
        for seed in range(300):
            rand = random.Random(seed)
            ranges, want = Ranges(), set()  # type: Ranges, Set[int]
            for _ in range(40):
                offset, length = rand.randrange(60), rand.randrange(8)
                some = set(range(offset, offset + length))
                if rand.random() < 0.6:
                    ranges.add(offset, length)
                    want |= some
                else:
                    taken = {x for a, n in ranges.take(offset, length) for x in range(a, a + n)}
                    self.assertEqual(taken, want & some, f"seed {seed}")
                    want -= some
                pairs = ranges.pairs()
                self.assertEqual({x for a, n in pairs for x in range(a, a + n)}, want, f"seed {seed}")
                self.assertTrue(all(a + n < b for (a, n), (b, _) in zip(pairs, pairs[1:])), f"seed {seed}")


class MemoryOfObjects(unittest.TestCase):
    def test_any_contiguous_object_is_taken_where_it_is(self) -> None:
        data = b"0123456789"
        things: List[Tuple[Any, bytes]] = [
            (data, data),
            (bytearray(data), data),
            (memoryview(data)[3:7], b"3456"),
            (array.array("H", b"ab"), b"ab"),
            (b"", b""),
        ]
        for thing, want in things:
            with Memory(thing) as memory:
                self.assertEqual(string_at(memory.address, memory.length), want)
        with Memory(memoryview(data)[3:]) as part, Memory(data) as whole:
            self.assertEqual(part.address, whole.address + 3)

    def test_other_objects_are_refused(self) -> None:
        for thing, error in (("text", TypeError), (3, TypeError), (memoryview(b"abcd")[::2], BufferError)):
            with self.assertRaises(error):
                Memory(thing)  # type: ignore[arg-type]
        with self.assertRaises(BufferError):
            writable(b"constant")  # type: ignore[arg-type]

    def test_an_object_stays_in_place_meanwhile(self) -> None:
        data = bytearray(3)
        with Memory(data):
            self.assertRaises(BufferError, data.append, 1)
        data.append(1)


class Handles(unittest.TestCase):
    def test_it_is_released_when_no_call_is_under_way(self) -> None:
        released: List[float] = []
        handle = Handle("it", c_void_p(1), lambda _: released.append(time.monotonic()))
        with handle:
            closer = threading.Thread(target=handle.close)
            closer.start()
            while not handle.closed:
                time.sleep(0.001)
            self.assertRaisesRegex(ValueError, "it is closed", handle.__enter__)
            time.sleep(0.05)
            end = time.monotonic()
        closer.join()
        self.assertEqual(len(released), 1)
        self.assertGreater(released[0], end)
        handle.close()
        self.assertEqual(len(released), 1)


class Arguments(unittest.TestCase):
    def test_time_limits(self) -> None:
        for seconds, ms in ((None, -1), (0, 0), (1, 1000), (0.0001, 1), (2.5, 2500), (1e12, 2**31 - 1)):
            self.assertEqual(native.milliseconds(seconds), ms)
        for bad in (-1, float("nan")):
            self.assertRaises(ValueError, native.milliseconds, bad)

    def test_what_c_would_cut_off(self) -> None:
        self.assertEqual(native.word(2**64 - 1, "x"), 2**64 - 1)
        for bad in (-1, 2**64):
            self.assertRaises(ValueError, native.word, bad, "x")
        self.assertRaises(ValueError, native.text, "a\0b")

    def test_a_library_that_is_missing_is_named(self) -> None:
        with self.assertRaisesRegex(ImportError, "libnowhere.so.0.*LD_LIBRARY_PATH"):
            native.load("libnowhere.so.0", {})


if __name__ == "__main__":
    unittest.main()
