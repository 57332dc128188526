# SPDX-License-Identifier: BSD-3-Clause
"""Two disks on one disk: file systems on loop devices, each with a separate file."""

import contextlib
import os
import re
import shutil
import subprocess

from .place import PREFIX, run

IMAGE = ".image"
SIZE_MIB = 32
CHUNK = 1 << 20


def _fill(path):
    """Write the whole file once, so that a write to the device does not allocate in the file system below it."""
    with open(path, "wb") as image:
        for _ in range(SIZE_MIB):
            image.write(bytes(CHUNK))


def _mount(path):
    """Mount a new file system at `path`. The unmount removes the device and its file, whose name is removed here."""
    image = path + IMAGE
    os.mkdir(path)
    _fill(image)
    run("mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0", image)
    run("mount", "-o", "loop", image, path)
    device = run("losetup", "--noheadings", "--output", "NAME", "--associated", image).strip()
    os.unlink(image)
    with contextlib.suppress(OSError):  # not every file system supports this
        run("losetup", "--direct-io=on", device)


def _remove(path):
    """
    Unmount `path` and remove it; harmless if nothing is mounted. The unmount is lazy, because processes of an
    interrupted run may still run.
    """
    subprocess.run(["umount", "--lazy", path], capture_output=True, check=False)
    with contextlib.suppress(OSError):
        os.unlink(path + IMAGE)
    with contextlib.suppress(OSError):
        os.rmdir(path)


def remove_leftovers(folder):
    """Remove the file systems of runs whose process has ended."""
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        left = re.fullmatch(rf"({PREFIX}-(\d+)-disk\d)(?:{re.escape(IMAGE)})?", name)
        if left and not os.path.exists(f"/proc/{left[2]}"):
            _remove(os.path.join(folder, left[1]))


class LoopDisks:
    """The disks are made on entry and removed on exit; the entry raises OSError if that is not permitted."""

    def __init__(self, folder):
        self.paths = [os.path.join(os.path.abspath(folder), f"{PREFIX}-{os.getpid()}-disk{number}") for number in (1, 2)]

    def __enter__(self):
        if os.geteuid() or not shutil.which("losetup"):
            raise OSError("loop devices need root and losetup")
        try:
            for path in self.paths:
                _mount(path)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for path in self.paths:
            _remove(path)
