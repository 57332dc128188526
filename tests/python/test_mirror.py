# SPDX-License-Identifier: BSD-3-Clause
"""The package rpmirror with real daemons of two hosts. The tests check the promises in the files of both hosts."""

from __future__ import annotations

import array
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from typing import Any, Callable, List
from unittest import mock

import rpmirror
from mirror_hosts import Hosts
from rpmirror import _library as mirror_library

SIZE = 4 << 20


def after(seconds: float, call: Callable[..., Any], *arguments: Any) -> None:
    threading.Timer(seconds, call, arguments).start()


class MirrorTest(unittest.TestCase):
    hosts: Hosts

    @classmethod
    def setUpClass(cls) -> None:
        os.environ["RPMIRROR_ON_FENCED"] = "error"
        cls.hosts = Hosts(2, SIZE)
        os.environ["RPMIRROR_SOCKET"] = cls.hosts.hosts[0].socket
        cls.addClassCleanup(cls.hosts.close)

    def map(self, **more: Any) -> rpmirror.Mapping:
        """
        Map the set until the end of the test. The call waits, because an abandoned wait of an earlier test can have the
        role for a moment, and on a slow machine the other host may have been excluded.
        """
        m = rpmirror.map(Hosts.SET, wait=True, **more)
        self.addCleanup(m.close, flush=False)
        end = time.monotonic() + 30
        while m.state().insync_mask != 3:
            self.assertLess(time.monotonic(), end, m.state())
            time.sleep(0.02)
        return m

    def both(self, offset: int, length: int) -> bytes:
        """The bytes at this place in the files of both hosts, which must be equal."""
        first, second = (self.hosts.content(host, offset, length) for host in (0, 1))
        self.assertEqual(first, second)
        return first

    def stop(self, host: int) -> None:
        """Stop a host's daemon; after 5 s it would be excluded."""
        self.hosts.send(host, signal.SIGSTOP)
        self.addCleanup(self.go_on, host)

    def go_on(self, host: int) -> None:
        self.hosts.send(host, signal.SIGCONT)


class Bytes(MirrorTest):
    def test_what_was_assigned_is_on_both_hosts_after_a_flush(self) -> None:
        with rpmirror.map(Hosts.SET) as m:
            self.assertEqual(len(m), SIZE)
            m[0:5] = b"hello"
            m[5] = 33
            m[-1] = 7
            m[4096:4104] = array.array("Q", [2**63])
            m[10:10] = b""
            self.assertEqual(m.remembered, [(0, 6), (4096, 8), (SIZE - 1, 1)])
            result = m.flush()
            self.assertEqual(self.both(0, 6), b"hello!")
            self.assertEqual(self.both(4096, 8), array.array("Q", [2**63]).tobytes())
            self.assertEqual(self.both(SIZE - 1, 1), b"\7")
            self.assertEqual(m.remembered, [])
            self.assertEqual((m[0:6], m[1], m[4:0:-2]), (b"hello!", ord("e"), b"ol"))
            self.assertEqual((result.durable_mask, result.failed_mask, result.degraded), (3, 0, False))
            self.assertEqual(m.state().names(result.durable_mask), ["a", "b"])

    def test_what_does_not_fit_is_refused(self) -> None:
        m = self.map()
        bad: List[Any] = [
            (slice(0, 5), b"four", ValueError),
            (slice(0, 8, 2), b"four", ValueError),
            (slice(SIZE - 2, SIZE + 2), b"four", ValueError),
            (slice(0, 4), "four", TypeError),
            (SIZE, 1, IndexError),
            (0, 256, ValueError),
        ]
        for index, value, error in bad:
            with self.assertRaises(error):
                m[index] = value
        for ranges in ([(SIZE - 1, 2)], [(-1, 1)], [(2**64, 1)]):
            self.assertRaisesRegex(rpmirror.InvalidError, f"has {SIZE} bytes", m.flush, ranges)
        self.assertRaises(rpmirror.InvalidError, m.store8, 4, 1)  # not aligned: the library refuses it
        self.assertEqual(m.remembered, [])

    def test_a_view_is_the_memory_and_is_not_remembered(self) -> None:
        m = self.map()
        view = m.view
        view[100:104] = b"view"
        view[200:204] = b"more"
        m.flush()
        self.assertNotEqual(self.both(100, 4), b"view")
        m.remember(100, 4)
        m.flush()
        self.assertEqual(self.both(100, 4), b"view")
        self.assertNotEqual(self.both(200, 4), b"more")
        m.sync()
        self.assertEqual(self.both(200, 4), b"more")
        part = view[3:9]
        view.release()
        self.assertRaises(BufferError, m.close)
        m[300:304] = b"goes"
        part.release()
        m.close()
        self.assertEqual(self.both(300, 4), b"goes")
        self.assertRaises(ValueError, lambda: m.view)

    def test_a_view_keeps_the_set_mapped(self) -> None:
        view = rpmirror.map(Hosts.SET).view
        view[0:4] = b"kept"
        self.assertEqual(bytes(view[0:4]), b"kept")
        with self.assertWarns(ResourceWarning):
            del view
        self.map().close()  # the role is free again

    def test_an_exception_leaves_what_was_not_flushed(self) -> None:
        with self.assertRaisesRegex(KeyError, "mine"), rpmirror.map(Hosts.SET) as m:
            m[400:404] = b"half"
            raise KeyError("mine")
        self.assertTrue(m.closed)
        self.assertNotEqual(self.both(400, 4), b"half")
        with rpmirror.map(Hosts.SET) as m:
            m[400:404] = b"done"
        self.assertEqual(self.both(400, 4), b"done")

    def test_words_and_verified_flushes(self) -> None:
        m = self.map()
        m.store8(8, 0x0102030405060708)
        self.assertEqual(self.both(8, 8), (0x0102030405060708).to_bytes(8, sys.byteorder))
        m[16:20] = b"same"
        self.assertEqual(m.flush_verify().durable_mask, 3)
        self.assertEqual((self.both(16, 4), m.remembered), (b"same", []))
        m.confirm()

    def test_an_assignment_to_a_direct_mapping_asks_for_the_extent_before_it_stores(self) -> None:
        """rpmirror_touch() waits without the interpreter's lock; a waiting store would stop all threads of Python."""
        seen: List[Any] = []
        with rpmirror.map(Hosts.SET, direct=True) as m:
            library = mirror_library.lib
            touch = library.rpmirror_touch

            def watched(handle: Any, address: int, length: int) -> Any:
                seen.append((address - m._address, length, m[2 << 20 : (2 << 20) + 5]))
                return touch(handle, address, length)

            with mock.patch.object(library, "rpmirror_touch", watched):
                m[2 << 20 : (2 << 20) + 5] = b"asked"
            self.assertEqual(seen, [(2 << 20, 5, bytes(5))])
            self.assertEqual(m[2 << 20 : (2 << 20) + 5], b"asked")

    def test_direct_mappings_take_stores_of_the_kernel(self) -> None:
        with tempfile.TemporaryFile() as file, rpmirror.map(Hosts.SET, direct=True) as m:
            file.write(b"from a file")
            file.seek(0)
            m.touch(3 << 20, 11)
            with m.view[3 << 20 :] as part:
                self.assertEqual(file.readinto(part), 11)  # type: ignore[attr-defined]
            m[0:6] = b"direct"
            self.assertEqual(self.hosts.content(0, 0, 6), b"direct")
        self.assertEqual((self.both(0, 6), self.both(3 << 20, 11)), (b"direct", b"from a file"))

    def test_a_copy_is_read_while_another_process_serves(self) -> None:
        with rpmirror.map(Hosts.SET) as m, rpmirror.map(Hosts.SET, readonly=True, stale_ok=True) as copy:
            m[500:504] = b"seen"
            m.flush()
            self.assertEqual(copy[500:504], b"seen")
            self.assertEqual(copy.state().role, rpmirror.Role.READER)
            with copy.view as view:
                self.assertTrue(view.readonly)
            with self.assertRaises(TypeError):
                copy[0:1] = b"x"
            self.assertRaises(rpmirror.NotSupportedError, copy.fileno)


class Waiting(MirrorTest):
    def test_other_threads_run_while_a_call_waits(self) -> None:
        m = self.map()

        def count() -> None:
            for _ in range(50):
                time.sleep(0.001)
            self.go_on(1)

        ranges = [(0, 8)]
        calls: List[Callable[[], Any]] = [lambda: m.store8(0, 1), lambda: m.sync(0, 8), lambda: m.flush_verify(ranges)]
        for call in calls:
            # The call ends when the other host's daemon continues. Another thread of this process
            # continues the daemon; if it cannot, the other host is excluded.
            self.stop(1)
            thread = threading.Thread(target=count)
            thread.start()
            call()
            thread.join()
            self.assertEqual(m.state().insync_mask, 3)

    def test_a_ticket_is_waited_for_as_often_as_one_likes(self) -> None:
        m = self.map()
        self.stop(1)
        m[0:6] = b"ticket"
        ticket = m.flush_start()
        self.assertEqual((m.remembered, ticket.done()), ([], False))
        m[0:6] = b"later "
        with self.assertRaises(TimeoutError) as caught:
            ticket.wait(0.01)
        self.assertIsInstance(caught.exception, rpmirror.AgainError)
        self.go_on(1)
        self.assertEqual(ticket.wait().durable_mask, 3)
        self.assertEqual(ticket.wait(0), ticket.wait())
        self.assertTrue(ticket.done())
        self.assertEqual(self.both(0, 6), b"ticket")

    def test_a_flush_waits_for_what_another_thread_has_taken(self) -> None:
        m = self.map()
        self.stop(1)
        m[0:4] = b"mine"
        other = m.flush_start()  # as another thread's flush() would
        after(0.2, self.go_on, 1)
        m.flush()
        self.assertTrue(other.done())
        self.assertEqual(self.both(0, 4), b"mine")

    def test_more_ranges_than_the_library_takes_at_once(self) -> None:
        m = self.map()
        for offset in range(0, 140000, 2):
            m.remember(offset, 1)
        with m.view as view:
            view[139996:140000] = b"1234"
        m.flush()
        self.assertEqual(self.both(139996, 4), b"1\0003\0")

    def test_a_wait_for_the_role_ends_with_control_c(self) -> None:
        # This process has the role until its input ends, and then exits without close().
        holder = subprocess.Popen(
            [sys.executable, "-c", "import rpmirror\nm = rpmirror.map('orders')\nprint('mapped', flush=True)\ninput()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert holder.stdin and holder.stdout
        with holder:
            self.assertEqual(holder.stdout.readline(), b"mapped\n")
            self.assertRaises(rpmirror.BusyError, rpmirror.map, Hosts.SET)
            with self.assertRaises(KeyboardInterrupt):
                after(0.1, os.kill, os.getpid(), signal.SIGINT)
                rpmirror.map(Hosts.SET, wait=True)
            after(0.1, holder.stdin.write, b"\n")
            after(0.2, holder.stdin.flush)
            self.map().confirm()


class LosingAHost(MirrorTest):
    def test_events_and_results_say_which_copy_is_missing(self) -> None:
        m = self.map()
        self.assertIn(rpmirror.EventType.VIEW, [event.type for event in m.events()])
        self.assertEqual((m.events(), m.next_event(), m.wait_event(0.01), m.errors()), ([], None, None, []))
        after(0.1, self.hosts.kill, 1)
        event = m.wait_event(10)
        assert event
        self.assertEqual((event.type, event.member), (rpmirror.EventType.LOST, 1), event.text)
        self.assertLess(abs(time.time() - event.time), 60)
        result = m.flush([(0, 8)])
        self.assertEqual((result.degraded, result.solo, result.local_failed), (True, True, False))
        state = m.state()
        self.assertEqual((state.names(result.durable_mask), state.names(result.failed_mask)), (["a"], ["b"]))
        self.assertFalse(state.members[1].connected)
        self.assertEqual(state.health, rpmirror.Health.DEGRADED)


class Failing(MirrorTest):
    def test_errors_have_the_words_of_the_library(self) -> None:
        with self.assertRaises(rpmirror.DaemonError) as caught:
            rpmirror.map("nowhere")
        self.assertEqual(caught.exception.code, -200007)
        self.assertIn("nowhere", str(caught.exception))
        self.assertRaises(rpmirror.InvalidError, rpmirror.map, Hosts.SET, readonly=True)
        self.assertRaises(ValueError, rpmirror.map, "a\0b")

    def test_a_mapping_is_not_used_after_its_end(self) -> None:
        m = self.map()
        m.close()
        m.close()
        calls: List[Callable[[], Any]] = [m.flush, m.state, m.next_event, lambda: m[0], lambda: m.store8(0, 1)]
        for call in calls:
            self.assertRaisesRegex(ValueError, "the mapping of orders is closed", call)

    def test_a_forked_child_is_refused(self) -> None:
        m = self.map()
        child = os.fork()
        if not child:
            try:
                m.flush([(0, 1)])
            except ValueError:
                os._exit(0)
            os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        m.flush([(0, 1)])

    def test_a_flush_that_fails_is_remembered(self) -> None:
        m = self.map()
        m[0:4] = b"lost"
        subprocess.run([os.environ["RPMIRROR"], "demote", Hosts.SET], check=True, stdout=subprocess.DEVNULL)
        with self.assertRaisesRegex(rpmirror.FencedError, "operator|demote"):
            m.flush()
        self.assertEqual(m.remembered, [(0, 4)])
        self.assertRaises(rpmirror.FencedError, m.close)
        self.assertTrue(m.closed)

    def test_a_fenced_process_ends_if_it_wants_to(self) -> None:
        self.assertRaises(ValueError, rpmirror.map, Hosts.SET, on_fenced="maybe")
        program = "import rpmirror, time\nm = rpmirror.map('orders', wait=True, on_fenced='kill')\nprint(flush=True)\ntime.sleep(60)"
        child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        assert child.stdout
        with child:
            self.assertEqual(child.stdout.readline(), b"\n")
            subprocess.run([os.environ["RPMIRROR"], "demote", Hosts.SET], check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(child.returncode, -signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
