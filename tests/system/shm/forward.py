#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""forward.py PID PORT: listens at a free port of 127.0.0.1, prints the port, and forwards each connection to
127.0.0.1:PORT in the network name space of the process PID."""
import ctypes
import socket
import sys
import threading


def enter(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/proc/{pid}/ns/net") as ns:
        if libc.setns(ns.fileno(), 0x40000000):  # CLONE_NEWNET
            sys.exit(f"setns: errno {ctypes.get_errno()}")


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        source.close()
        target.close()


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    enter(sys.argv[1])  # sockets that are created after this call are in that namespace
    print(listener.getsockname()[1], flush=True)
    while True:
        near, _ = listener.accept()
        far = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
        for s in near, far:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for ends in (near, far), (far, near):
            threading.Thread(target=pump, args=ends, daemon=True).start()


main()
