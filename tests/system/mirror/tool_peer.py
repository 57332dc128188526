#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
The daemon's end of rpmirror's socket, controlled by a script: tool_peer.py SOCKET.

Each request becomes a line in the file `requests`. The answer to operation X is all lines of the file X.answer, which
the test can replace at any time; without this file the answer is {"ok":true}. If the file X.silent exists, the answer
is omitted; if X.close exists, the connection ends.
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
