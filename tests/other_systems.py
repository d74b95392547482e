"""Run a program as if this were macOS or Windows, or on this system as it is.

    python other_systems.py SYSTEM PACKAGES PROGRAM ...

Packages of others are imported first: what they do with a system is their own affair.  Then what
those systems lack is taken away from the whole process: modules, functions of ``os``,
``/proc``.  For Windows, the two modules that fastmix uses there are imitated, and so is what its
file system refuses: to open folders, to sync what may not be written, to replace or remove what is
open, to rename over a name that is taken.
"""

from __future__ import annotations

import os
import sys
import types
from contextlib import nullcontext
from importlib import import_module

POSIX_MODULES = (
    "fcntl", "grp", "posix_ipc", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty",
)  # fmt: skip
#: Missing on macOS.
LINUX_NAMES = (
    "posix_fadvise", "posix_fallocate", "sched_getaffinity", "sched_setaffinity", "memfd_create",
    "copy_file_range", "fdatasync", "O_TMPFILE", "O_DIRECT", "O_PATH",
)  # fmt: skip
#: Missing on Windows, too.
POSIX_NAMES = (
    "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC", "chown", "confstr", "fchmod",
    "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid", "getgroups", "getloadavg",
    "getpgid", "getpriority", "getsid", "getuid", "initgroups", "killpg", "lchown", "lockf",
    "mkfifo", "mknod", "nice", "pread", "preadv", "pwrite", "pwritev", "register_at_fork",
    "sendfile", "setegid", "seteuid", "setgid", "setpgid", "setsid", "setuid", "statvfs", "sync",
    "sysconf", "uname", "wait", "wait3", "wait4",
)  # fmt: skip


class Missing:
    """A finder that refuses modules."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def take_away(names):
    for name in names:
        if hasattr(os, name):
            delattr(os, name)


def hide_processes():
    """Take /proc away from fastmix."""
    exists = os.path.exists
    os.path.exists = lambda path: not str(path).startswith("/proc") and exists(path)
    import fastmix._system as system

    assert not system.times_are_exact()
    system._status = None


def become_macos():
    take_away(LINUX_NAMES)
    sys.platform = "darwin"
    import fastmix.accounting._active as active

    active._PLACES = ()  # no /dev/shm; and nothing of a test in /tmp itself


def become_windows():
    import fcntl
    import shutil

    shutil._use_fd_functions = False
    windows = types.ModuleType("msvcrt")
    windows.LK_UNLCK, windows.LK_NBLCK = 0, 2

    def locking(fd, mode, size):
        assert (os.lseek(fd, 0, os.SEEK_CUR), size) == ((1 << 31) - 2, 1)
        kind = fcntl.LOCK_UN if mode == windows.LK_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB
        try:
            fcntl.flock(fd, kind)
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None

    windows.locking = locking
    registry = types.ModuleType("winreg")
    registry.HKEY_CURRENT_USER = 1
    registry.OpenKey = lambda *_: nullcontext()
    registry.QueryValueEx = lambda *_: (os.environ["LOCAL_FOLDER"], 1)
    sys.modules.update(msvcrt=windows, winreg=registry)

    real = {name: getattr(os, name) for name in ("open", "fsync", "rename", "replace", "unlink")}
    links, readlink, lexists, isdir = os.listdir, os.readlink, os.path.lexists, os.path.isdir

    def refuse_open(path):
        """Refuse a file that this process has open."""
        for fd in links("/proc/self/fd"):
            try:
                name = readlink(f"/proc/self/fd/{fd}")
            except OSError:
                continue
            if name == os.path.realpath(path):
                raise PermissionError(13, "The process cannot access the file", str(path))

    def open_file(path, flags, mode=0o777, **more):
        if isdir(path):
            raise PermissionError(13, "Permission denied", str(path))
        if sys._getframe(1).f_globals["__name__"].startswith("fastmix"):
            assert flags & os.O_BINARY, "line ends would be changed"
        return real["open"](path, flags & ~os.O_BINARY, mode, **more)

    def fsync(fd):
        if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(9, "Bad file descriptor")
        real["fsync"](fd)

    def rename(old, new, **more):
        refuse_open(old)
        if lexists(new):
            raise FileExistsError(17, "File exists", str(new))
        real["rename"](old, new, **more)

    def replace(old, new, **more):
        refuse_open(old)
        refuse_open(new)
        if isdir(new):
            raise PermissionError(13, "Permission denied", str(new))
        real["replace"](old, new, **more)

    def unlink(path, **more):
        refuse_open(path)
        real["unlink"](path, **more)

    os.O_BINARY = 1 << 30
    os.open, os.fsync, os.rename, os.replace, os.unlink = open_file, fsync, rename, replace, unlink
    take_away((*LINUX_NAMES, *POSIX_NAMES))
    for name in POSIX_MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Missing(POSIX_MODULES))


def main():
    _, system, packages, program, *arguments = sys.argv
    for name in packages.split():
        import_module(name)
    if system != "this":
        import psutil  # noqa: F401

        {"macos": become_macos, "windows": become_windows}[system]()
        hide_processes()
    sys.argv = ["program", *arguments]
    exec(compile(program, "program", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    main()
