"""System calls that differ between Linux, macOS and Windows, with one meaning on all of them."""

import math
import os
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:
    WINDOWS = True  # the only system without it
else:
    WINDOWS = False

#: The byte that is locked on Windows, beyond the end of any file: nobody can read a locked byte.
_LOCKED_BYTE = (1 << 31) - 2

#: A file that knows when each process was started, in ticks that no change of the clock moves.
_STATUS = "/proc/{}/stat"

# Locks


def open_file(path: Path, flags: int, mode: int = 0o666) -> int:
    """Open a file of bytes; its descriptor is not inherited by other programs."""
    return os.open(path, flags | getattr(os, "O_BINARY", 0), mode)


def try_lock(fd: int, *, shared: bool = False) -> bool:
    """Lock an open file; return False at once if another descriptor holds the lock.

    The lock goes with the descriptor, also when the process is killed.  On Windows a shared lock
    is exclusive, too.
    """
    if WINDOWS:
        with suppress(PermissionError):
            _windows_lock(fd, "LK_NBLCK")
            return True
        return False
    with suppress(BlockingIOError):
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        return True
    return False


def unlock(fd: int) -> None:
    """Release the lock: a forked child may hold a copy of the descriptor."""
    if WINDOWS:
        _windows_lock(fd, "LK_UNLCK")
    else:
        fcntl.flock(fd, fcntl.LOCK_UN)


def _windows_lock(fd: int, kind: str) -> None:
    windows: Any = import_module("msvcrt")
    os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
    try:
        windows.locking(fd, getattr(windows, kind), 1)
    finally:
        os.lseek(fd, 0, os.SEEK_SET)


def is_named(fd: int, path: Path) -> bool:
    """Return whether ``path`` is the name of an open file; on Windows an open file keeps it."""
    with suppress(FileNotFoundError):
        return WINDOWS or os.path.samestat(os.fstat(fd), os.stat(path))
    return False


# Files and names


def write_at(fd: int, content: bytes, at: int) -> None:
    """Write all of ``content`` at a position."""
    rest = memoryview(content)
    while rest:
        if hasattr(os, "pwrite"):
            written = os.pwrite(fd, rest, at)
        else:
            os.lseek(fd, at, os.SEEK_SET)
            written = os.write(fd, rest)
        rest, at = rest[written:], at + written


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk; Windows has no way to ask for that."""
    if WINDOWS:
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def rename_new(old: Path, new: Path) -> None:
    """Rename a file to a name that must be free, in one step."""
    if WINDOWS:
        os.rename(old, new)  # which refuses a name that is taken there
    else:
        os.link(old, new)
        os.unlink(old)


def is_owned(found: os.stat_result) -> bool:
    """Return whether a file belongs to this user; True on Windows, which tells no owner."""
    return WINDOWS or found.st_uid == os.geteuid()


def local_folder() -> Path:
    """Return the user's own folder on Windows, which does not depend on the environment."""
    registry: Any = import_module("winreg")
    key = r"Software\Microsoft\Windows\CurrentVersion\Explorer\Shell Folders"
    with registry.OpenKey(registry.HKEY_CURRENT_USER, key) as opened:
        return Path(registry.QueryValueEx(opened, "Local AppData")[0])


# Processes


def times_are_exact() -> bool:
    """Return whether the start time in the name of a process tells it from all others."""
    return os.path.exists(_STATUS.format("self"))


@cache
def lineage() -> tuple[str, ...]:
    """Return the names of this process and of those above it, as they were at the first call.

    A name is the number of a process and the time at which it was started: numbers are used again.
    """
    names, process = [], os.getpid()
    if times_are_exact():
        while process > 0:
            status = _status(process)
            names.append(f"{process}-{status[19]}")
            process = os.getppid() if process == os.getpid() else int(status[1])
        return tuple(names)
    import psutil

    above: Any = psutil.Process()
    with suppress(psutil.AccessDenied):  # another user's process ends the list
        while above is not None:
            names.append(f"{above.pid}-{round(above.create_time())}")
            above = above.parent()
    return tuple(names)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lineage.cache_clear)


def _status(number: int) -> list[str]:
    """Return the kernel's words about a process after its name; zeros where there are none."""
    try:
        text = Path(_STATUS.format(number)).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ["0"] * 20
    return text.rpartition(")")[2].split()


# Memory


def free_memory() -> float:
    """Return the bytes that this process may still take; infinity where the system does not tell.

    The least of what the machine, the container and the limits of the process leave.
    """
    left = [math.inf]
    with suppress(OSError, ValueError, KeyError):
        left.append(_kilobytes("/proc/meminfo")["MemAvailable"])
    with suppress(OSError, ValueError):
        limit, taken = (Path(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
        left.append(int(limit.read_text()) - int(taken.read_text()))
    with suppress(OSError, ValueError, KeyError, ImportError):
        resource, used = import_module("resource"), _kilobytes("/proc/self/status")
        for name, taken_as in (("RLIMIT_DATA", "VmData"), ("RLIMIT_AS", "VmSize")):
            if (most := resource.getrlimit(getattr(resource, name))[0]) != resource.RLIM_INFINITY:
                left.append(most - used[taken_as])
    return max(0.0, min(left))


def _kilobytes(path: str) -> dict[str, int]:
    """Return the sizes in a file of Linux's, in bytes."""
    lines = (line.split() for line in Path(path).read_text().splitlines())
    return {line[0].rstrip(":"): 1024 * int(line[1]) for line in lines if line[-1:] == ["kB"]}
