"""What is written is on the disk before its writer says so."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

import chaski
from chaski import BadRow, SampleRef, Stats
from chaski._files import replace_file
from chaski._quarantine import Quarantine

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows does not open folders")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, bytes]]:
    """What is synced, with the content at that time, and what is renamed."""
    met: list[tuple[str, str, bytes]] = []
    replace = os.replace

    def sync(fd: int) -> None:
        path = os.readlink(f"/proc/self/fd/{fd}") if os.path.isdir("/proc/self/fd") else ""
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            met.append(("folder", path, b""))
        else:
            met.append(("file", path, Path(path).read_bytes() if path else b""))

    def rename(old: str, new: str) -> None:
        met.append(("rename", new, Path(old).read_bytes()))
        replace(old, new)

    monkeypatch.setattr("chaski._files.os.replace", rename)
    monkeypatch.setattr("chaski._files.sync", sync)
    monkeypatch.setattr("chaski._quarantine.sync", sync)
    return met


def kinds(calls: list[tuple[str, str, bytes]]) -> list[str]:
    return [kind for kind, _, _ in calls]


def test_a_file_is_synced_renamed_and_its_folder_synced(tmp_path, calls):
    (tmp_path / "a").write_bytes(b"old")
    replace_file(tmp_path / "a", [b"n", memoryview(b"ew")])
    assert kinds(calls) == ["file", "rename", "folder"]
    assert calls[1] == ("rename", str(tmp_path / "a"), b"new")
    if calls[0][1]:  # systems with /proc say which file was synced, and when it was complete
        assert calls[0][2] == b"new"
        assert calls[2][1] == str(tmp_path)


def test_statistics_are_synced(tmp_path, calls):
    Stats(version=1, samples=0, fields={}).save(tmp_path / "stats.json")
    assert kinds(calls) == ["file", "rename", "folder"]


def test_a_file_that_is_not_synced_gets_no_name(tmp_path, monkeypatch):
    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("chaski._files.sync", full)
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(OSError, match="No space"):
        replace_file(tmp_path / "a", [b"new"])
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_the_error_about_a_file_names_the_file(tmp_path):
    """Nobody knows the name that the file has while it is written."""
    with pytest.raises(FileNotFoundError) as e:
        replace_file(tmp_path / "missing" / "a", [b"new"])
    assert e.value.filename == str(tmp_path / "missing" / "a")


def test_a_list_of_bad_samples_is_synced_when_it_is_closed(tmp_path, calls):
    met = Quarantine(tmp_path / "bad.jsonl", "fingerprint")
    for _ in range(3):
        bad = BadRow(0, 0, "a.tif: broken", "", SampleRef("a", 0, 0), None, "corrupt", "a.tif")
        met.rows((bad,))
    assert calls == [], "training does not wait for the disk"
    met.close()
    assert kinds(calls) == ["file", "folder"]
    if calls[0][1]:
        assert calls[0][2] == (tmp_path / "bad.jsonl").read_bytes()
        assert calls[1][1] == str(tmp_path)
    met.close()
    assert len(calls) == 2


def test_pipes_and_devices_are_written_without_a_sync():
    met = Quarantine("/dev/null", "fingerprint")
    met.close()


@pytest.mark.parametrize("name", ["ledger", "cache"])
def test_folders_of_stores_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A store that is not written here is an error, and no local folder has its name."""
    monkeypatch.chdir(tmp_path)
    folders: dict[str, Any] = {name: "s3://bucket/folder"}
    engine = chaski.Engine(**folders, cache_bytes=1 << 20)
    with pytest.raises(chaski.UnsupportedError, match="local path"):
        chaski.load("a.tif", batch_size=1, engine=engine)
    assert os.listdir(tmp_path) == []
