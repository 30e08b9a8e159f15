"""Healthy HDF5 files that other writers and orders make, compared with h5py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chaski

h5py = pytest.importorskip("h5py")
pytestmark = pytest.mark.usefixtures("one_engine")


def column(path: Path, name: str, kind: str, rows: int, **more: Any) -> Any:
    """A column of a file of images called image."""
    fields = {"image": {"column": "image"}, name: {"column": name, "kind": kind}}
    options = {"batch_size": rows, "shuffle": False, "rows": chaski.Rows(dims="n y x"), **more}
    with chaski.load(str(path), fields=fields, **options) as loader:
        return next(iter(loader))[name]


def write(path: Path, rows: int, **options: Any) -> Any:
    f = h5py.File(path, "w", **options)
    f["image"] = np.zeros((rows, 4, 4), "u1")
    return f


@pytest.mark.parametrize("kind", ["S4", "any length", "S20000"])
@pytest.mark.parametrize("chunks", [(1,), (4,), None])
def test_texts_that_were_not_written_are_the_fill_value(
    tmp_path: Path, kind: str, chunks: tuple[int] | None
) -> None:
    with write(tmp_path / "a.h5", 9) as f:
        dtype = h5py.string_dtype() if kind == "any length" else kind
        d = f.create_dataset("name", (9,), dtype=dtype, fillvalue=b"none", chunks=chunks)
        if chunks:
            d[4] = b"abc"
        want = [v.decode() for v in d[()]]
    assert list(column(tmp_path / "a.h5", "name", "text", 9)) == want


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_texts_in_any_order(tmp_path: Path, libver: str) -> None:
    """Thousands of collections, each named from everywhere; equal, empty and long texts, too."""
    rows = 20_000
    with write(tmp_path / "a.h5", rows, libver=libver) as f:
        d = f.create_dataset("name", (rows,), dtype=h5py.string_dtype())
        for i in np.random.default_rng(0).permutation(rows):
            d[i] = f"row {i}" * (1 + i % 3) if i % 7 else ""
        want = [v.decode() for v in d[()]]
    assert list(column(tmp_path / "a.h5", "name", "text", rows)) == want


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_attributes_in_several_passes(tmp_path: Path, libver: str) -> None:
    """Attributes of groups, in the file in another order than the groups: texts, lists, numbers."""
    order = np.random.default_rng(0)
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as f:
        for i in range(2000):
            f[f"g{i:04}/im"] = np.zeros((2, 2), "u1")
        for key in ("a", "b", "c"):
            for i in order.permutation(2000):
                f[f"g{i:04}"].attrs[key] = f"{key} {i}"
                f[f"g{i:04}"].attrs[key + "n"] = i
    fields = {"image": "{id}/im", "b": {"column": "b", "kind": "text"}, "cn": {"kind": "number"}}
    with chaski.load(
        str(tmp_path / "a.h5"),
        batch_size=2000,
        shuffle=False,
        rows=chaski.Rows(dims="y x"),
        fields=fields,
    ) as loader:
        batch = next(iter(loader))
    assert list(batch["b"]) == [f"b {i}" for i in range(2000)]
    assert np.array_equal(batch["cn"], range(2000))


@pytest.mark.parametrize("sizes", [(8, 8), (8, 4), (4, 8), (4, 4), (2, 2)])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_sizes_of_offsets_and_lengths(tmp_path: Path, sizes: tuple[int, int], libver: str) -> None:
    created = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    created.set_sizes(*sizes)
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    version = h5py.h5f.LIBVER_LATEST if libver == "latest" else h5py.h5f.LIBVER_EARLIEST
    access.set_libver_bounds(version, h5py.h5f.LIBVER_LATEST)
    path = tmp_path / "a.h5"
    made = h5py.h5f.create(str(path).encode(), h5py.h5f.ACC_TRUNC, created, access)
    rows = 12
    with h5py.File(made) as f:
        f["image"] = np.arange(rows * 16, dtype="u1").reshape(rows, 4, 4)
        f.create_dataset("name", data=[f"row {i}" for i in range(rows)], dtype=h5py.string_dtype())
        f["chunks"] = np.zeros((rows, 2))
        for i in range(30 if sizes != (2, 2) else 3):  # heaps of attributes need more
            f["image"].attrs[f"text {i}"] = f"metres {i}"
    assert list(column(path, "name", "text", rows)) == [f"row {i}" for i in range(rows)]
    with h5py.File(path) as f:
        assert np.array_equal(chaski.read(f"{path}::chunks")[0], f["chunks"])


def test_links_through_links(tmp_path: Path) -> None:
    """Soft links in any order: through others, to groups of links, above, round and to nothing."""
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["real/im"] = np.full((4, 4), 3, "u1")
        f["real/b"] = h5py.SoftLink("im")
        f["real/up"] = h5py.SoftLink("/real")
        f["z"] = h5py.SoftLink("/real")
        f["m"] = h5py.SoftLink("/z")
        f["a"] = h5py.SoftLink("/m/b")
        f["c"] = h5py.SoftLink("m/im")
        f["n/deep"] = h5py.SoftLink("/m")
        f["round"], f["other"] = h5py.SoftLink("/other"), h5py.SoftLink("/round")
        f["nothing"] = h5py.SoftLink("/real/nothing")
    with h5py.File(tmp_path / "a.h5") as f:
        for name in ("a", "c", "m/b", "m/im", "z/b", "n/deep/b", "n/deep/im", "real/b"):
            assert np.array_equal(chaski.read(f"{tmp_path}/a.h5::{name}")[0], f[name]), name
    for name in ("round", "other", "nothing"):
        with pytest.raises(chaski.NotFoundError):
            chaski.read(f"{tmp_path}/a.h5::{name}")


def test_user_blocks_that_were_added_or_cut_off(tmp_path: Path) -> None:
    with write(tmp_path / "a.h5", 3, userblock_size=512) as f:
        f.create_dataset("name", data=["a", "b", "c"], dtype=h5py.string_dtype())
    whole = (tmp_path / "a.h5").read_bytes()
    for before in (b"", b"x" * 512, b"x" * 2048):
        (tmp_path / "b.h5").write_bytes(before + whole[512:])
        with h5py.File(tmp_path / "b.h5") as f:
            assert f["name"][0] == b"a"
        assert list(column(tmp_path / "b.h5", "name", "text", 3)) == ["a", "b", "c"]


@pytest.mark.parametrize("dtype", ["f4", "i8", "S4", "any length"])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0), ()])
def test_labels_without_rows(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    with write(tmp_path / "a.h5", 2) as f:
        f.create_dataset(
            "label", shape, dtype=h5py.string_dtype() if dtype == "any length" else dtype
        )
    kind = "number" if dtype in ("f4", "i8") else "text"
    with pytest.raises(chaski.Error) as said:
        column(tmp_path / "a.h5", "label", kind, 2)
    assert "panic" not in str(said.value)


def test_a_variable_may_have_the_name_of_a_dimension(tmp_path, binary) -> None:
    netcdf = pytest.importorskip("netCDF4")
    values = np.arange(3 * 2 * 4 * 5, dtype="u2").reshape(3, 2, 4, 5)
    with netcdf.Dataset(tmp_path / "a.nc", "w") as f:
        for folder in (f, f.createGroup("g")):
            for name, size in zip("nbyx", values.shape, strict=True):
                folder.createDimension(name, size)
            folder.createVariable("x", "u2", tuple("nbyx"))[:] = values
    for path in ("x", "g/x"):
        with chaski.load(f"{tmp_path}/a.nc::{path}", batch_size=3, shuffle=False) as loader:
            (batch,) = loader
        assert np.array_equal(batch["image"], values)


@pytest.mark.parametrize("dtype", ["i1", "<i4", ">i2", "u8", "<f4", ">f8"])
@pytest.mark.parametrize("how", [{}, {"chunks": (4,), "compression": "gzip"}])
def test_lists_of_any_length(tmp_path: Path, dtype: str, how: dict[str, Any]) -> None:
    rows, draw = 7, np.random.default_rng(1)
    want: list[list[float]] = [[] for _ in range(rows)]  # h5py reads ">i2" as if it were "<i2"
    numbers = draw.integers(0, 100, (rows, 2)).astype(dtype)
    with write(tmp_path / "a.h5", rows) as f:
        tags = f.create_dataset("tags", (rows,), dtype=h5py.vlen_dtype(np.dtype(dtype)), **how)
        pairs = f.create_dataset("pairs", (rows,), dtype=h5py.vlen_dtype(np.dtype(dtype)), **how)
        for row in range(rows):
            if row != 3:  # was never written, so it is empty
                want[row] = draw.integers(0, 100, row).astype(dtype).tolist()
                tags[row] = np.array(want[row], dtype)
            pairs[row] = numbers[row]
    assert np.array_equal(column(tmp_path / "a.h5", "pairs", "number", rows), numbers)
    fields = {"image": "image", "tags": chaski.Field(column="tags", kind="class")}
    options: dict[str, Any] = {"batch_size": rows, "shuffle": False}
    options["rows"] = chaski.Rows(dims="n y x")
    with chaski.load(tmp_path / "a.h5", fields=fields, **options) as loader:
        (batch,) = loader
        classes = [float(name) for name in loader.classes["tags"]]
    got = [[classes[k] for k in np.flatnonzero(row)] for row in batch["tags"]]
    assert [sorted(row) for row in got] == [sorted({*row}) for row in want]
    with pytest.raises(chaski.Error, match="a list of 0 numbers, and others have 1"):
        column(tmp_path / "a.h5", "tags", "number", rows)
