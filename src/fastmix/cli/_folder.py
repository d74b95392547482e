"""The folder of a fit: the old one or the new one, whole.

1. Before anything is charged, a folder is made beside the one that is asked for, and the room
   that the files need is allocated in it: a place that cannot be written fails here.
2. After the fit, the files are written there and are on the disk.
3. The two folders exchange their names in one step of the file system, or the new one takes a
   name that is free.  Where the system has no such step (Windows, some file systems), the old
   folder is first renamed to ``.fastmix-...-old``.
4. The old files are removed.

A process that is killed leaves at most folders and a lock beside, with names that begin with
``.fastmix-``; the next fit to the same place removes them.  Without an exchange in one step, a
process that is killed between its two renames leaves no folder under the name that was asked for;
the next fit to this place puts the new one there.  Only files with the three names below are ever
removed.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from fastmix._system import (
    WINDOWS,
    exchange,
    is_named,
    is_owned,
    open_file,
    sync_folder,
    try_lock,
    unlock,
)
from fastmix.cli._files import fill, reserve

FILES = ("model.json", "certificate.json", "report.html")


@contextmanager
def model_folder(
    out: Path, *, force: bool, room: int, inputs: Iterable[Path | None] = ()
) -> Iterator[Callable[..., None]]:
    """Make sure that a fit can be written to a folder, and give what writes its three texts.

    The folder is new, or empty, or holds a model that is to be replaced, and none of the inputs; no
    file of the fit exceeds ``room`` bytes.
    """
    target = Path(os.path.realpath(out))
    beside, inputs = _beside(target, ""), list(inputs)
    made: list[Path] = []
    try:
        with _refusals(out):
            _check_target(out, target, force, inputs)
            for parent in reversed([path for path in target.parents if not path.exists()]):
                parent.mkdir()
                made.append(parent)
        with _claimed(out, _beside(target, "-lock")):
            with _refusals(out):
                _recover(target, beside)
                _check_target(out, target, force, inputs)
                _make(beside)
            try:
                with _refusals(out):
                    _reserve(target, beside, room)
                yield partial(_publish, target, beside, force)
            finally:
                _remove(beside)
    finally:
        for parent in reversed(made):
            with suppress(OSError):
                parent.rmdir()  # fails unless it is empty


def _beside(target: Path, ending: str) -> Path:
    """Return the name of a folder or file of fits to ``target``."""
    name = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]
    return target.with_name(f".fastmix-{name}{ending}")


@contextmanager
def _refusals(out: Path) -> Iterator[None]:
    """Say that a place cannot be written."""
    try:
        yield
    except OSError as error:
        raise ValueError(
            f"out must be a folder that can be written; got out={str(out)!r}: "
            f"{error.strerror or type(error).__name__}. Nothing was charged."
        ) from None


@contextmanager
def _claimed(out: Path, path: Path) -> Iterator[None]:
    """Hold a lock that keeps other fits to the same place away; remove its file at the end."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    while True:
        with _refusals(out):
            fd = open_file(path, flags)
            if try_lock(fd):
                if is_named(fd, path):
                    break
                os.close(fd)  # another fit has just removed it
                continue
        os.close(fd)
        raise ValueError(
            "out must not be in use; another fit writes to the same folder. Nothing was charged."
        )
    try:
        yield
    finally:
        if not WINDOWS:
            path.unlink(missing_ok=True)
        unlock(fd)
        os.close(fd)
        if WINDOWS:  # which removes no file that is open, here or in another fit
            with suppress(OSError):
                path.unlink()


def _publish(target: Path, beside: Path, force: bool, *texts: str) -> None:
    """Write the files, then put the folder in its place."""
    for name, text in zip(FILES, texts, strict=True):
        fill(beside / name, text.encode())
    with suppress(FileNotFoundError):
        beside.chmod(stat.S_IMODE(target.stat().st_mode))
    sync_folder(beside)
    if not target.exists():
        os.rename(beside, target)
    elif not force or not any(target.iterdir()):
        target.rmdir()  # fails unless it is empty
        os.rename(beside, target)
    elif not exchange(beside, target):
        old = _beside(target, "-old")
        os.rename(target, old)
        try:
            os.rename(beside, target)
        except BaseException:
            os.rename(old, target)
            raise
        _remove(old)
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
    if os.path.ismount(target) or target.stat().st_dev != target.parent.stat().st_dev:
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
    ours = is_owned(parent) or is_owned(target.stat()) or os.geteuid() == 0
    return bool(parent.st_mode & stat.S_ISVTX) and not ours


def _recover(target: Path, beside: Path) -> None:
    """Finish for a fit that was killed between its two renames, or after them."""
    old = _beside(target, "-old")
    if old.is_dir():
        if not target.exists():
            os.rename(beside if beside.is_dir() else old, target)
        _remove(old)
        _refuse_strangers(target, old)


def _make(beside: Path) -> None:
    """Make the folder beside, or take over what a killed fit of this user left of it."""
    with suppress(FileExistsError):
        beside.mkdir()
    found = os.lstat(beside)
    if not stat.S_ISDIR(found.st_mode) or not is_owned(found):
        raise PermissionError(errno.EACCES, f"{beside.name} beside it belongs to another user")


def _reserve(target: Path, beside: Path, room: int) -> None:
    """Allocate room for the files."""
    _clear(beside)
    _refuse_strangers(target, beside)
    for name in FILES:
        reserve(beside / name, room)


def _refuse_strangers(target: Path, folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(
            f"The folder {str(folder)!r} holds files that 'fastmix fit' did not write. Move them; "
            f"fits to {target.name!r} use this folder."
        )


def _clear(folder: Path) -> None:
    """Remove what a fit may have left, and nothing else."""
    for name in FILES:
        (folder / name).unlink(missing_ok=True)


def _remove(folder: Path) -> None:
    """Remove a folder of a fit, unless it holds other files."""
    with suppress(OSError):
        _clear(folder)
        folder.rmdir()
