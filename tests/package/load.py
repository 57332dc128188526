#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The load during an upgrade: it stores durable words one after the other. Word i has the value i + 1, at offset 8 * i.

load.py mirror SET LOG         stores into a mirror set, while this host is its primary
load.py file TARGET SECRET LOG stores into a file of rpma serve, also after its server was started again
load.py check LOG FILE...      exits with 1 unless each of these files has all words that the log lists as durable

The log has a line for each durable word: its number, and the time in seconds when it became durable.
"""

import array
import signal
import sys
import time

PAUSE_S = 0.005


class Ended(Exception):
    """SIGTERM has arrived."""


def end(*_):
    """The handler of SIGTERM."""
    raise Ended


def words(view):
    """The number of consecutive right words from the first word on."""
    found = array.array("Q", bytes(view))
    return next((i for i, word in enumerate(found) if word != i + 1), len(found))


def run(log_path, begin, store):
    """Calls store(offset, bytes) for one word after the other, from word `begin` on."""
    with open(log_path, "a", encoding="ascii", buffering=1) as log:
        i = begin
        while True:
            store(8 * i, (i + 1).to_bytes(8, "little"))
            log.write(f"{i} {time.monotonic():.3f}\n")
            i += 1
            time.sleep(PAUSE_S)


def load_mirror(name, log):
    """Stores words while this host is the primary; ends with an exception when another host is."""
    import rpmirror

    with rpmirror.map(name, wait=True, on_fenced="error") as mapping:
        def store(offset, data):
            mapping[offset:offset + 8] = data
            mapping.flush()
        try:
            run(log, words(mapping.view), store)
        except Ended:
            pass


def load_file(target, secret, log):
    """Stores words; after the server's end it writes a word again if its durability is undecided."""
    import rpma

    with rpma.open(target, secret_file=secret, reconnect=60) as file:
        def store(offset, data):
            while True:
                try:
                    file.pwrite(data, offset)
                    file.sync()
                    return
                except rpma.LostError:
                    file.reopen()
        try:
            run(log, words(file.pread(file.size, 0)), store)
        except Ended:
            pass


def check(log, *files):
    """Prints the number of durable words, and the longest time between two of them."""
    with open(log, encoding="ascii") as source:
        lines = [line.split() for line in source]
    times = [float(line[1]) for line in lines]
    last = int(lines[-1][0])
    assert [int(line[0]) for line in lines] == list(range(int(lines[0][0]), last + 1)), "the log has gaps"
    for name in files:
        with open(name, "rb") as source:
            found = words(source.read())
        if found < last + 1:
            sys.exit(f"{name} has {found} words, and {last + 1} were acknowledged")
    pause = max((after - before for before, after in zip(times, times[1:])), default=0)
    print(f"{last + 1} {pause:.1f}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end)
    {"mirror": load_mirror, "file": load_file, "check": check}[sys.argv[1]](*sys.argv[2:])
