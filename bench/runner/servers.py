# SPDX-License-Identifier: BSD-3-Clause
"""
Servers of durable writes. Each server is started in a separate folder, on a free port, and ended by a signal to its
process.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time

LIMIT_S = 30
MIB = 1 << 20
DISK_MIB = 72  # 64 connections with 64 pages each, or 8 with 4 MiB
TARGET = "iqn.2026-11.bench:disk"  # durable/iscsi.c has the same name
SYSTEM_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))


class Missing(Exception):
    """The server cannot be started on this machine; the text has the reason."""


def program(name, *folders):
    found = shutil.which(name, path=os.pathsep.join((*folders, SYSTEM_PATH)))
    if not found:
        raise Missing(f"{name} is not installed")
    return found


def free_ports(count):
    """Free ports. Another process can take a port before the server uses it; then the server ends with an error."""
    with_sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in with_sockets]
    for each in with_sockets:
        each.close()
    return ports


def make_disk(path):
    """A file with all blocks allocated, so that no write allocates."""
    with open(path, "wb") as out:
        for _ in range(DISK_MIB):
            out.write(bytes(MIB))
        out.flush()
        os.fsync(out.fileno())


class Server:
    """
    A server. After start(), `words` has the arguments for its client; stop() ends the server. A subclass defines
    command(), and can define prepare() and set_up().
    """

    name = ""
    quit_signal = signal.SIGTERM
    environment = {}
    user = None  # the user as which the server runs, if this process is root

    def __init__(self, folder, tools):
        self.folder = os.path.join(folder, self.name)
        self.tools = tools
        self.process = None
        self.port = 0

    def path(self, name):
        return os.path.join(self.folder, name)

    @property
    def words(self):
        return {"port": str(self.port)}

    def command(self):
        raise NotImplementedError

    def prepare(self):
        """Called before the server starts."""

    def set_up(self):
        """Called after the server listens."""

    def as_user(self):
        """
        Words before a command, so that it is ended when this process ends, and runs as `user` if this process is root
        (some servers refuse to run as root).
        """
        words = ["setpriv", "--pdeathsig", signal.Signals(self.quit_signal).name[3:]]
        if self.user and os.geteuid() == 0:
            words += ["--reuid", self.user, "--regid", str(pwd.getpwnam(self.user).pw_gid), "--clear-groups"]
        return words

    def run(self, *command):
        """Run a command to its end. If the command fails, the start of the server fails, too."""
        done = subprocess.run([*self.as_user(), *command], capture_output=True, text=True, check=False, cwd=self.folder,
                              env={**os.environ, **self.environment}, timeout=LIMIT_S)
        if done.returncode:
            raise Missing(f"{os.path.basename(command[0])}: {self.last_line(done.stderr)}")

    @staticmethod
    def last_line(text):
        return (text.strip().splitlines() or ["no reason was printed"])[-1]

    def log(self):
        with open(self.path("log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    def _listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _await(self):
        until = time.monotonic() + LIMIT_S
        while not self._listens():
            if self.process.poll() is not None or time.monotonic() > until:
                raise Missing(f"{self.name} does not start: {self.last_line(self.log())}")
            time.sleep(0.02)

    def start(self):
        os.mkdir(self.folder)
        self.port, self.second_port = free_ports(2)
        if self.user and os.geteuid() == 0:
            shutil.chown(self.folder, self.user)
        self.prepare()
        with open(self.path("log"), "wb") as log:
            self.process = subprocess.Popen([*self.as_user(), *self.command()], cwd=self.folder, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                                            env={**os.environ, **self.environment})
        self._await()
        self.set_up()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(self.quit_signal)
            try:
                self.process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Served(Server):
    """`rpma serve`, for librpmafile; it prefers shared memory for clients on its host, unless that is disabled."""

    name = "rpma-serve"
    shm = "0"

    def __init__(self, folder, tools):
        super().__init__(folder, tools)
        self.environment = {"SOFTRNIC_SHM": self.shm, "SOFTRNIC_SHM_AFTER": "1", "RPMA_PROVIDER": "softrnic"}

    def prepare(self):
        make_disk(self.path("disk"))

    def command(self):
        return [os.path.join(self.tools, "rpma"), "serve", "--addr", "127.0.0.1", "--port", str(self.port),
                "--max-per-address", "256", "--region", "bench", self.path("disk")]


class ServedShm(Served):
    name = "rpma-serve-shm"
    shm = "1"


class Nbdkit(Server):
    name = "nbdkit"

    def prepare(self):
        make_disk(self.path("disk"))

    def command(self):
        return [program("nbdkit"), "-f", "-i", "127.0.0.1", "-p", str(self.port), "file", self.path("disk")]


class Tgt(Server):
    """tgtd. It reads commands from a Unix socket, whose path is in an environment variable."""

    name = "tgt"
    quit_signal = signal.SIGKILL  # tgtd ignores other signals while it has a target
    store = "rdwr"

    def prepare(self):
        self.environment = {"TGT_IPC_SOCKET": self.path("control")}
        make_disk(self.path("disk"))

    def command(self):
        return [program("tgtd"), "-f", "--iscsi", f"portal=127.0.0.1:{self.port}"]

    def _admin(self, mode, *words):
        self.run(program("tgtadm"), "--lld", "iscsi", "--mode", mode, *words)

    def set_up(self):
        self._admin("target", "--op", "new", "--tid", "1", "--targetname", TARGET)
        self._admin("logicalunit", "--op", "new", "--tid", "1", "--lun", "1", "--bstype", self.store, "--backing-store",
                    self.path("disk"))
        self._admin("target", "--op", "bind", "--tid", "1", "--initiator-address", "ALL")


class Etcd(Server):
    name = "etcd"

    def command(self):
        client, peer = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{self.second_port}"
        # etcd keeps all values of each key, which need more space than etcd's default limit of 2
        # GiB.
        return [program("etcd"), "--data-dir", self.path("data"), "--listen-client-urls", client,
                "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", f"default={peer}", "--quota-backend-bytes", str(8 << 30), "--log-level", "error"]


class Redis(Server):
    name = "redis"

    def command(self):
        # Snapshots and rewrites of the log would disturb the measurement, so they are off.
        return [program("redis-server"), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--save", "",
                "--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"]


class Postgres(Server):
    """
    PostgreSQL with the installed settings (fsync, synchronous_commit = on), but without autovacuum, which would disturb
    the measurement.
    """

    name = "postgres"
    quit_signal = signal.SIGINT  # SIGINT ends the server without waiting for clients
    user = "postgres"

    def _program(self, name):
        folders = sorted((os.path.join("/usr/lib/postgresql", version, "bin")
                          for version in os.listdir("/usr/lib/postgresql")), reverse=True) \
            if os.path.isdir("/usr/lib/postgresql") else []
        return program(name, *folders)

    def prepare(self):
        self.run(self._program("initdb"), "-D", self.path("data"), "-A", "trust", "-U", "bench", "--no-sync")

    def command(self):
        return [self._program("postgres"), "-D", self.path("data"), "-p", str(self.port), "-k", self.folder,
                "-c", "listen_addresses=127.0.0.1", "-c", "autovacuum=off"]

    def _listens(self):
        """Does the server accept clients? Its port is open earlier, before the recovery is complete."""
        return super()._listens() and subprocess.run(
            [self._program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False).returncode == 0

    def set_up(self):
        self.run(self._program("psql"), "-h", "127.0.0.1", "-p", str(self.port), "-U", "bench", "-q", "-c",
                 "CREATE TABLE bench (data bytea)", "postgres")
