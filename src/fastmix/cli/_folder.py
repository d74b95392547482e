"""The folder of a fit: at every instant the old one or the new one, whole.

1. Before anything is charged, a folder is made beside the one that is asked for, and the room
   that the files need is allocated in it: a place that cannot be written fails here.
2. After the fit, the files are written there and are on the disk.
3. The two folders exchange their names in one step of the file system (or the new one takes a
   name that is free).  Where the file system has no such step, a model is not replaced.
4. The old files are removed under the name of the folder beside.

A process that is killed leaves at most the folder beside, with a name that begins with
``.fastmix-``; the next fit to the same place removes it.  Only files with the three names below
are ever removed.
"""

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from fastmix.cli._files import exchange, sync_folder

FILES = ("model.json", "certificate.json", "report.html")

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_PROBES = ("probe-a", "probe-b")


@contextmanager
def model_folder(
    out: Path, *, force: bool, room: int, inputs: Iterable[Path | None] = ()
) -> Iterator[Callable[..., None]]:
    """Make sure that a fit can be written to a folder, and give what writes its three texts.

    The folder is new, or empty, or holds a model that is to be replaced, and none of the inputs; no
    file of the fit exceeds ``room`` bytes.
    """
    target = Path(os.path.realpath(out))
    name = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]
    beside = target.with_name(f".fastmix-{name}")
    made: list[Path] = []
    held: list[int] = []  # locked folders: the one beside, then the one that it replaces
    try:
        try:
            _check_target(out, target, force, inputs)
            for parent in reversed([path for path in target.parents if not path.exists()]):
                parent.mkdir()
                made.append(parent)
            held.append(_claim(beside))
            _reserve(target, beside, room)
        except OSError as error:
            raise ValueError(
                f"out must be a folder that can be written; got out={str(out)!r}: "
                f"{error.strerror or type(error).__name__}. Nothing was charged."
            ) from None
        yield partial(_publish, target, beside, held, force)
    finally:
        with suppress(OSError):  # what is beside may be the folder of another fit by now
            if any(os.path.samestat(os.fstat(fd), os.lstat(beside)) for fd in held):
                _clear(beside)
                beside.rmdir()
        for fd in held:
            os.close(fd)
        for parent in reversed(made):
            with suppress(OSError):
                parent.rmdir()  # fails unless it is empty


def _publish(target: Path, beside: Path, held: list[int], force: bool, *texts: str) -> None:
    """Write the files, then put the folder in its place in one step."""
    for name, text in zip(FILES, texts, strict=True):
        _fill(beside / name, text.encode())
    with suppress(FileNotFoundError):
        beside.chmod(stat.S_IMODE(target.stat().st_mode))
    sync_folder(beside)
    if not target.exists() or not force:
        os.rename(beside, target)  # to a free name, or over an empty folder
    else:
        # The old folder is locked first: under its new name it is still this fit's.
        held.append(os.open(target, _FOLDER))
        fcntl.flock(held[-1], fcntl.LOCK_EX)
        if not exchange(beside, target):
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    sync_folder(target.parent)


def _check_target(out: Path, target: Path, force: bool, inputs: Iterable[Path | None]) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        os.lstat(target / max(FILES, key=len))  # also tells a path that is too long
    got = f"; got out={str(out)!r}"
    if Path.cwd().is_relative_to(target):
        raise ValueError(f"out must not be the current folder{got}. Choose a folder in it.")
    if not target.exists():
        return
    if not target.is_dir():
        raise ValueError(f"out must be a folder{got}, which is a file.")
    if target.is_mount() or target.stat().st_dev != target.parent.stat().st_dev:
        raise ValueError(f"out must not be a mount point{got}. Choose a folder in it.")
    for path in inputs:
        if path is not None and Path(os.path.realpath(path)).is_relative_to(target):
            holds = f"{got}, which holds {str(path)!r}."
            raise ValueError(f"out must not hold a file that the fit uses{holds}")
    found = sorted(entry.name for entry in target.iterdir())
    ours = FILES if "model.json" in found else ()
    strange = [name for name in found if name not in ours or not (target / name).is_file()]
    if strange:
        raise ValueError(
            f"The folder {str(out)!r} holds files that 'fastmix fit' did not write: "
            f"{', '.join(map(repr, strange[:3]))}{', ...' if len(strange) > 3 else ''}. Choose "
            f"another folder."
        )
    if found and not force:
        raise ValueError(
            f"The folder {str(out)!r} already contains a model. Choose another folder, or pass "
            f"--force to replace it."
        )
    if not os.access(target, os.W_OK | os.X_OK) or _is_stuck(target):
        raise PermissionError(errno.EACCES, "it cannot be replaced by this user", str(out))


def _is_stuck(target: Path) -> bool:
    """Tell whether a folder with the sticky bit keeps this user from renaming the target."""
    parent = target.parent.stat()
    owners = (0, parent.st_uid, target.stat().st_uid)
    return bool(parent.st_mode & stat.S_ISVTX) and os.geteuid() not in owners


def _claim(beside: Path) -> int:
    """Make the folder beside, or take over what a killed fit left of it; hold its lock."""
    while True:
        with suppress(FileExistsError):
            beside.mkdir()
        with suppress(FileNotFoundError), ExitStack() as opened:
            fd = os.open(beside, _FOLDER)
            opened.callback(os.close, fd)
            if os.fstat(fd).st_uid != os.geteuid():
                raise PermissionError(
                    errno.EACCES, f"{beside.name} beside it belongs to another user"
                )
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(
                    "out must not be in use; another fit writes to the same folder. Nothing was "
                    "charged."
                ) from None
            # Unless another fit has just put it in its place.
            if os.path.samestat(os.fstat(fd), os.lstat(beside)):
                opened.pop_all()
                return fd


def _reserve(target: Path, beside: Path, room: int) -> None:
    """Allocate room for the files, and see whether the two folders can exchange their names."""
    _clear(beside)
    if any(beside.iterdir()):
        raise ValueError(
            f"The folder {str(beside)!r} holds files that 'fastmix fit' did not write. Move them; "
            f"fits to {target.name!r} use this folder."
        )
    if target.exists() and any(target.iterdir()):
        one, other = (beside / name for name in _PROBES)
        one.mkdir()
        other.mkdir()
        if not exchange(one, other):
            raise ValueError(
                f"The file system cannot replace the folder {target.name!r} in one step. Choose a "
                f"new folder, or move the old one away first."
            )
        one.rmdir()
        other.rmdir()
    for name in FILES:
        with (beside / name).open("xb") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, room)
            else:
                file.write(bytes(room))


def _fill(path: Path, content: bytes) -> None:
    """Write over room that was allocated, and wait until it is on the disk."""
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()
        os.fsync(file.fileno())


def _clear(beside: Path) -> None:
    """Remove what a fit may have left, and nothing else."""
    for name in FILES:
        (beside / name).unlink(missing_ok=True)
    for name in _PROBES:
        with suppress(OSError):
            (beside / name).rmdir()
