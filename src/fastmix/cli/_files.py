"""Files that commands write: whole or not at all, and never over a file unless asked to."""

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

#: Flags of ``renameat2`` (Linux) and ``renamex_np`` (macOS): fail if the name exists; exchange.
_NO_REPLACE, _EXCHANGE = (4, 2) if sys.platform == "darwin" else (1, 2)

#: What a system or file system answers that has no such flags.
_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTTY)

_AT_FDCWD = -100


def check_output(out: Path, *, force: bool = False, inputs: Iterable[Path] = ()) -> None:
    """Refuse a file that cannot or must not be written, before any work is done."""
    for path in inputs:
        with suppress(OSError):  # one of them is not there
            if out.samefile(path):
                raise ValueError(
                    f"out must not be a file that the command reads; got out={str(out)!r}. Choose "
                    f"another file."
                )
    real = Path(os.path.realpath(out))
    why: str | None = None
    try:
        if not stat.S_ISREG(os.stat(real).st_mode):
            why = "it is not a file"
        elif not force:
            raise ValueError(
                f"The file {str(out)!r} already exists. Choose another name, or pass --force to "
                f"replace it."
            )
    except FileNotFoundError:
        why = None if real.parent.is_dir() else "its folder does not exist"
    except OSError as error:
        why = error.strerror
    if why is None and not os.access(real.parent, os.W_OK | os.X_OK):
        why = "its folder is not writable"
    if why is not None:
        raise ValueError(f"out must be a file that can be written; got out={str(out)!r}: {why}.")


@contextmanager
def writing(out: Path, *, force: bool = False) -> Iterator[Path]:
    """Give the name of a new file beside ``out`` that takes its place in one step at the end."""
    real = Path(os.path.realpath(out))
    ending = "".join(real.suffixes[-2 if real.suffix.lower() == ".gz" else -1 :]).lower()
    temporary = real.with_name(f".fastmix-{uuid4().hex[:16]}{ending}")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        if force:
            os.replace(temporary, real)
        else:
            rename_new(temporary, real)
        sync_folder(real.parent)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def rename_new(old: Path, new: Path) -> None:
    """Rename a file or folder to a name that must be free."""
    if not _rename(old, new, _NO_REPLACE):
        # No such call here: a file that appears between these two lines would be replaced.
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(new))
        os.rename(old, new)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; return False where the system cannot."""
    return _rename(one, other, _EXCHANGE)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _rename(old: Path, new: Path, flag: int) -> bool:
    library = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(old), os.fsencode(new)
    try:
        if sys.platform == "darwin":
            failed = library.renamex_np(first, second, flag)
        else:
            failed = library.renameat2(_AT_FDCWD, first, _AT_FDCWD, second, flag)
    except AttributeError:
        return False
    if not failed:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(new))
