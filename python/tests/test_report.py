"""`Loader.report` and `python -m chaski doctor` name the part of a run that was made slow."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers import web

import chaski

pytestmark = pytest.mark.usefixtures("binary")

DATA = Path(__file__).resolve().parents[2] / "testdata" / "demo"
BOARD = Path(__file__).resolve().parents[2] / "deploy" / "grafana" / "chaski.json"


@pytest.fixture
def chips(tmp_path: Path) -> Path:
    """Many names of one chip of 6 bands of 640 by 640."""
    for i in range(64):
        (tmp_path / f"{i}.tif").symlink_to(DATA / "coast.tif")
    return tmp_path


def answers(table: str) -> dict[str, str]:
    return dict(re.findall(r"^(.*\?) +(\S+)", table, re.M))


def test_trainer(chips):
    alone = chaski.Engine(share=False)  # one that goes on from another test knows its waits, too
    with chaski.load(chips, batch_size=2, window=32, engine=alone) as loader:
        for _ in loader:
            time.sleep(0.1)  # 32 times; the first batch of an epoch is always waited for
        said = answers(loader.report())
        assert said["Is training bound by data?"] == "no:"
        assert said["Which stage takes longest?"] == "trainer:"
        assert "no rank had a batch" in loader.report()  # since the last report


def test_decode(chips):
    engine = chaski.Engine(workers=1)
    with chaski.load(chips, batch_size=4, window=512, engine=engine) as loader:
        for _ in loader:
            pass
        table = loader.report()
    said = answers(table)
    assert said["Is training bound by data?"] == "yes:"
    assert said["Which stage takes longest?"] == "decode:", table
    assert said["Which file is slowest?"].endswith(".tif:")
    row = re.search(r"^ +0 of 1 .*", table, re.M)
    shares = [int(n) for n in re.findall(r"(\d+) %", row[0])] if row else []
    assert len(shares) == 7 and abs(sum(shares[1:]) - 100) <= 3  # roundings of six shares


def test_ranks(chips):
    """The engine of this process knows its ranks apart."""
    options = {"batch_size": 8, "window": 32, "world_size": 2}
    with (
        chaski.load(chips, rank=0, **options) as first,
        chaski.load(chips, rank=1, **options) as second,
    ):
        for _ in zip(first, second, strict=True):
            pass
        assert re.search(r"0 of 2 .*\n +1 of 2 ", first.report())


IMAGE = (DATA / "coast.tif").stat().st_size
"""Bytes of a chip."""


def cached(binary, url, folder, images):
    """Returns a catalog of twelve chips, and an engine whose cache has room for some images."""
    catalog = folder / "chips.parquet"
    names = [f"{url}/{i}.tif" for i in range(12)]
    subprocess.run([binary, "index", "-o", catalog, *names], check=True)
    return catalog, chaski.Engine(cache=folder / "cache", cache_bytes=images * IMAGE, share=False)


def test_plans_know_weights_that_change(binary, chips, tmp_path):
    """Three of twelve chips are drawn: a cache has to read these from the store, and no others."""
    with web(chips) as (url, asked):
        catalog, engine = cached(binary, url, tmp_path, 20)
        with chaski.load(catalog, batch_size=3, seed=1, engine=engine) as loader:
            loader.reweight([0] * 9 + [1, 1, 1], folder=tmp_path / "weights")
            del asked[:]
            seen = {int(i) for batch in loader for i in batch["sample"]}
            read = sum(n for _, _, n in asked)
            said = loader.metrics(planned=True)
            assert seen <= {9, 10, 11} and 0 < read == said["cache"]["from_store"]
            (planned,) = said["planned"]
            assert (planned["epoch"], planned["from_store"]) == (0, read)


def test_metrics(binary, chips, tmp_path):
    """What the cache was to read from the store, and what the store was asked for."""
    with web(chips) as (url, asked):
        catalog, engine = cached(binary, url, tmp_path, 5)
        with chaski.load(catalog, batch_size=3, shuffle=True, seed=1, engine=engine) as loader:
            loader.set_epoch(4)
            assert loader.metrics(planned=True)["planned"] == []
            del asked[:]
            for _ in loader:
                pass
            deadline = time.monotonic() + 20
            while True:  # a batch is counted once it is sent, and may be here before
                said = loader.metrics(planned=True)
                (rank,) = said["ranks"]
                if rank["batches"] == 4 or time.monotonic() > deadline:
                    break
            assert (rank["samples"], rank["batches"], rank["world"]) == (12, 4, 1)
            cache, planned = said["cache"], said["planned"]
            assert cache["from_store"] == sum(n for _, _, n in asked) > 0
            assert planned == [{"epoch": 4, "from_cache": 0, "from_store": cache["from_store"]}]
            assert 0 < cache["used"] <= cache["quota"] == 5 * IMAGE
            next(iter(loader))
            first, second = loader.metrics(planned=True)["planned"]
            assert [first] == planned
            assert second["epoch"] == 5 and 0 < second["from_store"] < first["from_store"]
            assert second["from_cache"] + second["from_store"] == first["from_store"]
            assert "planned" not in loader.metrics()
            for epoch, want in ((9, [9]), (2**63, [2**63]), (2**64 - 1, [2**64 - 1])):
                loader.set_epoch(epoch)
                assert next(iter(loader)).epoch == epoch
                planned = loader.metrics(planned=True)["planned"]
                assert [p["epoch"] for p in planned] == want
                assert planned[0]["from_store"] == first["from_store"]
            loader._link.described.reply.handle = "forgotten"  # as by a server that started again
            assert loader.metrics(planned=True)["planned"] == planned
    with chaski.load(chips, batch_size=8, engine=chaski.Engine(share=False)) as loader:
        said = loader.metrics(planned=True)
        assert said["cache"] is None and said["planned"] == []


def test_doctor(chips, tmp_path):
    """A step of 50 ms from memory: 4 samples take 50 ms at best, whatever the machine does."""
    run = subprocess.run(
        [sys.executable, "-m", "chaski", "doctor", chips, "--headroom"]
        + ["--batch-size=4", "--step-time=0.05", "--window=64"],
        capture_output=True,
        text=True,
        check=True,
    )
    most = re.search(r"([\d.]+) samples/s from memory", run.stdout)
    assert most and 20 < float(most[1]) <= 80, run.stdout
    assert re.search(r"could gain \d+%", run.stdout) and "Which stage" in run.stdout


def test_headroom_is_what_slow_loading_costs(chips):
    """The judge: the same loop with a pause before each batch, which memory does not have."""
    from chaski import _doctor

    with chaski.load(chips, batch_size=2, window=32) as loader:

        class Slow:
            def __iter__(self):
                for batch in loader:
                    time.sleep(0.05)
                    yield batch

        now, most = _doctor.headroom(Slow(), lambda _: time.sleep(0.05))  # type: ignore[arg-type]
    assert most / now > 1.5  # 0.1 s a batch, or more on a busy machine, in place of 0.05 s


def test_dashboard():
    """Grafana's own types take the dashboard, and lose nothing of it that they know."""
    board = json.loads(BOARD.read_text())
    ids = [p["id"] for p in board["panels"]] + [
        p["id"] for row in board["panels"] for p in row.get("panels", ())
    ]
    assert len(set(ids)) == len(ids) > 30
    sdk = pytest.importorskip("grafana_foundation_sdk.models.dashboard")
    cog = pytest.importorskip("grafana_foundation_sdk.cog.plugins")
    encoder = pytest.importorskip("grafana_foundation_sdk.cog.encoder")
    cog.register_default_plugins()
    again = json.loads(encoder.JSONEncoder().encode(sdk.Dashboard.from_json(board)))

    def lost(have, known, at=""):
        if isinstance(have, dict):
            for k, v in have.items():
                assert k in known, f"{at}.{k}"
                lost(v, known[k], f"{at}.{k}")
        elif isinstance(have, list):
            assert len(have) == len(known), at
            for i, (a, b) in enumerate(zip(have, known, strict=True)):
                lost(a, b, f"{at}[{i}]")
        else:
            assert have == known, at

    lost(board, again)


def test_recoded(tmp_path):
    """The table says which part of the chunks came from what `recode` holds."""
    for i in range(8):
        (tmp_path / f"{i}.tif").write_bytes((DATA / "coast.tif").read_bytes())
    engine = chaski.Engine(recode=0.5, workers=1, share=False)
    with chaski.load(tmp_path, batch_size=4, engine=engine) as loader:
        for epoch in range(100):
            for _ in loader:
                pass
            # A report has nothing of it until the engine has counted the chunks of a batch.
            said = answers(loader.report()).get("Which chunks are recoded?")
            if epoch == 0:
                assert said != "all"
            if said == "all":
                break
        assert said == "all"
        (held,) = loader.metrics()["recoded"]
        assert epoch > 0 and held["used"] > 0 and held["bytes"] > 0
