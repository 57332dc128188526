#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
The daemon's end of rpmirror's socket, controlled by a script: tool_peer.py SOCKET.

Each request is a line in `requests`. The answer to operation X is each line of the file X.answer, which may be
replaced at any time; {"ok":true} without it. X.silent: no answer; X.close: the connection ends.
"""
import json
import os
import socket
import sys
import threading


def serve(connection):
    with connection:
        while True:
            packet = connection.recv(65536)
            if not packet:
                return
            op = json.loads(packet)["op"]
            with open("requests", "a") as log:
                log.write(packet.decode() + "\n")
            if os.path.exists(op + ".silent"):
                continue
            if os.path.exists(op + ".close"):
                return
            lines = ['{"ok":true}']
            if os.path.exists(op + ".answer"):
                with open(op + ".answer") as answer:
                    lines = answer.read().splitlines()
            try:
                for line in lines:
                    connection.send(line.encode())
            except OSError:
                return


listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(sys.argv[1])
listener.listen(16)
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
