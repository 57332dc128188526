#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A systemctl and journalctl for a host that is a set of namespaces. It starts the programs that a unit file names.

The supported settings of a unit are Type, ExecStartPre, ExecStart, ExecReload, Environment, EnvironmentFile,
LoadCredential, StateDirectory, RuntimeDirectory, WorkingDirectory, Restart, RestartSec, and drop-ins. Settings that
confine a unit are ignored, because the container of the tests does not permit them. `systemctl boot` starts enabled
units.
"""
import collections
import contextlib
import fnmatch
import glob
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time

FOLDERS = ("/etc/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system")
STATE = "/run/units"
ENABLED = "/etc/systemd/enabled"
READY_S = 30


class Unit:
    def __init__(self, name):
        """The name of a timer stands for its service, which runs once when the timer is started."""
        self.name = name.removesuffix(".service").removesuffix(".timer")
        prefix, at, self.instance = self.name.partition("@")
        self.prefix = prefix
        file = prefix + at + ".service"
        paths = [f"{folder}/{file}" for folder in FOLDERS if os.path.exists(f"{folder}/{file}")]
        if not paths:
            sys.exit(f"Unit {self.name}.service could not be found.")
        self.keys = collections.defaultdict(list)
        for path in paths[:1] + sorted(glob.glob(f"/etc/systemd/system/{file}.d/*.conf")):
            self.read(path)

    def read(self, path):
        with open(path, encoding="utf-8") as lines:
            for line in lines.read().replace("\\\n", " ").split("\n"):
                key, sign, value = line.partition("=")
                if not sign or line.startswith("#"):
                    continue
                if value:
                    self.keys[key].append(value)
                else:
                    self.keys[key].clear()

    def get(self, key, other=""):
        return self.specifiers(self.keys[key][-1]) if self.keys[key] else other

    def specifiers(self, text):
        words = {"%i": self.instance, "%p": self.prefix, "%S": "/var/lib", "%H": socket.gethostname(), "%t": "/run",
                 "%n": self.name + ".service", "%N": self.name}
        return re.sub(r"%[ipSHtnN]", lambda match: words[match[0]], text)

    def file(self, what):
        return f"{STATE}/{self.name}.{what}"

    def number(self, what):
        try:
            with open(self.file(what), encoding="ascii") as file:
                pid = int(file.read())
            os.kill(pid, 0)
            return pid
        except (OSError, ValueError):
            return 0

    def write(self, what, text):
        with open(self.file(what), "w", encoding="ascii") as file:
            file.write(str(text))

    def log(self):
        return f"/var/log/{self.name}.journal"


def environment(unit):
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    lines = [word for value in unit.keys["Environment"] for word in shlex.split(unit.specifiers(value))]
    for value in unit.keys["EnvironmentFile"]:
        path = unit.specifiers(value)
        if path.startswith("-") and not os.path.exists(path[1:]):
            continue
        with open(path.lstrip("-"), encoding="utf-8") as file:
            lines += [line.strip() for line in file if line.strip() and not line.lstrip().startswith("#")]
    for line in lines:
        key, _, value = line.partition("=")
        env[key] = " ".join(shlex.split(value))
    for value in unit.keys["LoadCredential"]:
        name, _, path = unit.specifiers(value).partition(":")
        env["CREDENTIALS_DIRECTORY"] = f"/run/credentials/{unit.name}"
        os.makedirs(env["CREDENTIALS_DIRECTORY"], mode=0o700, exist_ok=True)
        shutil.copyfile(path, f"{env['CREDENTIALS_DIRECTORY']}/{name}")
        os.chmod(f"{env['CREDENTIALS_DIRECTORY']}/{name}", 0o400)
    return env


def command(unit, line, env):
    """The words of a command. ${NAME} is replaced inside a word; a word $NAME is replaced by several words."""
    words = []
    for word in shlex.split(unit.specifiers(line).lstrip("-")):
        if re.fullmatch(r"\$\w+", word):
            words += env.get(word[1:], "").split()
        else:
            words.append(re.sub(r"\$\{?(\w+)\}?", lambda match: env.get(match[1], ""), word) if "/sh" not in words[:1]
                         else word)
    return words


def folders(unit):
    for key, top, mode in (("StateDirectory", "/var/lib", unit.get("StateDirectoryMode", "0755")),
                           ("RuntimeDirectory", "/run", "0755")):
        if unit.get(key):
            os.makedirs(f"{top}/{unit.get(key)}", mode=int(mode, 8), exist_ok=True)


def is_ready(unit, notices, size):
    if notices:
        try:
            return b"READY=1" in notices.recv(4096)
        except TimeoutError:
            return False
    time.sleep(0.02)
    return unit.get("Type") != "exec" or os.path.getsize(unit.log()) > size


def run_once(unit, tell_ready):
    """Runs the unit's program to its end, and returns its status."""
    env = environment(unit)
    folders(unit)
    cwd = unit.get("WorkingDirectory", "/")
    notices = None
    if unit.get("Type") == "notify":
        notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notices.bind(f"\0units/{unit.name}/{os.getpid()}/{time.monotonic_ns()}")
        notices.settimeout(0.05)
        env["NOTIFY_SOCKET"] = "@" + notices.getsockname()[1:].decode()
    with open(unit.log(), "a", encoding="utf-8") as log:
        for line in unit.keys["ExecStartPre"]:
            subprocess.run(command(unit, line, env), env=env, cwd=cwd, stdout=log, stderr=log, check=True)
        size = os.path.getsize(unit.log())
        program = subprocess.Popen(command(unit, unit.get("ExecStart"), env), env=env, cwd=cwd, stdout=log, stderr=log,
                                   stdin=subprocess.DEVNULL)
    unit.write("main", program.pid)
    end = time.monotonic() + READY_S
    while program.poll() is None and time.monotonic() < end:
        if is_ready(unit, notices, size):
            tell_ready()
            break
    return program.wait()


def supervise(unit, ready):
    """Runs the unit's program, and starts it again if Restart= requires it. Never returns."""
    stopped = []

    def stop(*_):
        stopped.append(True)
        if unit.number("main"):
            os.kill(unit.number("main"), signal.SIGTERM)

    def tell(what):
        if not told:
            told.append(True)
            with contextlib.suppress(BrokenPipeError):  # with --no-block the caller has ended
                os.write(ready, what)

    told = []
    signal.signal(signal.SIGTERM, stop)
    unit.write("pid", os.getpid())
    status = 1
    while not stopped:
        try:
            status = run_once(unit, lambda: tell(b"ready"))
        except (OSError, subprocess.CalledProcessError) as error:
            with open(unit.log(), "a", encoding="utf-8") as log:
                print(f"{unit.name}: {error}", file=log)
        tell(b"failed")
        again = {"always": True, "on-failure": status != 0, "on-abnormal": status < 0}.get(unit.get("Restart"), False)
        if not again:
            break
        time.sleep(float(unit.get("RestartSec", "0.1").removesuffix("s")))
    os.unlink(unit.file("pid"))
    os._exit(0 if status == 0 or stopped else 1)


def start(unit, block=True):
    if unit.get("Type") == "oneshot":
        run_oneshot(unit)
        return
    if unit.number("pid"):
        return
    os.makedirs(STATE, exist_ok=True)
    ready, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        os.close(ready)
        null = os.open("/dev/null", os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        supervise(unit, writer)
    os.close(writer)
    if block and os.read(ready, 16) != b"ready":
        sys.exit(f"Job for {unit.name}.service failed. See \"journalctl -u {unit.name}\" for details.")


def run_oneshot(unit):
    env = environment(unit)
    good = [0] + [int(status) for status in unit.get("SuccessExitStatus").split()]
    with open(unit.log(), "a", encoding="utf-8") as log:
        status = subprocess.run(command(unit, unit.get("ExecStart"), env), env=env, stdout=log, stderr=log, check=False)
    if status.returncode not in good:
        sys.exit(f"Job for {unit.name}.service failed. See \"journalctl -u {unit.name}\" for details.")


def stop(unit):
    pid = unit.number("pid")
    if pid:
        os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + 20
    while unit.number("pid"):
        if time.monotonic() > end:
            os.kill(unit.number("main"), signal.SIGKILL)
        time.sleep(0.01)


def reload(unit):
    if not unit.number("main"):
        sys.exit(f"{unit.name}.service is not active, cannot reload.")
    env = {"MAINPID": str(unit.number("main"))}
    subprocess.run(command(unit, unit.get("ExecReload"), env), check=True)
    time.sleep(0.3)


def enable(unit):
    os.makedirs(ENABLED, exist_ok=True)
    with open(f"{ENABLED}/{unit.name}", "w", encoding="ascii"):
        pass


def disable(unit):
    if os.path.exists(f"{ENABLED}/{unit.name}"):
        os.unlink(f"{ENABLED}/{unit.name}")


def journal(words):
    """journalctl -u UNIT [-n LINES] [OPTIONS]"""
    unit = Unit(words[words.index("-u") + 1])
    count = words[words.index("-n") + 1] if "-n" in words else "1000"
    if os.path.exists(unit.log()):
        sys.exit(subprocess.run(["tail", "-n", count, unit.log()], check=False).returncode)


def act(word, unit, options):
    now = "--now" in options
    if word in ("start", "restart", "enable"):
        if word == "restart":
            stop(unit)
        if word == "enable":
            enable(unit)
        if word != "enable" or now:
            start(unit, "--no-block" not in options)
    elif word in ("stop", "disable"):
        if word == "disable":
            disable(unit)
        if word == "stop" or now:
            stop(unit)
    elif word == "try-restart":
        if unit.number("pid"):
            stop(unit)
            start(unit)
    elif word == "is-enabled":
        enabled = os.path.exists(f"{ENABLED}/{unit.name}")
        print("enabled" if enabled else "disabled")
        if not enabled:
            sys.exit(1)
    elif word == "reload":
        reload(unit)
    elif word == "kill":
        os.kill(unit.number("main"), getattr(signal, "SIG" + options["-s"]))
    elif word in ("is-active", "status"):
        state = "active" if unit.number("main") and unit.number("pid") else "inactive"
        print(state if word == "is-active" else f"{unit.name}.service: {state}")
        if state == "inactive":
            sys.exit(3)
    else:
        sys.exit(f"this systemctl does not know '{word}'")


def named(words):
    """The units of a command line. A pattern, as in packages' scripts, stands for the running instances that match."""
    for word in words:
        if "*" not in word:
            yield word
        elif os.path.isdir(STATE):
            running = [name.removesuffix(".pid") + ".service" for name in sorted(os.listdir(STATE)) if name.endswith(".pid")]
            yield from fnmatch.filter(running, word)


def main():
    if os.path.basename(sys.argv[0]) == "journalctl":
        journal(sys.argv[1:])
        return
    options, words = {}, []
    rest = iter(sys.argv[1:])
    for word in rest:
        if word.startswith("-"):
            options[word] = next(rest) if word == "-s" else True
        else:
            words.append(word)
    if words[0] == "boot":
        words = ["start"] + (sorted(os.listdir(ENABLED)) if os.path.isdir(ENABLED) else [])
        options["--no-block"] = True
    if words[0] == "daemon-reload":
        return
    for name in named(words[1:]):
        act(words[0], Unit(name), options)


main()
