"""Single samples by index are those of the batches, for every kind of loader."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
import rasters
from conftest import nonempty
from test_real import NODATA, NORM, N, chips, copy_with_bad_file, normalised  # noqa: F401

import chaski
from chaski.order import window

pytestmark = pytest.mark.usefixtures("binary")

HOW = [{"engine": chaski.Engine(transport=t)} for t in ("grpc", "auto")]


@pytest.mark.parametrize("how", HOW, ids=["grpc", "auto"])
def test_against_numpy(chips, how):  # noqa: F811
    folder, x = chips
    want = np.where(x == NODATA, np.float32(-9), normalised(x))
    options = {
        "batch_size": 6,
        "normalize": NORM,
        "pixels": chaski.Pixels(fill=-9.0),
        "last": "drop",
        **how,
    }
    with chaski.load(folder, **options, rank=1, world_size=2) as loader:
        for i in (*range(N), -1, -N, np.int64(3)):
            s = loader.sample(i)
            assert s["image"].dtype == np.float32 and np.array_equal(s["image"], want[i])
            assert s["sample"] == i % N and s["valid"]
        for i in (N, -N - 1, 1 << 70):
            with pytest.raises(IndexError, match=f"of {N}"):
                loader.sample(i)
        with pytest.raises(chaski.SpecError):
            loader.sample(1.5)  # type: ignore[arg-type]
        first = loader.sample(0)["image"]
    assert np.array_equal(first, want[0])  # also after the end of the loader
    with pytest.raises(RuntimeError, match="closed"):
        loader.sample(0)


@pytest.mark.parametrize("how", HOW, ids=["grpc", "auto"])
def test_the_iteration_goes_on(chips, how):  # noqa: F811
    folder, x = chips
    with chaski.load(
        folder, batch_size=4, pixels=chaski.Pixels(dtype="native"), seed=8, **how
    ) as loader:
        want = [b["sample"].tolist() for b in loader]
    with chaski.load(
        folder, batch_size=4, pixels=chaski.Pixels(dtype="native"), seed=8, **how
    ) as loader:
        got = []
        for b in loader:
            got.append(b["sample"].tolist())
            for i in b["sample"][b["valid"]][:2]:
                assert np.array_equal(loader.sample(i)["image"], x[i])
        assert got == want and loader.epoch == 1


@pytest.mark.parametrize(
    ("layout", "change"),
    [
        ("n y x b", lambda a: a.transpose(1, 2, 0)),
        ("b n (y x)", lambda a: a.reshape(3, -1)),
        ("(n y) x b", lambda a: a.transpose(1, 2, 0)),
        ("b y x n", lambda a: a),
    ],
)
def test_layouts(chips, layout, change):  # noqa: F811
    folder, x = chips
    with chaski.load(
        folder, batch_size=4, pixels=chaski.Pixels(dtype="native", layout=layout)
    ) as loader:
        for i in (0, 7):
            assert np.array_equal(loader.sample(i)["image"], change(x[i]))


def test_windows(chips):  # noqa: F811
    folder, x = chips
    with chaski.load(
        folder,
        batch_size=8,
        pixels=chaski.Pixels(dtype="native"),
        window=chaski.RandomWindow((16, 24), per_asset=3),
        seed=9,
    ) as loader:
        for i in (0, 1, 40, 3 * N - 1):
            y0, x0 = window(9, 0, i, *x.shape[2:], 16, 24)
            want = x[i // 3][:, y0 : y0 + 16, x0 : x0 + 24]
            assert np.array_equal(loader.sample(i)["image"], want)


def test_bad_samples(chips, tmp_path):  # noqa: F811
    folder, name = copy_with_bad_file(chips[0], tmp_path)
    with chaski.load(folder, batch_size=5, pixels=chaski.Pixels(dtype="native")) as loader:
        with pytest.raises(chaski.Error) as e:
            loader.sample(4)
        assert name in e.value.file
        assert np.array_equal(loader.sample(5)["image"], chips[1][5])
    with chaski.load(
        folder, batch_size=5, pixels=chaski.Pixels(dtype="native"), on_bad="skip"
    ) as loader:
        assert [bool(loader.sample(i)["valid"]) for i in (3, 4)] == [True, False]


def test_what_rides_along(chips, tmp_path):  # noqa: F811
    folder, x = chips
    lines = [f"{p},{i * 3},chip-{i}" for i, p in enumerate(sorted(folder.iterdir()))]
    (tmp_path / "t.csv").write_text("\n".join(["path,label,id", *lines]) + "\n")
    fields = {"image": "path", "label": "label", "id": "id"}
    with chaski.load(tmp_path / "t.csv", batch_size=4, fields=fields) as loader:
        s = loader.sample(5)
        assert (s["label"], s["id"]) == (15, "chip-5") and s["label"].dtype == np.int64

    torch = pytest.importorskip("torch")
    from chaski.torch import MapDataset

    with MapDataset(tmp_path / "t.csv", fields=fields, pixels=chaski.Pixels(dtype="bfloat16")) as d:
        s = d[5]
        assert s["image"].dtype == torch.bfloat16
        want = np.where(x[5] == NODATA, 0, x[5]).astype(np.float32)
        assert torch.equal(s["image"], torch.from_numpy(want).bfloat16())
        assert (s["label"].item(), s["label"].dtype, s["id"]) == (15, torch.int64, "chip-5")


def test_map_dataset(chips):  # noqa: F811
    torch = pytest.importorskip("torch")
    import chaski.torch

    folder, x = chips
    with chaski.torch.MapDataset(folder, pixels=chaski.Pixels(dtype="native")) as d:
        assert len(d) == N
        assert [int(s["sample"]) for s in d] == list(range(N))
        assert torch.equal(d[-1]["image"], torch.from_numpy(x[-1]))
        for i in (N, -N - 1):
            with pytest.raises(IndexError):
                d[i]
        indices = [5, 2, 9, 9]
        loader = torch.utils.data.DataLoader(d, batch_size=2, sampler=indices)
        got = torch.cat([b["image"] for b in loader])
        assert torch.equal(got, torch.from_numpy(x[indices]))
        with pytest.raises(RuntimeError, match="num_workers=0"):
            next(iter(torch.utils.data.DataLoader(d, num_workers=1)))
        with chaski.torch.MapDataset(d.loader) as same:
            assert torch.equal(same[3]["image"], torch.from_numpy(x[3]))
            for wrong in ({"pixels": chaski.Pixels(dtype="native")}, {"target": "x"}):
                with pytest.raises(TypeError, match="already has"):
                    chaski.torch.MapDataset(d.loader, **wrong)
    for name in ("batch_size", "shuffle", "last", "rank", "world_size"):
        with pytest.raises(TypeError, match=name):
            chaski.torch.MapDataset(folder, **{name: 1})


def test_ids(binary, chips):  # noqa: F811
    """An id is the path of the file with the row's pixels, in any order."""
    rasterio = pytest.importorskip("rasterio")
    folder = chips[0]
    with chaski.load(
        folder, batch_size=4, pixels=chaski.Pixels(dtype="native"), seed=3, window=16
    ) as loader:
        assert len(loader.ids) == loader.samples
        names = sorted(p.name for p in Path(folder).glob("*.tif"))
        assert loader.ids[:] == names
        for batch in nonempty(loader):
            for k in nonempty(np.flatnonzero(batch["valid"])):
                with rasterio.open(Path(folder) / loader.ids[batch["sample"][k]]) as f:
                    file = f.read()
                y, x = np.argwhere((file == batch["image"][k][:, :1, :1]).all(0)).T
                assert any(
                    np.array_equal(file[:, a : a + 16, b : b + 16], batch["image"][k])
                    for a, b in zip(y, x, strict=True)
                )
        for wrong in (-1, loader.samples):  # -1 is padding
            with pytest.raises(IndexError):
                loader.ids[wrong]
    with chaski.load(chaski.Mixture({"a": folder}), batch_size=4) as loader:
        with pytest.raises(chaski.SpecError, match='kind="text"'):
            _ = loader.ids


def test_masks_of_rows(chips):  # noqa: F811
    """A mask of bools picks the samples where it is true, as of an array, and none by 0 and 1."""
    torch = pytest.importorskip("torch")
    with chaski.load(chips[0], batch_size=4, pixels=chaski.Pixels(dtype="native")) as loader:
        mask = np.arange(loader.samples) % 3 == 1
        want = np.flatnonzero(mask).tolist()
        for given in (
            mask,
            mask.tolist(),
            torch.from_numpy(mask),
            tuple(mask),
            list(torch.from_numpy(mask)),
        ):
            assert loader.fetch(given)["sample"].tolist() == want
        windows = [(0, 0, 8, 8)] * len(want)
        assert loader.fetch(mask, windows)["sample"].tolist() == want
        for wrong in (mask[:-1], [True, 1], torch.tensor([True])):
            with pytest.raises(chaski.SpecError, match="mask"):
                loader.fetch(wrong)
        for one in (True, np.True_, torch.tensor(True)):
            with pytest.raises(chaski.SpecError):
                loader.sample(one)
            with pytest.raises(chaski.SpecError):
                loader.ids[one]
            with pytest.raises(chaski.SpecError):
                chaski.read(next(Path(chips[0]).glob("*.tif")), b=[one])


def test_ids_of_parts_and_windows(tmp_path):
    """An id names the file of a row whichever rows and windows a loader has."""
    pytest.importorskip("rasterio")
    for i in range(12):
        side = 16 + 8 * (i % 3)
        rasters.write(tmp_path / f"{i:02}.tif", np.full((1, side, side), i, "uint8"))
    boxes = [f"{i:02}.tif,{x},0,8,8\n" for i in range(12) for x in (0, 4)]
    (tmp_path / "t.csv").write_text("image,x,y,w,h\n" + "".join(boxes))
    split = chaski.Split.by_hash({"a": 0.5, "b": 0.5})
    for taken in (
        chaski.Grid(8),
        chaski.TileWindow(8, per_visit=2),
        chaski.ResizedWindow(8),
        chaski.RandomWindow(8, per_asset=3),
        chaski.RandomWindow(sizes=[8, 12, 14]),
        chaski.RowWindow(8),
    ):
        table = isinstance(taken, chaski.RowWindow)
        for rows in (
            chaski.Rows(split=split, use="a"),
            chaski.Rows(bad=["03.tif", "07.tif"], take=7),
        ):
            with chaski.load(
                tmp_path / "t.csv" if table else tmp_path,
                batch_size=5,
                window=taken,
                rows=rows,
                pixels=chaski.Pixels(dtype="native"),
            ) as loader:
                ids = loader.ids[:]
                for batch in nonempty(loader):
                    for k in nonempty(np.flatnonzero(batch["valid"])):
                        name = ids[int(batch["sample"][k])]
                        assert int(Path(name).stem) == batch["image"][k].max(), taken


def test_ids_where_other_members_change_what_is_asked(binary, chips, tmp_path):  # noqa: F811
    """Ids and samples also belong to their rows with take, windows, missing and pairs."""
    pytest.importorskip("torch")
    import chaski.torch

    folder = Path(chips[0])
    names = sorted(p.name for p in folder.glob("*.tif"))
    first = {n: chaski.read(folder / n) for n in names}

    def check(loader, field="image"):
        for batch in loader:
            for k in np.flatnonzero(batch["valid"]):
                i = batch["sample"][k]
                file = first[Path(loader.ids[i]).name]
                assert np.array_equal(file, batch[field][k])
                assert np.array_equal(file, loader.sample(i)[field])

    # An epoch of 3 samples may have any sample, and one of more than all repeats them.
    for take in (3, len(names) + 3):
        with chaski.load(
            folder,
            batch_size=2,
            pixels=chaski.Pixels(dtype="native", windows=True),
            rows=chaski.Rows(take=take),
        ) as loader:
            for _ in range(3):
                check(loader)
            assert loader.ids[:] == names
            with pytest.raises(IndexError):
                loader.sample(len(names))
            with chaski.torch.MapDataset(loader) as same:
                assert len(same) == len(names)
        loader = chaski.load(folder, batch_size=2, rows=chaski.Rows(take=take))
        ids = loader.ids
        loader.close()
        with pytest.raises(RuntimeError, match="closed"):
            len(ids)
    for part, left_out in (("a", names[0]), ("b", names[1])):
        (tmp_path / part).mkdir()
        for name in set(names) - {left_out}:
            (tmp_path / part / name).symlink_to(folder / name)
    pairs = {x: chaski.Field(pattern=f"{x}/{{id}}.tif") for x in ("a", "b")}
    with chaski.load(
        tmp_path,
        batch_size=2,
        pixels=chaski.Pixels(dtype="native"),
        fields=pairs,
        rows=chaski.Rows(missing="drop"),
    ) as loader:
        check(loader, "a")
        assert loader.ids[:] == [f"a/{n}" for n in names[2:]]
    (tmp_path / "a" / names[1]).unlink()
    (tmp_path / "b" / names[0]).unlink()
    catalog = tmp_path / "pairs.parquet"
    patterns = ["--field", "a=a/{id}.tif", "--field", "b=b/{id}.tif"]
    subprocess.run([binary, "index", *patterns, "-o", catalog, tmp_path], check=True)
    with chaski.load(catalog, batch_size=2, pixels=chaski.Pixels(dtype="native")) as loader:
        check(loader, "a")


def test_samples_with_shares_per_batch(chips):  # noqa: F811
    """Shares divide the loader's batch, so a batch of one sample has none."""
    source = chaski.Mixture({"a": chips[0], "b": chips[0]}, per_batch=True)
    with chaski.load(
        source, batch_size=4, shuffle=False, pixels=chaski.Pixels(dtype="native")
    ) as loader:
        rows = [batch["image"][k] for batch in loader for k in range(4)]
        for i in (0, 1, loader.samples - 1):
            assert np.array_equal(loader.sample(i)["image"], rows[i])
