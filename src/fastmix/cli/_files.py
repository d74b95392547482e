"""Files that commands write: whole or not at all, and never over a file unless asked to."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from fastmix._system import sync_folder


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
def writing(out: Path, *, force: bool = False, room: int = 0) -> Iterator[Path]:
    """Give the name of a new file beside ``out``, which replaces ``out`` in one step at the end.

    With ``room``, the new file exists and has this many bytes allocated, for `fill`.
    """
    real = Path(os.path.realpath(out))
    ending = "".join(real.suffixes[-2 if real.suffix.lower() == ".gz" else -1 :]).lower()
    temporary = real.with_name(f".fastmix-{uuid4().hex[:16]}{ending}")
    try:
        if room:
            reserve(temporary, room)
        yield temporary
        with temporary.open("r+b") as file:  # Windows syncs what it may write
            os.fsync(file.fileno())
        if not force and os.path.lexists(real):  # it appeared meanwhile
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(real))
        os.replace(temporary, real)
        sync_folder(real.parent)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def reserve(path: Path, room: int) -> None:
    """Make a file and allocate room for its content, so that a full disk is an error now."""
    with path.open("xb") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, room)
        else:
            file.write(bytes(room))


def fill(path: Path, content: bytes) -> None:
    """Write content into a reserved file, and wait until it is on the disk."""
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()
        os.fsync(file.fileno())
