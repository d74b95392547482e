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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from fastmix.cli._files import exchange, sync_folder

FILES = ("model.json", "certificate.json", "report.html")

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_PROBES = ("probe-a", "probe-b")


class ModelFolder:
    """A folder that waits for the files of a fit, and may replace a model if forced to."""

    def __init__(self, target: Path, force: bool) -> None:
        name = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]
        self.target = target
        self._force = force
        self._beside = target.with_name(f".fastmix-{name}")
        self._held: list[int] = []  # locked folders: the one beside, then the one it replaces

    def reserve(self, room: int) -> None:
        """Take the folder beside, and allocate room in it for the files."""
        self._held.append(_claim(self._beside))
        _reserve(self.target, self._beside, room)

    def publish(self, texts: Mapping[str, str]) -> None:
        """Write the files, then put the folder in its place in one step."""
        for name in FILES:
            _fill(self._beside / name, texts[name].encode())
        with suppress(FileNotFoundError):
            self._beside.chmod(stat.S_IMODE(self.target.stat().st_mode))
        sync_folder(self._beside)
        if not self.target.exists() or not self._force:
            os.rename(self._beside, self.target)  # to a free name, or over an empty folder
        else:
            # The old folder is locked first: under its new name it is still this fit's.
            self._held.append(os.open(self.target, _FOLDER))
            fcntl.flock(self._held[-1], fcntl.LOCK_EX)
            if not exchange(self._beside, self.target):
                raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        sync_folder(self.target.parent)

    def close(self) -> None:
        """Remove the folder beside, if it is this fit's, and release the locks."""
        with suppress(OSError):
            beside = os.lstat(self._beside)
            if any(os.path.samestat(os.fstat(fd), beside) for fd in self._held):
                _clear(self._beside)
                self._beside.rmdir()
        while self._held:
            os.close(self._held.pop())


@contextmanager
def model_folder(
    out: Path, *, force: bool, room: int, inputs: Iterable[Path | None] = ()
) -> Iterator[ModelFolder]:
    """Make sure that a fit can be written to a folder, and give what writes it.

    The folder is new, or empty, or holds a model that is to be replaced, and none of the inputs; no
    file of the fit exceeds ``room`` bytes.
    """
    target = Path(os.path.realpath(out))
    folder = ModelFolder(target, force)
    made: list[Path] = []
    try:
        try:
            _check_target(out, target, force, inputs)
            made = _make_parents(target.parent)
            folder.reserve(room)
        except OSError as error:
            raise ValueError(
                f"out must be a folder that can be written; got out={str(out)!r}: "
                f"{error.strerror or type(error).__name__}. Nothing was charged."
            ) from None
        yield folder
    finally:
        folder.close()
        for parent in made:
            with suppress(OSError):
                parent.rmdir()  # fails unless it is empty


def _check_target(out: Path, target: Path, force: bool, inputs: Iterable[Path | None]) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        os.lstat(target / max(FILES, key=len))  # also tells a path that is too long
    here = Path.cwd()
    if target == here or target in here.parents:
        raise ValueError(
            f"out must not be the current folder; got out={str(out)!r}. Choose a folder in it."
        )
    if not target.exists():
        return
    if not target.is_dir():
        raise ValueError(f"out must be a folder; got out={str(out)!r}, which is a file.")
    if target.is_mount() or target.stat().st_dev != target.parent.stat().st_dev:
        raise ValueError(
            f"out must not be a mount point; got out={str(out)!r}. Choose a folder in it."
        )
    for path in inputs:
        if path is not None and Path(os.path.realpath(path)).is_relative_to(target):
            raise ValueError(
                f"out must not hold a file that the fit uses; got out={str(out)!r}, which holds "
                f"{str(path)!r}."
            )
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


def _make_parents(folder: Path) -> list[Path]:
    """Make the folders that are missing, and return them, the innermost first."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    made: list[Path] = []
    try:
        for path in reversed(missing):
            path.mkdir()
            made.insert(0, path)
    except BaseException:
        for path in made:
            path.rmdir()
        raise
    return made


def _claim(beside: Path) -> int:
    """Make the folder beside, or take over what a killed fit left of it; hold its lock."""
    while True:
        with suppress(FileExistsError):
            beside.mkdir()
        try:
            fd = os.open(beside, _FOLDER)
        except FileNotFoundError:
            continue  # another fit has just put it in its place
        try:
            held = os.fstat(fd)
            if held.st_uid != os.geteuid():
                raise PermissionError(
                    errno.EACCES, f"{beside.name} beside it belongs to another user"
                )
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(held, os.lstat(beside)):
                    return fd
        except BlockingIOError:
            os.close(fd)
            raise ValueError(
                "out must not be in use; another fit writes to the same folder. Nothing was "
                "charged."
            ) from None
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


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
        fd = os.open(beside / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(fd, 0, room)
            else:
                _write(fd, bytes(room))
        finally:
            os.close(fd)


def _fill(path: Path, content: bytes) -> None:
    """Write over room that was allocated, and wait until it is on the disk."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        _write(fd, content)
        os.ftruncate(fd, len(content))
        os.fsync(fd)
    finally:
        os.close(fd)


def _write(fd: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _clear(beside: Path) -> None:
    """Remove what a fit may have left, and nothing else."""
    for name in FILES:
        (beside / name).unlink(missing_ok=True)
    for name in _PROBES:
        with suppress(OSError):
            (beside / name).rmdir()
