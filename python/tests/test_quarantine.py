"""Bad samples of a run and those that a check of the dataset finds are in one list."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import nonempty

import chaski
from chaski import BadRow, SampleRef
from chaski._quarantine import Quarantine

CHIP = Path(__file__).resolve().parents[2] / "testdata" / "raster" / "tog" / "tog-series-0.tif"


def broken(folder: Path) -> Path:
    """Eight chips: one is not a TIFF, one is truncated, and one is deleted."""
    chips = folder / "chips"
    chips.mkdir()
    for i in range(8):
        shutil.copy(CHIP, chips / f"{i}.tif")
    (chips / "3.tif").write_bytes(b"no TIFF")
    (chips / "5.tif").write_bytes(CHIP.read_bytes()[:-100])
    return chips


def met_in(*lists: Path) -> list[dict[str, Any]]:
    """The records of lists, those of one thing as one."""
    out: dict[tuple[str, str], dict[str, Any]] = {}
    for line in (line for path in lists for line in path.read_text().splitlines()):
        r = json.loads(line)
        old = out.setdefault((r["dataset"], r["message"]), r)
        if old is not r:
            old["count"] += r["count"]
    return sorted(out.values(), key=lambda r: r["message"])


def checked(binary: str, source: Path, code: int, *options: object) -> list[dict[str, Any]]:
    """The list of `chaski verify --samples`, which ends with an exit code."""
    command = [binary, "verify", "--samples", *map(str, options), str(source)]
    found = subprocess.run(command, capture_output=True, check=False)
    assert found.returncode == code, found.stderr
    return [json.loads(line) for line in found.stdout.splitlines()]


def files(bad: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return sorted((Path(b["uri"]).name, b["count"]) for b in bad)


@pytest.mark.parametrize("policy", ["skip", "replace", "fill"])
@pytest.mark.timeout(600)
def test_what_a_run_met_is_what_a_check_finds(binary, tmp_path, policy):
    chips, met = broken(tmp_path), tmp_path / "met.jsonl"
    on_bad = chaski.OnBad(policy, quarantine=met)
    for rank in range(2):  # two trainers share a list
        with chaski.load(chips, batch_size=3, on_bad=on_bad, rank=rank, world_size=2) as loader:
            for _ in range(3):
                for _ in loader:
                    pass
            spec = tmp_path / "spec.json"
            spec.write_text(json.dumps(loader.spec))
    run = met_in(met)
    assert files(run) == [("3.tif", 3), ("5.tif", 3)]
    for b in run:
        assert (b["id"], b["row"], b["sample"]) == (Path(b["uri"]).name, int(b["id"][0]), b["row"])
        assert ("instead" in b) == (policy == "replace")
        if policy == "replace":
            other = b["instead"]
            assert other["id"] == f"{other['row']}.tif" and other["row"] not in (3, 5)
    found = checked(binary, spec, 1)
    assert sorted(b["message"] for b in found) == [b["message"] for b in run]
    assert [b["id"] for b in found] == ["3.tif", "5.tif"]
    for b in nonempty(found):
        same = next(r for r in run if r["message"] == b["message"])
        for key in ("dataset", "uri", "part", "offset", "kind"):
            assert same.get(key) == b.get(key), key


@pytest.mark.parametrize("form", ["folder", "catalog", "table", "mixture"])
def test_a_run_without_what_a_check_finds(binary, tmp_path, form):
    """`Rows(bad=FILE)` leaves out the samples that `chaski verify` lists, and no other."""
    chips, bad = broken(tmp_path), tmp_path / "bad.jsonl"
    source: Any = chips
    if form == "catalog":
        whole = {i: (chips / f"{i}.tif").read_bytes() for i in (3, 5)}
        for i in whole:
            shutil.copy(CHIP, chips / f"{i}.tif")
        source = tmp_path / "train.parquet"
        command = [binary, "index", "--format", "parquet", "-o", str(source), str(chips)]
        subprocess.run(command, check=True)
        for i, data in whole.items():
            (chips / f"{i}.tif").write_bytes(data)
    if form == "table":
        source = tmp_path / "chips.csv"
        source.write_text("image\n" + "".join(f"chips/{i}.tif\n" for i in range(8)))
    spec = tmp_path / "spec.json"
    if form == "mixture":
        source = chaski.Mixture({"a": chips / "[0-5].tif", "b": chips / "[4-7].tif"})
    with chaski.load(source, batch_size=2) as loader:
        spec.write_text(json.dumps(loader.spec))
    found = checked(binary, spec, 1, "-o", bad) or [
        json.loads(line) for line in bad.read_text().splitlines()
    ]
    assert [Path(b["uri"]).name for b in found] == (
        ["3.tif", "5.tif", "5.tif"] if form == "mixture" else ["3.tif", "5.tif"]
    )
    with pytest.raises(chaski.NotFoundError, match="bad is 'none': there is no such file"):
        chaski.load(chips, batch_size=2, rows=chaski.Rows(bad="none"))
    rows = chaski.Rows(bad=bad)
    if form == "mixture":
        source = chaski.Mixture(
            {
                "a": chaski.Source(chips / "[0-5].tif", rows=rows),
                "b": chaski.Source(chips / "[4-7].tif", rows=rows),
            }
        )
    options = {} if form == "mixture" else {"rows": rows}
    with chaski.load(source, batch_size=2, on_bad="error", **options) as loader:
        assert form == "mixture" or loader.samples == 6
        assert sum(batch["valid"].sum() for batch in loader) == loader.samples
        spec.write_text(json.dumps(loader.spec))
    assert checked(binary, spec, 0) == []
    if form == "folder":
        with chaski.load(chips, batch_size=2, rows=chaski.Rows(bad=["3.tif", "5.tif"])) as loader:
            assert loader.samples == 6
        bad.write_text("3.tif\n")
        with pytest.raises(chaski.SpecError, match="no list of bad samples"):
            chaski.load(chips, batch_size=2, rows=rows)


@pytest.mark.parametrize("transport", ["auto", "grpc"])
def test_the_error_names_the_sample(binary, tmp_path, transport):
    chips, met = broken(tmp_path), tmp_path / "met.jsonl"
    options = {"batch_size": 4, "shuffle": False, "engine": chaski.Engine(transport=transport)}
    with chaski.load(chips, **options, on_bad=chaski.OnBad(quarantine=met)) as loader:
        with pytest.raises(chaski.CorruptError) as e:
            list(loader)
        assert e.value.sample == SampleRef(3, 3, "3.tif") and e.value.source == ""
        with pytest.raises(chaski.CorruptError) as e:
            loader.sample(5)
        assert e.value.sample == SampleRef(5, 5, "5.tif")
    (bad,) = met_in(met)
    assert (bad["sample"], bad["row"], bad["id"]) == (3, 3, "3.tif")
    mixed = chaski.Mixture({"a": chips / "[0-2].tif", "b": chips / "[4-5].tif"})
    with chaski.load(mixed, **options) as loader, pytest.raises(chaski.CorruptError) as e:
        list(loader)
    assert e.value.source == "b" and e.value.sample.id == "5.tif"
    with pytest.raises(chaski.NotFoundError) as e:
        chaski.load(tmp_path / "nowhere.csv", batch_size=4)
    assert e.value.sample is None


def test_samples_of_two_sources_are_two(tmp_path):
    """If a message names no file, the sample does; its index is that in its source."""
    q = Quarantine(tmp_path / "met", "d")
    one = SampleRef(3, 3, "three")
    for source in ("a", "b", "a", "b"):
        q.rows((BadRow(0, 1, "window of 0 pixels: limit", source, one),))
        text = "x.tif: tile 3: cut short: corrupt"
        q.rows((BadRow(0, 1, text, source, one, kind="corrupt", file="x.tif", part="tile 3"),))
    q.close()
    found: dict[tuple[str, str], int] = {}
    for line in (tmp_path / "met").read_text().splitlines():
        r = json.loads(line)
        key = (r["source"], r.get("uri", ""))
        found[key] = found.get(key, 0) + r["count"]
    assert found == {("a", ""): 2, ("b", ""): 2, ("a", "x.tif"): 4}


def test_a_fork_counts_nothing_twice(tmp_path):
    q = Quarantine(tmp_path / "met", "d")
    for _ in range(3):
        q.rows((BadRow(0, 1, "x.tif: tile 3: cut short: corrupt", "", None),))
    if (pid := os.fork()) == 0:
        q.close()  # as the end of the child does
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    q.close()
    lines = (tmp_path / "met").read_text().splitlines()
    assert sum(json.loads(line)["count"] for line in lines) == 3


@pytest.mark.timeout(600)
def test_what_ends_a_run_is_in_the_list(binary, tmp_path):
    chips, met = broken(tmp_path), tmp_path / "met.jsonl"
    on_bad = chaski.OnBad("skip", max_count=1, quarantine=met)
    with chaski.load(chips, batch_size=8, on_bad=on_bad) as loader:
        with pytest.raises(chaski.LimitError, match="2 bad samples"):
            list(loader)
    assert files(met_in(met)) == [("3.tif", 1), ("5.tif", 1)]
