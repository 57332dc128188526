# SPDX-License-Identifier: BSD-3-Clause
"""The places of the two ends: on loopback, or in two network namespaces with a pair of veth between them."""

import os
import re
import subprocess

PREFIX = "rpma-bench"


class Loopback:
    """Both ends in this network namespace."""

    def __init__(self, link="loopback"):
        self.link = link
        self.addr = "127.0.0.1"
        self.target = self.initiator = ""

    def words(self):
        return [f"link={self.link}", f"addr={self.addr}"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Missing:
    """A place that cannot be made on this machine."""

    def __init__(self, link, why):
        self.link = link
        self.why = why

    def words(self):
        raise OSError(self.why)

    def __str__(self):
        return "missing"


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def _ip(*args):
    return run("ip", *args)


def remove_leftovers():
    """Remove namespaces of runs whose process has ended."""
    try:
        names = re.findall(rf"^{PREFIX}-(\d+)-(\w+)", _ip("netns", "list"), re.M)
    except OSError:
        return
    for pid, end in names:
        if not os.path.exists(f"/proc/{pid}"):
            _ip("netns", "delete", f"{PREFIX}-{pid}-{end}")


class Veth:
    """
    The namespaces are made on entry and removed on exit; the entry raises OSError if that is not permitted. rate: the
    bandwidth of each end, in tc's notation.
    """

    def __init__(self, mtu, rate=None):
        self.mtu = mtu
        self.rate = rate
        self.link = rate or f"veth{mtu}"
        self.addr = "10.111.0.2"
        self.ini_ns, self.tgt_ns = (f"{PREFIX}-{os.getpid()}-{end}{rate or mtu}" for end in "it")
        self.initiator = f"ip netns exec {self.ini_ns}"
        self.target = f"ip netns exec {self.tgt_ns}"

    def words(self):
        return [f"link={self.link}", f"addr={self.addr}",
                f"ini_ns={self.ini_ns}", f"tgt_ns={self.tgt_ns}"]

    def _make(self):
        for ns in (self.ini_ns, self.tgt_ns):
            _ip("netns", "add", ns)
        _ip("-n", self.ini_ns, "link", "add", "v0", "mtu", str(self.mtu), "type", "veth",
            "peer", "name", "v0", "mtu", str(self.mtu), "netns", self.tgt_ns)
        for ns, addr in ((self.ini_ns, "10.111.0.1"), (self.tgt_ns, self.addr)):
            _ip("-n", ns, "addr", "add", f"{addr}/24", "dev", "v0")
            _ip("-n", ns, "link", "set", "v0", "up")
            _ip("-n", ns, "link", "set", "lo", "up")
            if self.rate:
                run("tc", "-n", ns, "qdisc", "add", "dev", "v0", "root", "tbf", "rate", self.rate,
                     "burst", "64kb", "latency", "50ms")

    def __enter__(self):
        try:
            self._make()
        except OSError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for ns in (self.ini_ns, self.tgt_ns):
            subprocess.run(["ip", "netns", "delete", ns], capture_output=True, check=False)
