# SPDX-License-Identifier: BSD-3-Clause
"""The package rpma, with a real server in a separate process. The tests check the promises in the server's file."""

from __future__ import annotations

import array
import mmap
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from typing import Any, Callable, List

import rpma
from file_server import FileServer

SIZE = 4 << 20


def after(seconds: float, call: Callable[..., Any], *arguments: Any) -> None:
    threading.Timer(seconds, call, arguments).start()


class FileTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(dir=os.environ["RPMA_TEST_DIR"])
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def serve(self, *options: str, **more: Any) -> FileServer:
        server = FileServer(os.path.join(self.folder, "pool"), *options, **more)
        self.addCleanup(server.close)
        return server

    def open(self, server: FileServer, **more: Any) -> rpma.File:
        """Open a file that is closed at the end of the test, in any state."""
        file = rpma.open(f"{server.address}:pool", **more)

        def close() -> None:
            try:
                file.close()
            except rpma.Error:
                pass

        self.addCleanup(close)
        return file


class Bytes(FileTest):
    def test_what_was_synced_is_in_the_servers_file(self) -> None:
        server = self.serve()
        with rpma.open(f"{server.address}:pool") as f:
            self.assertEqual(f.size, SIZE)
            f.pwrite(b"hello", 0)
            self.assertEqual((f.undecided(), f.pread(5, 0)), ([(0, 5)], b"hello"))
            f.sync()
            self.assertEqual((server.content(0, 5), f.undecided()), (b"hello", []))
            f.pwrite(b"first", 4096)
            f.pwrite(b"second", 8192)
            f.sync([(4096, 5)])
            self.assertEqual((server.content(4096, 5), f.undecided()), (b"first", [(8192, 6)]))
            f.sync([])
            self.assertEqual(f.undecided(), [(8192, 6)])
            info = f.info()
            self.assertEqual((info.length, info.region, info.server), (SIZE, "pool", server.address))
            self.assertEqual(info.durability, rpma.Durability.FILE)
        self.assertEqual(server.content(8192, 6), b"second")

    def test_buffers_of_any_kind(self) -> None:
        f = self.open(self.serve())
        f.pwrite(array.array("Q", [2**63]), 0)
        self.assertEqual(f.pread(8, 0), array.array("Q", [2**63]).tobytes())
        f.pwritev([b"a", bytearray(b"bc"), memoryview(b"xdefx")[1:-1], b""], 100)
        self.assertEqual((f.pread(6, 100), f.pread(0, 0)), (b"abcdef", b""))
        big = os.urandom(1 << 20)
        f.pwrite(big, 1 << 20)
        into = bytearray((1 << 20) + 2)
        with memoryview(into) as view:
            f.pread_into(view[1:-1], 1 << 20)
        self.assertEqual(into, b"\0" + big + b"\0")
        bad: List[Any] = ["text", 7]
        for data in bad:
            self.assertRaises(TypeError, f.pwrite, data, 0)
        self.assertRaises(BufferError, f.pread_into, b"constant", 0)

    def test_words_and_verified_bytes(self) -> None:
        server = self.serve()
        f = self.open(server)
        f.pwrite(b"record", 64)
        f.store8(0, 0x0102030405060708)
        self.assertEqual(int.from_bytes(server.content(0, 8), "little"), 0x0102030405060708)
        self.assertEqual((server.content(64, 6), f.undecided()), (b"record", []))
        f.store8_start(8, 2**64 - 1).wait(10)
        self.assertEqual(f.pread(8, 8), b"\xff" * 8)
        f.verify(b"record", 64)
        with self.assertRaisesRegex(rpma.DiffersError, "64") as caught:
            f.verify(b"RECORD", 64)
        self.assertEqual(caught.exception.code, -300006)

    def test_what_does_not_fit_is_refused(self) -> None:
        f = self.open(self.serve())
        calls: List[Callable[[], Any]] = [
            lambda: f.pwrite(b"two", SIZE - 2),
            lambda: f.pread(3, SIZE - 2),
            lambda: f.sync([(SIZE, 1)]),
            lambda: f.store8(4, 1),
            lambda: f.store8(0, 2**64),
            lambda: f.pwrite(b"x", -1),
            lambda: f.pwrite(b"x", 2**64),
            lambda: f.pread(-1, 0),
        ]
        for call in calls:
            self.assertRaises(ValueError, call)
        self.assertRaisesRegex(rpma.InvalidError, "outside the file", f.pwrite, b"two", SIZE - 2)


class Waiting(FileTest):
    def test_other_threads_run_while_a_call_waits(self) -> None:
        server = self.serve()
        f = self.open(server, timeout=20)
        calls: List[Callable[[], Any]] = [f.sync, lambda: f.pread(8, 0), lambda: f.verify(b"word", 0)]
        f.pwrite(b"word", 0)

        def count() -> None:
            for _ in range(50):
                time.sleep(0.001)
            server.send(signal.SIGCONT)

        for call in calls:
            # The call ends when the server continues. Another thread of this process continues the
            # server; if it cannot, the connection is lost.
            server.send(signal.SIGSTOP)
            thread = threading.Thread(target=count)
            thread.start()
            call()
            thread.join()

    def test_several_syncs_are_under_way(self) -> None:
        server = self.serve()
        f = self.open(server)
        server.send(signal.SIGSTOP)
        tickets = []
        for i in range(8):
            f.pwrite(b"entry", 64 * i)
            tickets.append(f.sync_start([(64 * i, 5)]))
        self.assertFalse(tickets[0].done())
        with self.assertRaises(TimeoutError) as caught:
            tickets[0].wait(0.01)
        self.assertIsInstance(caught.exception, rpma.AgainError)
        server.send(signal.SIGCONT)
        tickets[-1].wait(10)
        self.assertEqual(server.content(64 * 7, 5), b"entry")
        for ticket in tickets:
            ticket.wait(0)
            self.assertTrue(ticket.done())

    def test_control_c_ends_a_wait(self) -> None:
        server = self.serve()
        f = self.open(server)
        f.pwrite(b"later", 0)
        server.send(signal.SIGSTOP)
        begin = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            after(0.1, os.kill, os.getpid(), signal.SIGINT)
            f.sync()
        self.assertLess(time.monotonic() - begin, 10)  # the limit is 60 s
        server.send(signal.SIGCONT)
        f.sync()
        self.assertEqual(server.content(0, 5), b"later")

    def test_control_c_ends_a_close(self) -> None:
        server = self.serve()
        begin = time.monotonic()

        def interrupt_twice() -> None:
            os.kill(os.getpid(), signal.SIGINT)
            while not f.closed:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)  # the wait of close() can be interrupted as well

        with self.assertRaises(KeyboardInterrupt), rpma.open(server.address) as f:
            f.pwrite(b"never mind", 0)
            server.send(signal.SIGSTOP)
            after(0.1, interrupt_twice)
            f.sync()
        self.assertLess(time.monotonic() - begin, 15)  # the limit is 60 s, and that of a connection 20 s
        self.assertTrue(f.closed)

    def test_an_open_waits_for_its_server(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with self.assertRaisesRegex(rpma.UnreachedError, str(port)) as caught:
            rpma.open(f"127.0.0.1:{port}")
        self.assertIsInstance(caught.exception, ConnectionError)
        starter = threading.Timer(0.2, lambda: self.serve(port=port))
        starter.start()
        with rpma.open(f"127.0.0.1:{port}:pool", reconnect=20) as f:
            self.assertEqual(f.size, SIZE)
        starter.join()


class Lists(FileTest):
    def test_the_regions_of_a_server(self) -> None:
        server = self.serve()
        (region,) = rpma.regions(server.address)
        self.assertEqual((region.name, region.length, region.holds), ("pool", SIZE, rpma.Holds.BYTES))
        self.assertEqual(region.durability, rpma.Durability.FILE)
        self.assertEqual(rpma.regions(f"{server.address}:pool"), [region])
        with self.assertRaisesRegex(rpma.RefusedError, "does not serve a region 'other'"):
            rpma.regions(f"{server.address}:other")


class Failing(FileTest):
    def test_a_lost_connection_names_what_is_undecided(self) -> None:
        server = self.serve()
        f = self.open(server, reconnect=20)
        f.pwrite(b"durable", 0)
        f.sync()
        f.pwrite(b"undecided", 100)
        server.close()
        self.assertRaises(rpma.LostError, f.sync)
        calls: List[Callable[[], Any]] = [lambda: f.pwrite(b"x", 0), lambda: f.pread(1, 0), f.sync]
        for call in calls:
            self.assertRaisesRegex(rpma.LostError, str(server.port), call)
        self.assertEqual(f.undecided(), [(100, 9)])
        starter = threading.Timer(0.2, lambda: self.serve(port=server.port))
        starter.start()
        f.reopen()
        starter.join()
        self.assertEqual((f.undecided(), f.pread(7, 0)), ([(100, 9)], b"durable"))
        for offset, length in f.undecided():
            f.pwrite(b"undecided"[:length], offset)
        f.sync()
        self.assertEqual((server.content(100, 9), f.undecided()), (b"undecided", []))

    def test_a_writer_that_another_one_followed_is_refused(self) -> None:
        server = self.serve()
        f = rpma.open(server.address, reconnect=20)
        self.assertEqual(f.generation, 1)
        server.close()
        self.assertRaises(rpma.LostError, f.pread, 1, 0)
        server = self.serve(port=server.port)
        f.reopen()
        self.assertEqual(f.generation, 1)
        server.close()
        self.assertRaises(rpma.LostError, f.pread, 1, 0)
        server = self.serve(port=server.port)
        with rpma.open(server.address) as other:
            self.assertEqual(other.generation, 2)
        self.assertRaisesRegex(rpma.TakenError, "claim 2, made at", f.reopen)
        self.assertRaises(rpma.TakenError, f.pwrite, b"x", 0)
        self.assertRaises(rpma.TakenError, f.close)
        with rpma.open(server.address, readonly=True) as reader:
            self.assertEqual(reader.generation, 0)

    def test_a_block_that_fails_keeps_its_exception(self) -> None:
        server = self.serve()
        with self.assertRaisesRegex(KeyError, "mine"), rpma.open(server.address) as f:
            server.close()
            self.assertRaises(rpma.LostError, f.pread, 1, 0)
            raise KeyError("mine")
        self.assertRaisesRegex(ValueError, "is closed", f.sync)
        f.close()

    def test_a_file_that_was_replaced_is_named_at_the_end(self) -> None:
        server = self.serve()
        f = rpma.open(server.address)
        f.pwrite(b"nowhere", 0)
        f.sync()
        os.rename(server.path, server.path + ".old")
        self.assertRaises(rpma.GoneError, f.close)
        self.assertTrue(f.closed)

    def test_servers_refuse(self) -> None:
        secret, other = (os.path.join(self.folder, name) for name in ("secret", "other"))
        for path in (secret, other):
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
                file.write(os.urandom(32))
        server = self.serve("--secret-file", secret)
        with rpma.open(server.address, secret_file=secret) as f:
            self.assertEqual(f.size, SIZE)
        self.assertRaises(rpma.RefusedError, rpma.open, server.address, secret_file=other)
        self.assertRaisesRegex(rpma.RefusedError, "nopool", rpma.open, f"{server.address}:nopool", secret_file=secret)

    def test_two_writers_have_parts_of_their_own(self) -> None:
        server = self.serve()
        first = self.open(server, reserve=(0, 4096))
        second = self.open(server, reserve=(4096, 4096))
        self.assertRaises(rpma.RefusedError, rpma.open, server.address, reserve=(4000, 200))
        first.pwrite(b"1", 4095)
        second.pwrite(b"2", 4096)
        self.assertRaises(rpma.InvalidError, second.pwrite, b"2", 4095)
        first.sync()
        second.sync()
        self.assertEqual(server.content(4095, 2), b"12")
        reader = self.open(server, readonly=True)
        self.assertEqual(reader.pread(2, 4095), b"12")
        self.assertRaises(rpma.InvalidError, reader.pwrite, b"3", 0)

    def test_a_successor_ends_its_predecessor(self) -> None:
        server = self.serve()
        text = "import rpma, sys, time; f = rpma.open(sys.argv[1], owner='orders'); print('open', flush=True); time.sleep(60)"
        with subprocess.Popen([sys.executable, "-c", text, server.address], stdout=subprocess.PIPE) as former:
            assert former.stdout
            self.assertEqual(former.stdout.readline(), b"open\n")
            former.send_signal(signal.SIGSTOP)
            self.assertRaises(rpma.RefusedError, rpma.open, server.address)
            with rpma.open(server.address, owner="orders") as f:
                self.assertEqual(f.generation, 2)
            former.kill()
        self.assertRaises(rpma.InvalidError, rpma.open, server.address, owner="x" * 65)

    def test_a_forked_child_is_refused(self) -> None:
        f = self.open(self.serve())
        child = os.fork()
        if not child:
            try:
                f.pread(1, 0)
            except ValueError:
                f.close()  # does nothing
                os._exit(0)
            os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        f.pread(1, 0)

    def test_a_file_that_is_forgotten_is_synced_and_named(self) -> None:
        server = self.serve()
        f = rpma.open(server.address)
        f.pwrite(b"kept", 0)
        with self.assertWarns(ResourceWarning):
            del f
        self.assertEqual(server.content(0, 4), b"kept")


class Serving(FileTest):
    def run_server(self, server: rpma.Server) -> None:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.close)

    def test_files_and_memory_of_this_program(self) -> None:
        path = os.path.join(self.folder, "mapped")
        with open(path, "w+b") as file:
            file.truncate(8192)
            memory = mmap.mmap(file.fileno(), 0)
        notes: List[str] = []
        pool = os.path.join(self.folder, "pool")
        with rpma.serve({"pool": pool}, "127.0.0.1:0", create_size=1 << 20, note=notes.append) as server:
            self.run_server(server)
            with rpma.open(f"127.0.0.1:{server.port}:pool") as f:
                f.pwrite(b"file", 0)
            with open(pool, "rb") as file:
                self.assertEqual((file.read(4), os.path.getsize(pool)), (b"file", 1 << 20))
            self.assertRaises(rpma.RefusedError, rpma.open, f"127.0.0.1:{server.port}:nowhere")
            self.assertIn("nowhere", "\n".join(notes))
        with rpma.serve({"memory": memory}, "127.0.0.1:0") as server:
            self.run_server(server)
            self.assertRaises(BufferError, memory.close)
            with rpma.open(f"127.0.0.1:{server.port}") as f:
                f.pwrite(b"memory", 4096)
                f.sync()
                self.assertEqual(memory[4096:4102], b"memory")
        memory.close()
        self.assertRaises(ValueError, server.step)

    def test_memory_that_cannot_be_persisted(self) -> None:
        memory = bytearray(4096)
        self.assertRaises(rpma.NotSupportedError, rpma.serve, {"memory": memory}, "127.0.0.1:0")
        self.assertRaises(BufferError, rpma.serve, {"memory": bytes(4096)}, "127.0.0.1:0", volatile_ok=True)
        with rpma.serve({"memory": memory}, "127.0.0.1:0", volatile_ok=True) as server:
            self.run_server(server)
            address = f"127.0.0.1:{server.port}:memory"
            self.assertRaises(rpma.NotSupportedError, rpma.open, address)
            with rpma.open(address, volatile_ok=True) as f:
                f.pwrite(b"seen", 8)
                f.sync()
                self.assertEqual(memory[8:12], b"seen")

    def test_a_loop_of_the_callers(self) -> None:
        pool = os.path.join(self.folder, "pool")
        sizes: List[int] = []

        def client(port: int) -> None:
            with rpma.open(f"127.0.0.1:{port}") as f:
                sizes.append(f.size)

        with rpma.serve({"pool": pool}, "127.0.0.1:0", create_size=4096) as server:
            thread = threading.Thread(target=client, args=(server.port,))
            thread.start()
            end = time.monotonic() + 20
            later = server.step()
            while thread.is_alive() and time.monotonic() < end:
                select.select([server], [], [], min(0.05, 1 if later is None else later))
                later = server.step()
            thread.join()
        self.assertEqual(sizes, [4096])


if __name__ == "__main__":
    unittest.main()
