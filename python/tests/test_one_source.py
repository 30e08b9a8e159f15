"""Batches of one source of a mixture: bands, shapes and pixels, over both transports."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import rasters
from conftest import nonempty

import chaski

HOW = ["grpc", "shm"]
pytestmark = [
    pytest.mark.usefixtures("one_engine"),
    pytest.mark.parametrize("transport", HOW),
]
SOURCES = {"optical": (5, 40, 23), "radar": (2, 24, 11), "high": (3, 64, 30)}
"""Bands, side and chips of each source."""


@pytest.fixture(scope="module")
def chips(tmp_path_factory) -> dict[str, tuple[Path, np.ndarray]]:
    """A folder and the pixels of each source."""
    r = np.random.default_rng(3)
    out = {}
    for name, (bands, side, n) in SOURCES.items():
        folder = tmp_path_factory.mktemp(name)
        pixels = r.integers(1, 4000, (n, bands, side, side), dtype=np.uint16)
        for i, x in enumerate(pixels):
            rasters.write(folder / f"{i:02}.tif", x, dtype="uint16")
        out[name] = folder, pixels
    return out


def mixture(chips, **more) -> chaski.Mixture:
    """A mixture of the sources, of which one picks bands."""
    return chaski.Mixture(
        {
            "optical": chaski.Source(
                chips["optical"][0],
                weight=2,
                fields={
                    "image": chaski.Field(
                        bands=[4, 0, 2, 1], wavelengths=[0.84, 0.49, 0.66, 0.56], gsd=10
                    )
                },
            ),
            "radar": chips["radar"][0],
            "high": chips["high"][0],
        },
        batches="one source",
        **more,
    )


def test_each_batch_is_of_one_source(chips, transport):
    """Each batch has the bands and pixels of its source; together they are the shares."""
    how = {"batch_size": 4, "seed": 9, "engine": chaski.Engine(transport=transport)}
    drawn = []
    with chaski.load(mixture(chips, until="longest"), **how) as loader:
        names = list(SOURCES)
        for _ in range(2):
            for batch in loader:
                (number,) = set(batch["source"].tolist())
                drawn.append(number)
                pixels = chips[names[number]][1]
                if names[number] == "optical":
                    pixels = pixels[:, [4, 0, 2, 1]]
                np.testing.assert_array_equal(batch["image"], pixels[batch["sample"]])
                assert batch.source == names[number] == loader.sources[number].name
                image = batch.fields["image"]
                assert image.shape == (1, *batch["image"].shape[1:])
                optical = number == 0
                assert image.gsd == 10 * optical
                assert image.wavelengths == ((0.84, 0.49, 0.66, 0.56) if optical else ())
    for n in range(1, len(drawn) // 2 + 1):
        for source, share in enumerate((0.5, 0.25, 0.25)):
            assert abs(drawn[:n].count(source) - share * n) < 4


def test_ranks_and_resume(chips, transport):
    """Ranks see one source at a step; any number of ranks goes on at any step."""
    how = {"batch_size": 5, "seed": 2, "engine": chaski.Engine(transport=transport)}
    with chaski.load(mixture(chips), **how) as loader:
        whole = [(b["source"][0], b["sample"].tolist(), b["image"].copy()) for b in loader]
        states = []
        loader.set_epoch(0)
        for _ in loader:
            states.append(loader.state_dict())
    for step, state in enumerate(nonempty(states[:-1])):
        world = 1 + step % 4
        ranks = []
        for rank in range(world):
            with chaski.load(mixture(chips), rank=rank, world_size=world, **how) as other:
                other.load_state_dict(state)
                ranks.append(next(iter(other)))
        source, samples, image = whole[step + 1]
        for rank, batch in enumerate(nonempty(ranks)):
            assert set(batch["source"].tolist()) == {source}  # also of padding
            rows = batch["valid"]
            assert batch["sample"][rows].tolist() == samples[rank::world]
            np.testing.assert_array_equal(batch["image"][rows], image[rank::world])


def test_samples_by_number(chips, transport):
    """Samples that are asked for by number are of one source, too."""
    how = {"batch_size": 4, "engine": chaski.Engine(transport=transport)}
    with chaski.load(mixture(chips, until="longest"), shuffle=False, **how) as loader:
        of = np.concatenate([b["source"] for b in loader])
        one = loader.fetch(np.flatnonzero(of == 1)[:6])
        assert one["image"].shape == (6, 2, 24, 24)
        first = int(np.flatnonzero(of != of[0])[0])
        with pytest.raises(chaski.UnsupportedError, match="no batch in common"):
            loader.fetch([0, first])
        assert loader.sample(first)["source"] == of[first]


def test_samples_of_a_map_dataset(chips, transport):
    """A sampler of one's own may ask for samples of several sources at once."""
    torch = pytest.importorskip("torch")
    from chaski.torch import MapDataset

    engine = chaski.Engine(transport=transport)
    with MapDataset(mixture(chips, until="longest"), engine=engine) as dataset:
        order = torch.randperm(len(dataset)).split(7)
        batches = torch.utils.data.DataLoader(
            dataset, batch_sampler=[list(map(int, b)) for b in order], collate_fn=list
        )
        seen = set()
        for sample in (s for batch in batches for s in batch):
            name = list(SOURCES)[sample["source"]]
            pixels = chips[name][1][int(sample["sample"])]
            want = pixels[[4, 0, 2, 1]] if name == "optical" else pixels
            np.testing.assert_array_equal(sample["image"].numpy(), want)
            seen.add((name, int(sample["sample"])))
        assert len(seen) == sum(n for _, _, n in SOURCES.values())


@pytest.mark.parametrize("names", [("still", "series"), ("series", "still")])
@pytest.mark.parametrize("layout", [None, "n t b y x"])
def test_steps_of_time_in_one_of_the_sources(chips, tmp_path, transport, names, layout):
    """Images of the other source have no axis t."""
    folder, pixels = chips["radar"]
    rows = [f"{folder / f'{i:02}.tif'},{'ab'[i % 2]},{i}" for i in range(8)]
    (tmp_path / "chips.csv").write_text("\n".join(["image,site,day", *rows]) + "\n")
    series = chaski.Source(
        tmp_path / "chips.csv", rows=chaski.Rows(time=chaski.Time("site", "day", length=2))
    )
    sources = {"series": series, "still": chips["high"][0]}
    mixed = chaski.Mixture({n: sources[n] for n in names}, batches="one source")
    fields = {"image": chaski.Field(layout=layout)}
    engine = chaski.Engine(transport=transport)
    seen = set()
    with chaski.load(mixed, fields=fields, batch_size=3, engine=engine) as loader:
        for batch in loader:
            samples = batch["sample"][batch["valid"]]
            want = chips["high"][1][samples]
            if batch.source == "series":
                want = pixels[[[(0, 2), (4, 6), (1, 3), (5, 7)][s] for s in samples]]
                assert batch["steps"][batch["valid"]].all()
            np.testing.assert_array_equal(batch["image"][batch["valid"]], want)
            seen.add(batch.source)
    assert seen == set(names)


@pytest.mark.parametrize("how", ["temperature", "strata"])
def test_sizes_of_batches_where_sources_have_weights_by_size(chips, tmp_path, transport, how):
    """Batches of several sizes are cut from their chips, and an epoch is as long as with one."""
    rows = chaski.Rows()
    if how == "temperature":
        names = {k: chips[k][0] for k in ("optical", "high")}
        fields = {"image": chaski.Field(bands=[0, 1, 2])}
        source = chaski.Mixture(names, temperature=2.0)
    else:
        lines = [f"{chips['high'][0] / f'{i:02}.tif'},{i % 3},{i}" for i in range(30)]
        (tmp_path / "chips.csv").write_text("\n".join(["image,kind,chip", *lines]) + "\n")
        source, rows = tmp_path / "chips.csv", chaski.Rows(strata="kind")
        fields = {"image": chaski.Field(), "chip": "chip"}
    more = {
        "fields": fields,
        "rows": rows,
        "batch_size": 4,
        "engine": chaski.Engine(transport=transport),
        "pixels": chaski.Pixels(windows=True),
    }
    with chaski.load(source, window=(16, 16), **more) as one:
        positions = one.samples
    sides = set()
    with chaski.load(source, window=chaski.RandomWindow(sizes=[8, 16, 24]), **more) as loader:
        assert loader.samples == positions
        for batch in loader:
            sides.add(batch["image"].shape[-1])
            for k in nonempty(np.flatnonzero(batch["valid"])):
                name, chip = "high", batch["chip" if how == "strata" else "sample"][k]
                if how == "temperature":
                    name = list(names)[batch["source"][k]]
                y, x, h, w = batch["window"][k]
                want = chips[name][1][int(chip), :3, y : y + h, x : x + w]
                np.testing.assert_array_equal(batch["image"][k], want)
    assert sides == {8, 16, 24}


def test_wavelengths_change_no_state(chips, transport):
    """States of before go on where only wavelengths differ; their number has to fit."""
    how = {"batch_size": 4, "engine": chaski.Engine(transport=transport)}

    def load(*wavelengths: float) -> chaski.Loader:
        image = chaski.Field(wavelengths=wavelengths or None)
        return chaski.load(chips["radar"][0], fields={"image": image}, **how)

    with load() as a, load(3.1, 5.6) as b:
        assert a.spec_hash == b.spec_hash
        assert next(iter(a)).fields["image"].wavelengths == ()
        batch = next(iter(b))
        assert (batch.source, batch.fields["image"].wavelengths) == ("", (3.1, 5.6))
    with pytest.raises(chaski.SpecError, match="wavelengths has 3 numbers for 2 bands"):
        load(1, 2, 3)
    with pytest.raises(chaski.SpecError, match="must be above 0, in micrometres"):
        load(0, 2)
    three = chaski.Source(chips["radar"][0], fields={"image": chaski.Field(wavelengths=[1, 2, 3])})
    mixed = chaski.Mixture({"two": chips["radar"][0], "three": three})
    with pytest.raises(chaski.SpecError, match='source "three": .*has 3 numbers for 2 bands'):
        chaski.load(mixed, batch_size=4)


def test_of_servers(chips, transport, binary, tmp_path):
    """The engine that is the client of two servers passes sources and fields on; so does torch."""
    adapter = pytest.importorskip("chaski.torch", reason="needs torch")
    root = str(chips["radar"][0].parent)
    servers = []
    try:
        for k in range(2):
            listen = ["--listen", f"unix:{tmp_path / f's{k}'}", "--root", root]
            servers.append(subprocess.Popen([binary, "serve", *listen], stdout=subprocess.PIPE))
        targets = [json.loads(s.stdout.readline())["listen"] for s in servers]
        how = {"batch_size": 4, "seed": 9, "engine": chaski.Engine(transport=transport)}
        with (
            chaski.load(mixture(chips), **how) as own,
            chaski.connect(targets, mixture(chips), **how) as theirs,
        ):
            for x, y in nonempty(zip(own, theirs, strict=True)):
                np.testing.assert_array_equal(x["image"], y["image"])
                assert (x.source, x.fields) == (y.source, y.fields)
            batch = next(iter(adapter.IterableDataset(own)))
            assert batch.source in SOURCES
            assert batch["image"].shape[1:] == batch.fields["image"].shape[1:]
    finally:
        for s in servers:
            s.terminate()
            s.wait(60)


def test_sizes_of_batches(chips, transport):
    """The side of a batch is drawn by its number, on any number of ranks and after a resume."""
    how = {"batch_size": 4, "seed": 1, "engine": chaski.Engine(transport=transport)}
    folder, pixels = chips["high"]
    asked = chaski.RandomWindow(sizes=[16, 32, 24], per_asset=6)
    with chaski.load(folder, window=asked, pixels=chaski.Pixels(windows=True), **how) as loader:
        assert loader.fields[0].shape == (1, 3, 32, 32)
        sides, states = [], []
        for batch in loader:
            side = batch["image"].shape[2]
            sides.append(side)
            states.append(loader.state_dict())
            for k, (y, x, *size) in enumerate(nonempty(batch["window"])):
                assert size == [side, side]
                want = pixels[batch["sample"][k] // 6][:, y : y + side, x : x + side]
                np.testing.assert_array_equal(batch["image"][k], want)
        assert set(sides) == {16, 24, 32}
        assert loader.sample(3)["image"].shape == (3, 32, 32)
    with chaski.load(folder, window=asked, rank=1, world_size=3, **how) as other:
        other.load_state_dict({**states[4], **{"spec": other.spec_hash}}, strict=False)
        assert [b["image"].shape[2] for b in other] == sides[5:]
    with chaski.load(
        mixture(chips), window=chaski.RandomWindow(sizes=[8, 16, 24]), **how
    ) as loader:
        seen = {(b.source, b["image"].shape[1:]) for b in loader}
    assert len(seen) > 6 and {s for s, _ in seen} == set(SOURCES)


def test_refused(chips, transport):
    """Shares within batches and batches of one source exclude each other."""
    how = {"batch_size": 4, "engine": chaski.Engine(transport=transport)}
    with pytest.raises(chaski.SpecError, match="per_batch is true"):
        chaski.load(mixture(chips, per_batch=True), **how)
    with pytest.raises(chaski.SpecError, match='batches is "all"'):
        chaski.load(chaski.Mixture({"a": chips["high"][0]}, batches="all"), **how)
    with pytest.raises(chaski.SpecError, match="unless its batches are of one source"):
        chaski.load(chaski.Mixture({n: chips[n][0] for n in SOURCES}), **how)
    inner = chaski.Mixture({"a": mixture(chips)})
    with pytest.raises(chaski.SpecError, match="needs the same of the mixture around it"):
        chaski.load(inner, **how)
    with pytest.raises(
        chaski.SpecError, match='source "radar" has 11 samples, and a batch takes 12'
    ):
        chaski.load(mixture(chips), **how | {"batch_size": 12})
