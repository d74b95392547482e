"""The output folder of a fit: written beside its place, then renamed.

1. Before a charge, a fit makes a hidden folder ``.fastmix-...`` beside the output folder and
   reserves the room that its files need. A place that cannot be written fails here.
2. After the fit, the files are written there and are on the disk.
3. The old output folder, if there is one, is renamed to ``.fastmix-...-old``, the new one takes its
   place, and the old files are removed.

A process that is killed leaves the old model or the new one, whole, and perhaps hidden folders,
which may be removed. If it is killed between the two renames of step 3, both models are whole under
their hidden names, and the output folder is absent. If another fit has taken the place meanwhile,
the later one stays beside it under a name of its own. Only files with the names below are ever
removed.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from fastmix._system import is_owned, sync_folder
from fastmix.certificate.signing import SIGNATURE, SIGNED, SUMS, Signer
from fastmix.cli._files import fill, reserve
from fastmix.errors import DataError
from fastmix.show.html import templates

#: Files of a fit, and those of its signature if it has one.
FILES = (*SIGNED, SUMS, SIGNATURE)

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
    signer: Signer | None = None,
) -> Iterator[Callable[..., None]]:
    """Make sure that a fit can be written to a folder, and give a function that writes its texts.

    The folder is new, or empty, or contains a model to replace, and none of the ``inputs``. The
    public ``words`` of a fit, such as the names of its columns, set how much room its files need.
    """
    templates()  # a report that cannot be written fails before a charge
    target = Path(os.path.realpath(out))
    words = list(words)
    room = _ROOM + sum(1024 + 48 * len(word.encode(errors="replace")) for word in words)
    room += _NUMBER * 3 * (len(words) + 1) ** 2 // 2  # the symmetric matrices of intervals
    made = list[Path]()

    def publish(*texts: str) -> None:
        kept = ""
        try:
            contents = {name: text.encode() for name, text in zip(SIGNED, texts, strict=True)}
            _write(new, target, contents | ({} if signer is None else signer.files(contents)))
            kept = f"{target.name}-{new.name[-8:]}"
            _put(new, target, force)
        except OSError as error:
            said = "" if ledger is None else " The ledger was charged for this fit."
            with suppress(OSError):
                if kept:  # a paid fit is not thrown away because another one took its place
                    os.rename(new, new.with_name(kept))
                    said = f" The fit is in the folder {kept!r} beside it.{said}"
            raise DataError(
                f"The model could not be written to {out.name}: {error.strerror}. What was there "
                f"before is unchanged.{said}"
            ) from None

    try:
        with _refusals(out):
            _check_target(out, target, force, [*inputs, ledger])
            for parent in reversed([path for path in target.parents if not path.exists()]):
                parent.mkdir()
                made.append(parent)
            new = target.with_name(f".fastmix-{uuid4().hex[:16]}")
            new.mkdir()
        try:
            with _refusals(out):
                for name in SIGNED if signer is None else FILES:
                    reserve(new / name, room)
            yield publish
        finally:
            _remove(new)
    finally:
        for parent in reversed(made):
            with suppress(OSError):
                parent.rmdir()  # fails unless it is empty


@contextmanager
def _refusals(out: Path) -> Iterator[None]:
    """Turn errors of the operating system into a refusal that names the output folder."""
    try:
        yield
    except OSError as error:
        raise ValueError(
            f"out must be a folder that can be written; got out={str(out)!r}: "
            f"{error.strerror or type(error).__name__}. Nothing was charged."
        ) from None


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


def _write(new: Path, target: Path, contents: Mapping[str, bytes]) -> None:
    """Write the files, with the permissions of the folder that they replace."""
    for name, content in contents.items():
        fill(new / name, content)
    with suppress(FileNotFoundError):
        new.chmod(stat.S_IMODE(target.stat().st_mode))
    sync_folder(new)


def _put(new: Path, target: Path, force: bool) -> None:
    """Rename the new folder to the target; remove the old one after that."""
    old = new.with_name(f"{new.name}-old")
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


def _remove(folder: Path) -> None:
    """Remove the files of a fit, and their folder unless it contains other files."""
    with suppress(OSError):
        for name in FILES:
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()
