"""The ledger file: what is on the disk after every way in which writing it can end."""

import errno
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from fastmix.accounting import _ledger
from fastmix.accounting._ledger import Ledger

CHARGE = {"id": "a", "label": "first\nline \u00e9", "spent": {"sigma": float("inf")}}


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.create(1.0, 1e-6)
    return ledger


def add(ledger, *charges):
    for charge in charges:
        with ledger.open() as opened:
            opened.append(charge)


def read(ledger):
    with ledger.open() as opened:
        return opened.charges


def damage(ledger, edit):
    ledger.path.write_bytes(edit(ledger.path.read_bytes()))


def test_header_and_charges_are_lines_of_json(ledger):
    add(ledger, CHARGE, {**CHARGE, "id": "b"})
    header, *charges = map(json.loads, ledger.path.read_text().splitlines())
    assert header["version"] == 1
    assert (header["epsilon"], header["delta"]) == (1.0, 1e-6)
    assert charges == [CHARGE, {**CHARGE, "id": "b"}] == read(ledger)


def test_numpy_scalars_are_written_as_numbers(ledger):
    add(ledger, {"rows": np.int64(3), "sigma": np.float32(0.5)})
    assert read(ledger) == [{"rows": 3, "sigma": 0.5}]


def test_something_that_is_not_a_number_is_refused(ledger):
    with pytest.raises(TypeError, match="spent must hold numbers and strings"):
        add(ledger, {"rows": object()})
    assert read(ledger) == []


def test_create_leaves_an_existing_file(ledger):
    add(ledger, CHARGE)
    ledger.create(2.0, 1e-3)
    assert read(ledger) == [CHARGE]


def test_mode_of_the_file(tmp_path):
    private = Ledger(tmp_path / "private")
    private.create(1.0, 1e-6, mode=0o600)
    assert stat.S_IMODE(private.path.stat().st_mode) == 0o600


def test_a_link_shares_the_lock_of_its_target(ledger, tmp_path):
    (tmp_path / "link").symlink_to(ledger.path)
    assert Ledger(tmp_path / "link").path == ledger.path


def test_the_lock_is_held_while_open(ledger, monkeypatch):
    monkeypatch.setattr(_ledger, "LOCK_TIMEOUT", 0.05)
    with ThreadPoolExecutor(1) as pool:
        with ledger.open(), pytest.raises(TimeoutError, match=r"ledger\.jsonl\.lock"):
            pool.submit(read, Ledger(ledger.path)).result()
        assert pool.submit(read, Ledger(ledger.path)).result() == []


# A torn last line, and damage elsewhere


@pytest.mark.parametrize("missing", [1, 2, 10, 40])
def test_unfinished_last_line_is_cut(ledger, missing):
    add(ledger, CHARGE)
    whole = ledger.path.read_bytes()
    add(ledger, CHARGE)
    damage(ledger, lambda content: content[:-missing])
    assert read(ledger) == [CHARGE]
    assert ledger.path.read_bytes() == whole
    add(ledger, {"id": "next"})
    assert read(ledger) == [CHARGE, {"id": "next"}]


@pytest.mark.parametrize("tail", [b'{"id": \n', b"\0\0\0\0\n", b"\0\0\0", b"\xff\xfe\n", b"\n"])
def test_last_line_that_is_not_json_is_cut(ledger, tail):
    add(ledger, CHARGE)
    whole = ledger.path.read_bytes()
    damage(ledger, lambda content: content + tail)
    assert read(ledger) == [CHARGE]
    assert ledger.path.read_bytes() == whole


def test_every_way_to_tear_the_first_charge(ledger):
    header = ledger.path.read_bytes()
    add(ledger, CHARGE)
    whole = ledger.path.read_bytes()
    for end in range(len(header), len(whole)):
        ledger.path.write_bytes(whole[:end])
        assert read(ledger) == []
        assert ledger.path.read_bytes() == header


@pytest.mark.parametrize("line", [b'{"id": ', b"", b"[1, 2]", b"\xff"])
def test_damage_before_the_end_is_an_error_that_changes_nothing(ledger, line):
    add(ledger, CHARGE, CHARGE, CHARGE)
    lines = ledger.path.read_bytes().split(b"\n")
    lines[2] = line
    ledger.path.write_bytes(content := b"\n".join(lines))
    with pytest.raises(ValueError, match=r"ledger\.jsonl' with line 3 damaged"):
        read(ledger)
    with pytest.raises(ValueError, match="line 3 damaged"):
        add(ledger, CHARGE)
    assert ledger.path.read_bytes() == content


def test_json_that_is_no_charge_at_the_end_is_not_taken_for_torn(ledger):
    damage(ledger, lambda content: content + b"12\n")
    with pytest.raises(ValueError, match="line 2 damaged"):
        read(ledger)


@pytest.mark.parametrize(
    "content", [b"", b"x,y\n1,2\n3,4", b'{"format": "fastmix-led', b'{"a": 1}\n{"b"', b"[1]\n"]
)
def test_a_file_that_is_no_ledger_is_left_alone(ledger, content):
    ledger.path.write_bytes(content)
    with pytest.raises(ValueError, match=r"be the ledger of a budget; got ledger='.*jsonl'"):
        read(ledger)
    assert ledger.path.read_bytes() == content


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [(b'"version": 1', b'"version": 2', "version 1"), (b'"delta"', b'"beta"', "line 1 damaged")],
)
def test_header_of_another_kind(ledger, old, new, message):
    damage(ledger, lambda content: content.replace(old, new))
    with pytest.raises(ValueError, match=message):
        read(ledger)


# Missing files and directories


def test_missing_file_is_an_error_and_leaves_nothing_behind(tmp_path):
    with pytest.raises(FileNotFoundError, match="ledger must exist; got ledger="):
        read(Ledger(tmp_path / "absent"))
    assert list(tmp_path.iterdir()) == []


def test_file_that_goes_while_waiting_for_the_lock(ledger, monkeypatch):
    monkeypatch.setattr(Path, "exists", lambda path: True)
    ledger.path.unlink()
    with pytest.raises(FileNotFoundError, match="ledger must exist"):
        read(ledger)
    assert not os.path.exists(ledger.path)


def test_missing_directory(ledger, tmp_path):
    with pytest.raises(ValueError, match="ledger must lie in a directory that exists"):
        Ledger(tmp_path / "absent" / "ledger").create(1.0, 1e-6)
    with pytest.raises(ValueError, match="path must lie in a directory that exists"):
        ledger.copy(tmp_path / "absent" / "ledger")
    assert not (tmp_path / "absent").exists()


# Full disks and other failures


def full(*args):
    raise OSError(errno.ENOSPC, "No space left on device")


def half_full(write=os.write):
    """Return a write that stores half of what it is given and fails the next time."""
    calls = []

    def partial(fd, data):
        if calls:
            full()
        calls.append(fd)
        return write(fd, data[: len(data) // 2])

    return partial


@pytest.mark.parametrize("name", ["fsync", "write", "half"])
def test_full_disk_refuses_the_charge_and_keeps_the_rest(ledger, monkeypatch, name):
    add(ledger, CHARGE)
    before = ledger.path.read_bytes()
    with monkeypatch.context() as patch:
        if name == "half":
            patch.setattr(os, "write", half_full())
        else:
            patch.setattr(os, name, full)
        with pytest.raises(OSError, match="No space left") as caught:
            add(ledger, CHARGE)
    assert "was not charged and nothing was drawn" in caught.value.__notes__[0]
    assert ledger.path.read_bytes() == before
    add(ledger, {"id": "b"})
    assert read(ledger) == [CHARGE, {"id": "b"}]


def test_full_disk_that_cannot_be_rolled_back_leaves_a_torn_line(ledger, monkeypatch):
    add(ledger, CHARGE)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half_full())
        patch.setattr(os, "ftruncate", full)
        with pytest.raises(OSError, match="No space left"):
            add(ledger, CHARGE)
    assert not ledger.path.read_bytes().endswith(b"\n")
    assert read(ledger) == [CHARGE]


def test_short_writes_are_completed(ledger, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))
    add(ledger, CHARGE)
    assert read(ledger) == [CHARGE]


@pytest.mark.parametrize("name", ["fsync", "write", "replace"])
def test_failed_creation_leaves_no_ledger(tmp_path, monkeypatch, name):
    monkeypatch.setattr(os, name, full)
    with pytest.raises(OSError, match="No space left"):
        Ledger(tmp_path / "ledger").create(1.0, 1e-6)
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.lock"]


def test_charge_and_directory_reach_the_disk_before_the_lock_goes(ledger, monkeypatch, tmp_path):
    steps = []
    fsync, release = os.fsync, _ledger.FileLock.release

    def spy(fd):
        steps.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))
        fsync(fd)

    def unlock(self, *args, **kwargs):
        steps.append("released")
        release(self, *args, **kwargs)

    monkeypatch.setattr(os, "fsync", spy)
    monkeypatch.setattr(_ledger.FileLock, "release", unlock)
    add(ledger, CHARGE)
    assert steps[:2] == ["ledger.jsonl", "released"]
    steps.clear()
    Ledger(tmp_path / "new").create(1.0, 1e-6)
    assert steps[0].startswith(".new.")
    assert steps[1:3] == [tmp_path.name, "released"]


# Copies


def test_copy_and_update_of_a_copy(ledger, tmp_path):
    copy = Ledger(tmp_path / "copy")
    for _ in range(2):
        add(ledger, CHARGE)
        ledger.copy(copy.path)
        assert copy.path.read_bytes() == ledger.path.read_bytes()
    add(copy, {"id": "b"})
    assert read(ledger) == [CHARGE, CHARGE]


def test_copy_onto_itself_changes_nothing(ledger):
    add(ledger, CHARGE)
    inode = ledger.path.stat().st_ino
    ledger.copy(ledger.path)
    assert ledger.path.stat().st_ino == inode


def test_copy_never_drops_the_charges_of_another_ledger(ledger, tmp_path):
    copy = Ledger(tmp_path / "copy")
    ledger.copy(copy.path)
    add(copy, CHARGE)
    with pytest.raises(ValueError, match="path must be new or hold an earlier copy"):
        ledger.copy(copy.path)
    assert read(copy) == [CHARGE]


@pytest.mark.parametrize("name", ["fsync", "write", "replace"])
def test_failed_copy_leaves_the_previous_one(ledger, tmp_path, monkeypatch, name):
    copy = tmp_path / "copy"
    ledger.copy(copy)
    before = copy.read_bytes()
    add(ledger, CHARGE)
    files = sorted(tmp_path.iterdir())
    monkeypatch.setattr(os, name, full)
    with pytest.raises(OSError, match="No space left"):
        ledger.copy(copy)
    assert copy.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == files
