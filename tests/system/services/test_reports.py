#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A daemon under a service manager: tests its reports to NOTIFY_SOCKET, and the levels of its lines in the journal.

usage: test_reports.py rpma_serve|rpmemd|rpmirrord
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

WAIT_S = 30
started = []


class Service:
    """A process with the socket of a service manager. Its standard error is a socket, which JOURNAL_STREAM names."""

    def __init__(self, *argv):
        self.reports = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.reports.bind("notify")
        self.reports.settimeout(WAIT_S)
        self.journal, stderr = socket.socketpair()
        self.journal.settimeout(WAIT_S)
        self.lines = b""
        at = os.fstat(stderr.fileno())
        env = dict(os.environ, NOTIFY_SOCKET=os.path.realpath("notify"), JOURNAL_STREAM=f"{at.st_dev}:{at.st_ino}")
        self.process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr)
        started.append(self.process)
        stderr.close()

    def report(self):
        """The next message, as a dict."""
        return dict(line.split("=", 1) for line in self.reports.recv(4096).decode().split("\n"))

    def line(self, pattern):
        """Waits for a matching line of the journal. All lines must have a level."""
        while True:
            *whole, self.lines = self.lines.split(b"\n")
            for line in whole:
                assert re.match(rb"<[2-7]>", line), f"a line without a level: {line}"
                if re.search(pattern, line):
                    self.lines = b""
                    return
            more = self.journal.recv(65536)
            assert more, f"no line has {pattern}"
            self.lines += more

    def end(self):
        """Ends the process by SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        assert self.report() == {"STOPPING": "1"}
        assert self.process.wait(WAIT_S) == 0
        self.reports.setblocking(False)
        try:
            raise AssertionError(f"one more report: {self.report()}")
        except BlockingIOError:
            pass
        os.unlink("notify")

    def reload(self):
        """Sends SIGHUP, and expects the reports of a reload in their order."""
        self.process.send_signal(signal.SIGHUP)
        first = self.report()
        assert first["RELOADING"] == "1" and int(first["MONOTONIC_USEC"]) > 0, first
        assert self.report() == {"READY": "1"}


def connect(status):
    """Connects to the port that a status text names; the port must accept without delay."""
    host, port = re.search(r"at ([0-9.]+):(\d+)", status).groups()
    socket.create_connection((host, int(port)), WAIT_S).close()


def write(path, text):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def rpma_serve():
    write("secret", "a secret of enough bytes\n")
    service = Service(os.environ["RPMA_TOOL"], "serve", "--port", "0", "--create", "--size", "1M", "--secret-file", "secret", "pool")
    ready = service.report()
    assert ready["READY"] == "1" and ready["STATUS"].endswith(", regions: 1"), ready
    connect(ready["STATUS"])
    service.reload()
    service.line(rb"^<5>.*SIGHUP: secret file secret was read again")
    write("secret", "short\n")
    service.reload()
    service.line(rb"^<3>.*SIGHUP: the secret stays as it was")
    service.end()
    # If a start fails, the service sends no report, and prints the reason as an error.
    service = Service(os.environ["RPMA_TOOL"], "serve", "--port", "0", "nowhere")
    service.line(rb"^<3>rpma serve: nowhere does not exist")
    assert service.process.wait(WAIT_S) == 3


def rpmemd():
    write("secret", "a secret of enough bytes\n")
    service = Service(os.environ["RPMEMD"], "--listen=127.0.0.1:0", "--log-file", "-", "--log-level", "notice",
                      "--secret-file", os.path.realpath("secret"), "--poolset-dir", os.getcwd())
    ready = service.report()
    assert ready["READY"] == "1", ready
    connect(ready["STATUS"])
    service.line(rb"^<5>rpmemd\[\d+\]: notice: .*listening at")
    service.reload()
    service.line(rb"^<5>.*the configuration was read again")
    service.end()
    service = Service(os.environ["RPMEMD"], "--listen=127.0.0.1:0", "--log-file", "-")
    service.line(rb"^<3>rpmemd\[\d+\]: err: --listen needs a secret-file")
    assert service.process.wait(WAIT_S) == 1
    refuses("RPMEMD", "--lisen", rb"unrecognized option '--lisen' \(did you mean '--listen'\?\)", 255)
    refuses("RPMEMD", "--config", rb"option '--config' needs a value", 255)


def refuses(program, word, reason, code):
    """Each line about a wrong command line has a level; the first line has the program's name and the reason."""
    if os.path.exists("notify"):
        os.unlink("notify")
    service = Service(os.environ[program], word)
    text = b"".join(iter(lambda: service.journal.recv(65536), b""))
    name = os.path.basename(os.environ[program]).encode()
    assert re.match(rb"<3>" + name + rb"\[\d+\]: err: " + reason + rb"\n<3>usage: [^\n]*\n$", text), text
    assert service.process.wait(WAIT_S) == code


def rpmirrord():
    where = os.getcwd()
    write("conf", f"listen = 127.0.0.1:0\nsocket = {where}/socket\nlog-level = notice\n"
          f"[set orders]\nmember = a\ndata = {where}/data\nregister = file:{where}/register\n")
    service = Service(os.environ["RPMIRRORD"], "-c", "conf")
    ready = service.report()
    assert ready["READY"] == "1" and "0 of 1 sets" in ready["STATUS"], ready
    connect(ready["STATUS"])
    service.line(rb"^<4>rpmirrord\[\d+\]: warn: set orders: .*does not exist")
    # The copy is created after the daemon's start, and the reported status must change.
    subprocess.run([os.environ["RPMIRROR"], "init", "orders", "--size", "2M", "--lonely", "manual", "--register", f"file:{where}/register",
                    "--member", f"a=127.0.0.1:{where}/data"], check=True, stdout=subprocess.DEVNULL)
    changed = service.report()
    assert "1 of 1 sets" in changed["STATUS"] and "READY" not in changed, changed
    service.reload()
    service.line(rb"^<5>.*the configuration conf was reloaded")
    service.end()
    write("conf", "listen = 127.0.0.1:0\nnonsense = yes\n")
    service = Service(os.environ["RPMIRRORD"], "-c", "conf")
    service.line(rb"^<3>.*conf:2: .*nonsense")
    assert service.process.wait(WAIT_S) != 0
    refuses("RPMIRRORD", "--chekc", rb"unrecognized option '--chekc' \(did you mean '--check'\?\)", 2)
    refuses("RPMIRRORD", "-x", rb"unrecognized option '-x'", 2)
    refuses("RPMIRRORD", "word", rb"'word' is not an option", 2)


folder = tempfile.mkdtemp(dir=os.environ["RPMA_TEST_DIR"], prefix="services.")
os.chdir(folder)
try:
    {"rpma_serve": rpma_serve, "rpmemd": rpmemd, "rpmirrord": rpmirrord}[sys.argv[1]]()
finally:
    for process in started:
        if process.poll() is None:
            process.kill()
    shutil.rmtree(folder)
