"""The output folder of a fit: written beside its place, then renamed.

1. Before a charge, a fit makes the folder ``.fastmix-...`` beside the output folder and reserves
   the room that its three files need. A place that cannot be written fails here.
2. After the fit, the files are written there and are on the disk.
3. The old output folder, if there is one, is renamed to ``.fastmix-...-old``, the new one takes its
   place, and the old files are removed.

A process that is killed leaves the old model or the new one, whole, and at most these hidden
folders and a lock. Between the two renames of step 3 the output folder is absent for a moment; a
process that is killed there leaves both models under their hidden names. The next fit to the same
place puts the new one in its place and removes the rest. Only files with the three names below are
ever removed.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fastmix._system import WINDOWS, is_named, is_owned, open_file, sync_folder, try_lock, unlock
from fastmix.cli._files import fill, reserve
from fastmix.errors import DataError
from fastmix.show.html import templates

FILES = ("model.json", "certificate.json", "report.html")

#: Bytes of a file of a fit that do not depend on the number of columns, with a wide margin.
_ROOM = 1 << 18
#: Bytes that a number takes in a file, with its indent.
_NUMBER = 40


@contextmanager
def model_folder(
    out: Path,
    *,
    force: bool,
    words: Iterable[str] = (),
    inputs: Iterable[Path | None] = (),
    ledger: Path | None = None,
) -> Iterator[Callable[..., None]]:
    """Make sure that a fit can be written to a folder, and give a function that writes its texts.

    The folder is new, or empty, or contains a model to replace, and none of the ``inputs``. The
    public ``words`` of a fit, such as the names of its columns, set how much room its files need.
    """
    templates()  # a report that cannot be written fails before a charge
    target = Path(os.path.realpath(out))
    name = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]
    new, old, lock = (target.with_name(f".fastmix-{name}{end}") for end in ("", "-old", "-lock"))
    words = list(words)
    room = _ROOM + sum(1024 + 48 * len(word.encode(errors="replace")) for word in words)
    room += _NUMBER * 3 * (len(words) + 1) ** 2 // 2  # the symmetric matrices of intervals
    inputs, made = [*inputs, ledger], list[Path]()

    def publish(*texts: str) -> None:
        try:
            _publish(target, new, old, force, texts)
        except OSError as error:
            charged = "" if ledger is None else " The ledger was charged for this fit."
            raise DataError(
                f"The model could not be written to {out.name}: {error.strerror}. What was there "
                f"before is unchanged.{charged}"
            ) from None

    try:
        with _refusals(out):
            _check_target(out, target, force, inputs)
            for parent in reversed([path for path in target.parents if not path.exists()]):
                parent.mkdir()
                made.append(parent)
        with _claimed(out, lock):
            try:
                with _refusals(out):
                    _recover(target, new, old)
                    _check_target(out, target, force, inputs)
                    _reserve(target, new, room)
                yield publish
            finally:
                _remove(new)
    finally:
        for parent in reversed(made):
            with suppress(OSError):
                parent.rmdir()  # fails unless it is empty


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
    with _refusals(out):
        fd = open_file(path, flags)
    # A file that lost its name was just removed by the fit that held it.
    if not try_lock(fd) or not is_named(fd, path):
        os.close(fd)
        raise ValueError(
            "out must not be in use; another fit writes to the same folder. Nothing was charged."
        )
    try:
        yield
    finally:
        if not WINDOWS:  # which removes no file that is open
            path.unlink(missing_ok=True)
        unlock(fd)
        os.close(fd)
        if WINDOWS:
            with suppress(OSError):
                path.unlink()


def _check_target(out: Path, target: Path, force: bool, inputs: Iterable[Path | None]) -> None:
    """Refuse a folder that cannot or must not be replaced."""
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
    # In a folder with the sticky bit, such as /tmp, only owners rename.
    parent = target.parent.stat()
    owned = is_owned(parent) or is_owned(target.stat()) or os.geteuid() == 0
    if not os.access(target, os.W_OK | os.X_OK) or (parent.st_mode & stat.S_ISVTX and not owned):
        raise PermissionError(errno.EACCES, "it cannot be replaced by this user", str(out))


def _recover(target: Path, new: Path, old: Path) -> None:
    """Finish for a fit that was killed between its two renames, or after them."""
    if old.is_dir():
        if not target.exists():
            os.rename(new if new.is_dir() else old, target)
        _remove(old)
        _refuse_strangers(target, old)


def _reserve(target: Path, new: Path, room: int) -> None:
    """Make the new folder, or take over what a killed fit of this user left, and allocate room."""
    with suppress(FileExistsError):
        new.mkdir()
    found = os.lstat(new)
    if not stat.S_ISDIR(found.st_mode) or not is_owned(found):
        raise PermissionError(errno.EACCES, f"{new.name} beside it belongs to another user")
    _clear(new)
    _refuse_strangers(target, new)
    for name in FILES:
        reserve(new / name, room)


def _publish(target: Path, new: Path, old: Path, force: bool, texts: Iterable[str]) -> None:
    """Write the files, then put the folder in its place."""
    for name, text in zip(FILES, texts, strict=True):
        fill(new / name, text.encode())
    with suppress(FileNotFoundError):
        new.chmod(stat.S_IMODE(target.stat().st_mode))
    sync_folder(new)
    if force and target.exists() and any(target.iterdir()):
        os.rename(target, old)
    elif target.exists():
        target.rmdir()  # fails unless it is empty
    try:
        os.rename(new, target)
    except BaseException:
        if old.exists():
            os.rename(old, target)
        raise
    sync_folder(target.parent)
    _remove(old)


def _refuse_strangers(target: Path, folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(
            f"The folder {str(folder)!r} holds files that 'fastmix fit' did not write. Move them; "
            f"fits to {target.name!r} use this folder."
        )


def _clear(folder: Path) -> None:
    """Remove the files of a fit, and nothing else."""
    for name in FILES:
        (folder / name).unlink(missing_ok=True)


def _remove(folder: Path) -> None:
    """Remove a folder of a fit, unless it contains other files."""
    with suppress(OSError):
        _clear(folder)
        folder.rmdir()
