"""The ledger file: what is on the disk after every way in which writing it can end."""

import errno
import fcntl
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fastmix.accounting import ledger as ledgers
from fastmix.accounting.ledger import Ledger

RULE = {"rule": "basic"}
CHARGE = {"id": "a", "label": "first\nline \u00e9", "spent": {"sigma": float("inf")}}


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.create(1.0, 1e-6, RULE)
    return ledger


def add(ledger, *charges):
    for charge in charges:
        with ledger.open(write=True) as opened:
            opened.append(charge)


def read(ledger):
    with ledger.open() as opened:
        return opened.charges


def damage(ledger, edit):
    ledger.path.write_bytes(edit(ledger.path.read_bytes()))


def test_count_budget_and_charges_are_lines_of_json(ledger):
    add(ledger, CHARGE, {**CHARGE, "id": "b"})
    count, budget, *charges = map(json.loads, ledger.path.read_text().splitlines())
    assert (count["version"], count["charges"]) == (2, 2)
    assert (budget["epsilon"], budget["delta"], budget["rule"]) == (1.0, 1e-6, RULE)
    digests = [line.pop("digest") for line in (budget, *charges)]
    assert len(set(digests)) == 3
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
    ledger.create(2.0, 1e-3, RULE)
    assert read(ledger) == [CHARGE]


def test_mode_of_the_file(tmp_path):
    private = Ledger(tmp_path / "private")
    private.create(1.0, 1e-6, RULE, mode=0o600)
    assert stat.S_IMODE(private.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_every_name_of_a_file_shares_its_lock(ledger, tmp_path, monkeypatch, link):
    link(ledger.path, tmp_path / "other")
    monkeypatch.setattr(ledgers, "LOCK_TIMEOUT", 0.05)
    with (
        ledger.open(write=True),
        pytest.raises(TimeoutError, match="Another process has been using"),
    ):
        add(Ledger(tmp_path / "other"), CHARGE)


def test_there_is_no_lock_file_to_delete(ledger, tmp_path):
    with ledger.open(write=True) as opened:
        opened.append(CHARGE)
        assert [path.name for path in tmp_path.iterdir()] == ["ledger.jsonl"]


def test_the_lock_is_held_while_open(ledger, monkeypatch):
    monkeypatch.setattr(ledgers, "LOCK_TIMEOUT", 0.05)
    with ThreadPoolExecutor(1) as pool:
        with (
            ledger.open(write=True),
            pytest.raises(TimeoutError, match=r"using the ledger .*ledger\.jsonl"),
        ):
            pool.submit(read, Ledger(ledger.path)).result()
        assert pool.submit(read, Ledger(ledger.path)).result() == []


def test_readers_share_the_lock_and_writers_wait(ledger, monkeypatch):
    monkeypatch.setattr(ledgers, "LOCK_TIMEOUT", 0.05)
    with ledger.open():
        assert read(ledger) == []
        with pytest.raises(TimeoutError):
            add(ledger, CHARGE)


def test_a_file_that_was_exchanged_while_waiting_is_not_charged(ledger, tmp_path, monkeypatch):
    add(ledger, CHARGE)
    ledger.copy(tmp_path / "copy")
    lock = ledgers.try_lock

    def exchange(fd, shared):
        if (tmp_path / "copy").exists():
            os.replace(tmp_path / "copy", ledger.path)
        return lock(fd, shared=shared)

    monkeypatch.setattr(ledgers, "try_lock", exchange)
    add(ledger, {"id": "b"})
    assert read(ledger) == [CHARGE, {"id": "b"}]


# A charge that was never completed, and damage


def lines_of(ledger):
    return ledger.path.read_bytes().splitlines(keepends=True)


def uncount(content, charges):
    """Return a ledger whose count says that fewer charges were completed."""
    return ledgers._count(charges) + content[ledgers._COUNT_LENGTH :]


def refused(ledger, message):
    """Check that a ledger is refused by reading and charging, and left as it is."""
    before = ledger.path.read_bytes()
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            read(ledger)
        with pytest.raises(ValueError, match=message):
            add(ledger, CHARGE)
    assert ledger.path.read_bytes() == before


@pytest.mark.parametrize("missing", [2, 10, 40, 150])
def test_a_line_that_was_never_completed_gives_way_to_the_next(ledger, missing):
    add(ledger, CHARGE, CHARGE)
    damage(ledger, lambda content: uncount(content, 1)[:-missing])
    torn = ledger.path.read_bytes()
    assert read(ledger) == [CHARGE]
    assert ledger.path.read_bytes() == torn  # reading repairs nothing
    add(ledger, {"id": "next"})
    assert read(ledger) == [CHARGE, {"id": "next"}]


def test_every_way_to_tear_the_first_charge(ledger):
    header = ledger.path.read_bytes()
    add(ledger, CHARGE)
    whole = ledger.path.read_bytes()
    for end in range(len(header), len(whole) - 1):
        ledger.path.write_bytes(header + whole[len(header) : end])
        assert read(ledger) == []
        ledger.path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match="must hold the 1 charges that its first line counts"):
            read(ledger)


def test_a_completed_line_beyond_the_count_is_a_charge(ledger):
    add(ledger, CHARGE, CHARGE)
    damage(ledger, lambda content: uncount(content, 1))
    assert read(ledger) == [CHARGE, CHARGE]
    add(ledger, {"id": "next"})
    assert read(ledger) == [CHARGE, CHARGE, {"id": "next"}]


def test_kills_between_line_and_count_in_a_row(ledger, monkeypatch):
    """The second one must not make the ledger look as if charges had been added."""

    class Killed(BaseException):
        pass

    def killed(self, charges):
        if charges > self._counted and charges > expected:
            raise Killed
        write(self, charges)

    write = ledgers.OpenLedger._write_count
    monkeypatch.setattr(ledgers.OpenLedger, "_write_count", killed)
    monkeypatch.setattr(os, "ftruncate", lambda fd, length: None)  # nor does a rollback happen
    for expected in range(3):
        with pytest.raises(Killed):
            add(ledger, {"id": str(expected)})
        assert read(ledger) == [{"id": str(at)} for at in range(expected + 1)]


@pytest.mark.parametrize("charges", [1, 3])
def test_a_lost_line_end_loses_no_charge(ledger, charges):
    add(ledger, *[CHARGE] * charges)
    damage(ledger, lambda content: content[:-1])
    assert read(ledger) == [CHARGE] * charges
    add(ledger, {"id": "next"})
    assert read(ledger) == [*[CHARGE] * charges, {"id": "next"}]


def test_no_single_byte_can_be_changed_unseen(ledger):
    """Any change is refused or leaves every charge in place."""
    add(ledger, CHARGE, {**CHARGE, "id": "b"}, {**CHARGE, "id": "c"})
    whole, charges = ledger.path.read_bytes(), read(ledger)
    for at in range(len(whole)):
        for value in (whole[at] ^ 1, 0, ord("\n"), ord(" ")):
            if value == whole[at]:
                continue
            content = whole[:at] + bytes([value]) + whole[at + 1 :]
            ledger.path.write_bytes(content)
            try:
                assert read(ledger) == charges, (at, value)
            except ValueError:
                assert ledger.path.read_bytes() == content


@pytest.mark.parametrize("end", range(1, 400, 7))
def test_no_end_of_the_file_can_be_lost_unseen(ledger, end):
    add(ledger, CHARGE, CHARGE)
    charges = read(ledger)
    damage(ledger, lambda content: content[:-end])
    if end == 1:
        assert read(ledger) == charges
    else:
        refused(ledger, "ledger must")


def test_opening_twice_eats_nothing(ledger):
    add(ledger, CHARGE, CHARGE)
    damage(ledger, lambda content: content[:-20] + b"x" + content[-19:])
    refused(ledger, "line 4 damaged")


@pytest.mark.parametrize("kept", [(0, 1, 3, 4), (0, 1, 2, 4), (0, 1, 3, 2, 4), (0, 1, 2, 3, 4, 4)])
def test_removed_moved_and_repeated_lines_show(ledger, kept):
    add(ledger, *({**CHARGE, "id": name} for name in "abc"))
    lines = lines_of(ledger)
    content = b"".join(lines[at] for at in kept)
    ledger.path.write_bytes(content)
    refused(ledger, "ledger must")
    # Also for somebody who adjusts the count.
    ledger.path.write_bytes(uncount(content, len(kept) - 2))
    refused(ledger, "damaged")


@pytest.mark.parametrize("line", [b'{"id": ', b"", b"[1, 2]", b"\xff"])
def test_damage_before_the_end_is_an_error_that_changes_nothing(ledger, line):
    add(ledger, CHARGE, CHARGE, CHARGE)
    lines = ledger.path.read_bytes().split(b"\n")
    lines[3] = line
    ledger.path.write_bytes(b"\n".join(lines))
    refused(ledger, r"ledger\.jsonl' with line 4 damaged")


def test_lines_of_another_ledger_do_not_fit(ledger, tmp_path):
    other = Ledger(tmp_path / "other")
    other.create(1.0, 1e-6, RULE)
    add(ledger, CHARGE)
    add(other, CHARGE)
    ledger.path.write_bytes(b"".join([*lines_of(ledger)[:2], lines_of(other)[2]]))
    refused(ledger, "line 3 damaged")


@pytest.mark.parametrize(
    "content", [b"", b"x,y\n1,2\n3,4", b'{"format": "fastmix-led', b'{"a": 1}\n{"b"', b"[1]\n"]
)
def test_a_file_that_is_no_ledger_is_left_alone(ledger, content):
    ledger.path.write_bytes(content)
    with pytest.raises(ValueError, match=r"made by 'fastmix ledger new' .*; got ledger='.*jsonl'"):
        read(ledger)
    assert ledger.path.read_bytes() == content


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"version": 2', b'"version": 1', "version 2"),
        (b'"charges":          0', b'"charges":         -1', "line 1 damaged"),
        (b'"charges":          0', b'"charges":       true', "line 1 damaged"),
        (b'"charges":          0', b'"charges": 0         ', "line 1 damaged"),
        (b'"delta": 1e-06', b'"delta": 1e-05', "line 2 damaged"),
        (b'"epsilon": 1.0', b'"epsilon": 9.0', "line 2 damaged"),
    ],
)
def test_header_of_another_kind(ledger, old, new, message):
    damage(ledger, lambda content: content.replace(old, new))
    refused(ledger, message)


# Missing files and directories


def test_missing_file_is_an_error_and_leaves_nothing_behind(tmp_path):
    with pytest.raises(FileNotFoundError, match="ledger must exist; got ledger="):
        read(Ledger(tmp_path / "absent"))
    assert list(tmp_path.iterdir()) == []


def test_missing_directory(ledger, tmp_path):
    with pytest.raises(ValueError, match="ledger must lie in a directory that exists"):
        Ledger(tmp_path / "absent" / "ledger").create(1.0, 1e-6, RULE)
    with pytest.raises(ValueError, match="path must lie in a directory that exists"):
        ledger.copy(tmp_path / "absent" / "ledger")
    assert not (tmp_path / "absent").exists()


# Full disks and other failures


def full(*args):
    raise OSError(errno.ENOSPC, "No space left on device")


def half_full(write=os.pwrite):
    """Return a write that stores half of a charge and fails from then on."""
    calls = []

    def partial(fd, data, at):
        if calls:
            full()
        if len(data) > 1:
            calls.append(fd)
        return write(fd, data[: (len(data) + 1) // 2], at)

    return partial


def fails_from_the_second_call(function):
    calls = []

    def failing(*arguments):
        calls.append(arguments)
        return function(*arguments) if len(calls) == 1 else full()

    return failing


@pytest.mark.parametrize("name", ["fsync", "pwrite", "half"])
def test_full_disk_refuses_the_charge_and_keeps_the_rest(ledger, monkeypatch, name):
    add(ledger, CHARGE)
    before = ledger.path.read_bytes()
    with monkeypatch.context() as patch:
        if name == "half":
            patch.setattr(os, "pwrite", half_full())
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
        patch.setattr(os, "pwrite", half_full())
        patch.setattr(os, "ftruncate", fails_from_the_second_call(os.ftruncate))
        with pytest.raises(OSError, match="No space left"):
            add(ledger, CHARGE)
    assert not ledger.path.read_bytes().endswith(b"\n")
    assert read(ledger) == [CHARGE]
    add(ledger, {"id": "b"})
    assert read(ledger) == [CHARGE, {"id": "b"}]


def test_short_writes_are_completed(ledger, monkeypatch):
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: write(fd, data[:7], at))
    add(ledger, CHARGE)
    assert read(ledger) == [CHARGE]


@pytest.mark.parametrize("name", ["fsync", "pwrite", "link"])
def test_failed_creation_leaves_no_ledger(tmp_path, monkeypatch, name):
    monkeypatch.setattr(os, name, full)
    with pytest.raises(OSError, match="No space left"):
        Ledger(tmp_path / "ledger").create(1.0, 1e-6, RULE)
    assert list(tmp_path.iterdir()) == []


def test_line_and_count_reach_the_disk_before_the_lock_goes(ledger, monkeypatch, tmp_path):
    steps = []
    fsync, write, flock = os.fsync, os.pwrite, fcntl.flock

    def synced(fd):
        steps.append("sync " + os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))
        fsync(fd)

    def written(fd, data, at):
        steps.append("count" if at == 0 else "line")
        return write(fd, data, at)

    def locked(fd, kind):
        steps.append("released" if kind == fcntl.LOCK_UN else "locked")
        flock(fd, kind)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "pwrite", written)
    monkeypatch.setattr(fcntl, "flock", locked)
    add(ledger, CHARGE)
    sync = "sync ledger.jsonl"
    assert steps == ["locked", "line", "line", sync, "count", sync, "released"]
    steps.clear()
    Ledger(tmp_path / "new").create(1.0, 1e-6, RULE)
    assert steps[1].startswith("sync .new.")
    assert steps[2] == f"sync {tmp_path.name}"


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


@pytest.mark.parametrize("name", ["fsync", "pwrite", "replace"])
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
