"""Pages of TIFFs as bands and as steps of time, against tifffile and rasterio."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import nonempty
from helpers import web

import chaski
from chaski import Field, RandomWindow

tifffile = pytest.importorskip("tifffile")
rasterio = pytest.importorskip("rasterio")
pytestmark = pytest.mark.usefixtures("one_engine")

NATIVE: dict[str, Any] = {"dtype": "native"}


def rows(source: Any, field: Field, size: int = 1, **more: Any) -> np.ndarray:
    """The tensor of the first batch."""
    fields = {"image": field, **more.pop("fields", {})}
    with chaski.load(source, batch_size=size, shuffle=False, fields=fields, **more) as it:
        return np.asarray(next(iter(it))["image"])


def stack(shape: tuple[int, ...], dtype: str = "uint16", seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 99, shape).astype(dtype)


WRITTEN: list[tuple[str, dict[str, Any]]] = [
    ("uint8", {}),
    (">u2", {"byteorder": ">"}),
    ("float32", {"rowsperstrip": 7}),
    ("uint16", {"tile": (16, 32)}),
    ("uint16", {"tile": (32, 16), "compression": "zlib", "predictor": 2}),
    ("int16", {"compression": "zlib", "bigtiff": True, "rowsperstrip": 16}),
]


@pytest.mark.parametrize(("dtype", "options"), WRITTEN)
@pytest.mark.parametrize("shape", [(5, 50, 70), (3, 50, 70, 3), (4, 3, 50, 70)])
def test_pages_as_tifffile_reads_them(tmp_path, dtype, options, shape):
    """Grey pages, pages of interleaved bands and pages of planes: all, some, and windows."""
    path, x = tmp_path / "x.tif", stack(shape, dtype)
    if len(shape) == 3:
        form = {"photometric": "minisblack"}
    elif shape[-1] == 3:
        form = {"photometric": "rgb"}
    else:
        form = {"photometric": "rgb", "planarconfig": "separate"}
    with tifffile.TiffWriter(
        path, bigtiff=options.get("bigtiff", False), byteorder=options.get("byteorder")
    ) as f:
        kept = {k: v for k, v in options.items() if k not in ("bigtiff", "byteorder")}
        f.write(x, metadata=None, **form, **kept)
    pages = np.stack([tifffile.imread(path, key=k) for k in range(shape[0])])
    assert np.array_equal(pages, x)
    if len(shape) == 3:
        want = pages[:, None]
    elif shape[-1] == 3:
        want = pages.transpose(0, 3, 1, 2)
    else:
        want = pages
    count, bands = want.shape[:2]
    flat = want.reshape(-1, 50, 70)
    assert np.array_equal(rows(path, Field(pages="steps", **NATIVE))[0], want)
    assert np.array_equal(rows(path, Field(pages="bands", **NATIVE))[0], flat)
    assert np.array_equal(rows(path, Field(**NATIVE))[0], want[0])
    some = Field(pages="steps", times=[2, 0], bands=[bands - 1], **NATIVE)
    assert np.array_equal(rows(path, some)[0], want[[2, 0]][:, [bands - 1]])
    picked = [count * bands - 1, 0, bands]
    some = Field(pages="bands", bands=picked, **NATIVE)
    assert np.array_equal(rows(path, some)[0], flat[picked])
    windows = rows(
        path, Field(pages="steps", **NATIVE), 6, window=RandomWindow((9, 21), per_asset=6)
    )
    views = np.lib.stride_tricks.sliding_window_view(want, (9, 21), (2, 3))
    for window in nonempty(windows):
        found = (views.transpose(2, 3, 0, 1, 4, 5) == window).all((2, 3, 4, 5))
        assert found.any()


def gdal_pages(path: Path, x: np.ndarray, **profile: Any) -> None:
    """Writes pages (k, b, y, x) as GDAL's subdatasets."""
    place = rasterio.transform.from_origin(500_000, 4_000_000, 10, 10)
    for k, page in enumerate(x):
        kept = {"driver": "GTiff", "count": x.shape[1], "dtype": x.dtype, "crs": "EPSG:32630"}
        kept |= {"height": x.shape[2], "width": x.shape[3], "transform": place, **profile}
        each = {name: v[k] if isinstance(v, list) else v for name, v in kept.items()}
        name, scale = each.pop("description", None), each.pop("scale", None)
        with rasterio.open(path, "w", **each, append_subdataset=k > 0) as f:
            f.write(page)
            if name:
                f.set_band_description(1, name)
            if scale:
                f.scales = [scale]


TILED: dict[str, Any] = {"tiled": True, "blockxsize": 32, "blockysize": 16}
CODED: list[tuple[str, dict[str, Any]]] = [
    ("uint16", {"compress": "lzw", "predictor": 2, **TILED}),
    ("float32", {"compress": "deflate", "predictor": 3, "blockysize": 7}),
    ("float32", {"compress": "zstd", "predictor": 2, **TILED}),
    ("int16", {"compress": "packbits", "bigtiff": "yes"}),
    ("uint8", {"compress": "webp", "webp_lossless": "yes"}),
    ("uint8", {"compress": "jpeg", **TILED}),
    ("uint8", {"nbits": 4}),
    ("float32", {"compress": "lerc_zstd"}),
]


@pytest.mark.parametrize(("dtype", "options"), CODED)
@pytest.mark.parametrize("interleave", ["pixel", "band"])
@pytest.mark.parametrize("bands", [1, 3])
def test_pages_as_gdal_reads_them(tmp_path, dtype, options, interleave, bands):
    if options.get("compress") == "webp" and (bands, interleave) != (3, "pixel"):
        pytest.skip("WebP has three bands")
    path, x = tmp_path / "x.tif", stack((3, bands, 50, 70), dtype) % 16
    gdal_pages(path, x, interleave=interleave, **options)
    want = []
    for k in range(3):
        with rasterio.open(f"GTIFF_DIR:{k + 1}:{path}") as f:
            want.append(f.read())
    want = np.stack(want)
    assert options.get("compress") in ("jpeg", "lerc_zstd") or np.array_equal(want, x)
    assert np.array_equal(rows(path, Field(pages="steps", **NATIVE))[0], want)
    flat = want.reshape(-1, 50, 70)
    assert np.array_equal(rows(path, Field(pages="bands", **NATIVE))[0], flat)
    some = Field(pages="steps", times=[2, 1], bands=[bands - 1, 0], **NATIVE)
    assert np.array_equal(rows(path, some)[0], want[[2, 1]][:, [bands - 1, 0]])


def test_subdatasets_of_gdal(tmp_path):
    """Nodata, names, validity and the place of the pages are those that rasterio reads."""
    path, x = tmp_path / "x.tif", stack((4, 64, 64))
    x[1, :9] = x[3, 5:] = 7
    profile = {"nodata": 7, "tiled": True, "blockxsize": 16, "blockysize": 16, "compress": "lzw"}
    gdal_pages(path, x[:, None], **profile, description=["a", "b", "c", "d"])
    valid = []
    for k in range(4):
        with rasterio.open(f"GTIFF_DIR:{k + 1}:{path}") as f:
            assert np.array_equal(f.read(1), x[k])
            valid.append(f.read_masks(1) > 0)
    fields = Field(pages="bands", bands=["d", "a"], fill=0, validity="ok", **NATIVE)
    with chaski.load(path, batch_size=1, fields={"image": fields}) as it:
        b = next(iter(it))
        assert np.array_equal(np.asarray(b["ok"])[0], np.stack(valid)[[3, 0]])
        assert np.array_equal(np.asarray(b["image"])[0], np.where(valid, x, 0)[[3, 0]])
    stats = chaski.stats(path, fields={"image": Field(pages="bands", **NATIVE)})
    one = chaski.stats(path, fields={"image": Field(pages="steps", **NATIVE)})
    kept = [page[ok] for page, ok in zip(x, valid, strict=True)]
    assert [s["mean"] for s in stats["fields"]["image"]["bands"]] == pytest.approx(
        [v.mean() for v in kept]
    )
    assert one["fields"]["image"]["bands"][0]["mean"] == pytest.approx(np.concatenate(kept).mean())
    window = chaski.GeoWindow(size_m=160, resolution=10)
    for got in nonempty(rows(tmp_path, Field(pages="bands", **NATIVE), 3, window=window)):
        views = np.lib.stride_tricks.sliding_window_view(x, (16, 16), (1, 2))
        assert (views.transpose(1, 2, 0, 3, 4) == got).all((2, 3, 4)).any()


@pytest.mark.parametrize(
    ("differ", "message"),
    [
        ({"nodata": [7, 7, 8]}, "page 2.*its nodata is 8, and 7 in the first page"),
        ({"compress": ["lzw", "deflate", "lzw"]}, "page 1.*its compression is deflate, and lzw"),
        ({"predictor": [1, 1, 2], "compress": "lzw"}, "page 2.*its predictor is 2, and 1"),
        ({"blockysize": [8, 8, 16]}, "page 2.*its chunk is"),
        ({"height": [20, 21, 20]}, "page 1.*its height is 21, and 20"),
        ({"width": [31, 31, 30]}, "page 2.*its width is 30, and 31"),
        ({"dtype": ["uint8", "uint8", "uint16"]}, "page 2.*its dtype is uint16, and uint8"),
        ({"scale": [0.5, 0.5, 0.25]}, "page 2.*its scales and offsets"),
        ({"crs": ["EPSG:32630", "EPSG:32631", "EPSG:32630"]}, "page 1.*its EPSG code is 32631"),
        (
            {"transform": [rasterio.transform.from_origin(k, 0, 1, 1) for k in (0, 0, 1)]},
            "page 2.*its place",
        ),
    ],
)
def test_unlike_pages(tmp_path, differ, message):
    path, x = tmp_path / "x.tif", stack((3, 20, 31), "uint8")
    for k in range(3):
        each = {name: v[k] if isinstance(v, list) else v for name, v in differ.items()}
        page = np.zeros((each.get("height", 20), each.get("width", 31)), each.get("dtype", "uint8"))
        other = tmp_path / f"{k}.tif"
        gdal_pages(other, page[None, None], **each)
    shutil.copy(tmp_path / "0.tif", path)
    for k in (1, 2):
        each = {name: v[k] if isinstance(v, list) else v for name, v in differ.items()}
        with rasterio.open(tmp_path / f"{k}.tif") as f:
            profile, data, scales = f.profile, f.read(), f.scales
        profile |= {name: v for name, v in each.items() if name in ("predictor", "blockysize")}
        with rasterio.open(path, "w", **profile, append_subdataset=True) as f:
            f.write(data)
            if scales != (1.0,):
                f.scales = scales
    assert x.shape[0] == 3
    for pages in ("bands", "steps"):
        with pytest.raises(chaski.Error, match=message):
            rows(path, Field(pages=pages, **NATIVE))
    assert rows(path, Field(**NATIVE)).shape == (1, 1, 20, 31)


def test_nothing_is_left_out(tmp_path):
    """Pages that cannot be read, or are not there as pages, are an error that names them."""
    x = stack((3, 32, 32), "uint8")
    broken, masked = tmp_path / "broken.tif", tmp_path / "masked.tif"
    tifffile.imwrite(broken, x, photometric="minisblack", metadata=None)
    with tifffile.TiffFile(broken) as f:
        last = f.pages[2].offset
    broken.write_bytes(broken.read_bytes()[: last + 30])
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        gdal_pages(masked, x[:, None])
        with rasterio.open(masked, "r+") as f:
            f.write_mask(x[0] > 9)
    hyper, truncated = tmp_path / "hyper.tif", tmp_path / "truncated.tif"
    text = "ImageJ=1.53t\nimages=3\nslices=3\n"
    tifffile.imwrite(hyper, x[0], byteorder=">", description=text, metadata=None)
    hyper.write_bytes(hyper.read_bytes() + x[1:].tobytes())
    assert np.array_equal(tifffile.imread(hyper), x)
    tifffile.imwrite(truncated, x, photometric="minisblack", truncate=True)
    beside = tmp_path / "beside.tif"
    tifffile.imwrite(beside, x, photometric="minisblack", metadata=None)
    with (
        rasterio.Env(GDAL_TIFF_INTERNAL_MASK=False),
        rasterio.open(beside, "r+") as f,
    ):
        f.write_mask(x[0] > 9)
    for path, message in (
        (broken, "ifd 2"),
        (masked, "pages with masks are not read as one image"),
        (hyper, "more images follow"),
        (truncated, "more images follow"),
        (beside, "which have no mask beside it"),
    ):
        for pages in ("bands", "steps"):
            with pytest.raises(chaski.Error, match=message):
                rows(path, Field(pages=pages, **NATIVE))
        assert np.array_equal(rows(path, Field(**NATIVE))[0], x[:1])
    with pytest.raises(chaski.SpecError, match='it must be "bands" or "steps"'):
        rows(broken, Field(pages="both"))  # type: ignore[arg-type]


def test_alpha_of_pages(tmp_path):
    """Alpha of pages is a band like the others; ImageJ's planes are pages where they are."""
    x = stack((3, 20, 30, 4), "uint8")
    tifffile.imwrite(tmp_path / "x.tif", x, photometric="rgb", extrasamples=["unassalpha"])
    got = rows(tmp_path / "x.tif", Field(pages="steps", fill=0, **NATIVE))
    assert np.array_equal(got[0], x.transpose(0, 3, 1, 2))
    planes = stack((2, 3, 20, 30), "uint16")
    tifffile.imwrite(tmp_path / "j.tif", planes, imagej=True, metadata={"axes": "TCYX"})
    got = rows(tmp_path / "j.tif", Field(pages="bands", **NATIVE))
    assert np.array_equal(got[0], planes.reshape(6, 20, 30))


def test_one_page_and_other_formats(tmp_path):
    x = stack((1, 20, 30))
    tifffile.imwrite(tmp_path / "a.tif", x[0])
    np.save(tmp_path / "b.npy", x)
    for pages in ("bands", "steps"):
        for name in ("a.tif", "b.npy"):
            got = rows(tmp_path / name, Field(pages=pages, **NATIVE))[0]
            assert np.array_equal(got, x if pages == "bands" else x[:, None])


def test_many_pages(tmp_path):
    """More pages than the directories that a file otherwise has, and more than are read."""
    path, x = tmp_path / "x.tif", stack((700, 8, 8), "uint8")
    tifffile.imwrite(path, x, photometric="minisblack", metadata=None)
    got = rows(path, Field(pages="steps", times=[699, 3], **NATIVE))
    assert np.array_equal(got[0, :, 0], x[[699, 3]])
    with tifffile.TiffWriter(tmp_path / "many.tif") as f:
        for _ in range(4097):
            f.write(x[0, :1, :1], metadata=None)
    with pytest.raises(chaski.Error, match="more than 4096 directories"):
        rows(tmp_path / "many.tif", Field(pages="steps", **NATIVE))


ABOUT = {
    "id": "x",
    "dataset_version": "1",
    "description": "x",
    "licenses": ["MIT"],
    "providers": [{"name": "x"}],
    "tasks": ["other"],
}


@pytest.mark.parametrize("pages", ["bands", "steps"])
def test_wherever_the_files_lie(tmp_path, binary, pages):
    """Files, tables, catalogs, containers, cells and URLs yield the same; small and large files."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    folder, want = tmp_path / "files", []
    folder.mkdir()
    for k in range(2):
        x = stack((3, 400 if k else 24, 400), seed=k)
        tifffile.imwrite(folder / f"{k}.tif", x, photometric="minisblack", metadata=None)
        want.append((x[:, None] if pages == "steps" else x)[..., :24, :24])
    files = [folder / "0.tif", folder / "1.tif"]
    line = [binary, "index", "-o", tmp_path / "catalog.parquet", folder]
    subprocess.run(line, check=True, capture_output=True)
    (tmp_path / "table.csv").write_text("\n".join(["image", *map(str, files)]))
    samples = [{"id": path.stem, "path": path} for path in files]
    chaski.pack(samples, tmp_path / "c.tacozip", ABOUT)
    chaski.pack(samples, tmp_path / "folder", ABOUT)
    chaski.pack(samples, tmp_path / "indexed.tacozip", ABOUT, columns=["index"])
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    cells = pa.array([{"bytes": path.read_bytes(), "path": None} for path in files], kind)
    pq.write_table(pa.table({"image": cells}), tmp_path / "cells.parquet")
    field, corner = Field(pages=pages, **NATIVE), chaski.Grid(24)
    with web(tmp_path) as (url, _):
        (tmp_path / "urls.csv").write_text(
            "\n".join(["image", *(f"{url}/files/{path.name}" for path in files)])
        )
        chips = ("files", "catalog.parquet", "table.csv", "c.tacozip", "folder")
        for name in (*chips, "indexed.tacozip", "cells.parquet", "urls.csv"):
            source = tmp_path / name
            got = rows(source, field, 18, window=corner)
            assert np.array_equal(got[0], want[0]), name
            assert any(np.array_equal(x, want[1]) for x in got[1:]), name
        got = rows(f"{url}/c.tacozip", field, 18, window=corner)
        assert np.array_equal(got[0], want[0])
    pair = Field(pattern="{id}.tif", pages=pages, **NATIVE)
    assert np.array_equal(rows(folder, pair, window=corner)[0], want[0])
    column = Field("image", pages=pages, **NATIVE)
    assert np.array_equal(rows(tmp_path / "table.csv", column, window=corner)[0], want[0])
    line = [binary, "index", "-o", tmp_path / "members.parquet", tmp_path / "c.tacozip"]
    subprocess.run(line, check=True, capture_output=True)
    with pytest.raises(chaski.UnsupportedError, match="name the container as the source"):
        rows(tmp_path / "members.parquet", field, window=corner)
    assert chaski.read(files[0]).shape == (1, 24, 400)


def test_copies_and_changes(tmp_path):
    """A file with another time is the same file; another page in the middle makes it another."""
    x = stack((3, 64, 64))
    path, other = tmp_path / "x.tif", tmp_path / "other.tif"
    gdal_pages(path, x[:, None], compress="deflate")
    with chaski.load(path, batch_size=1, fields={"image": Field(pages="steps", **NATIVE)}) as it:
        assert np.array_equal(np.asarray(next(iter(it))["image"])[0, :, 0], x)
        os.utime(path, (1, 1))
        assert np.array_equal(np.asarray(next(iter(it))["image"])[0, :, 0], x)
        gdal_pages(other, x[:, None] * np.uint16([[[[1]]], [[[0]]], [[[1]]]]), compress="deflate")
        data = other.read_bytes()
        assert len(data) < path.stat().st_size
        path.write_bytes(data + bytes(path.stat().st_size - len(data)))
        os.utime(path, (2, 2))
        with pytest.raises(chaski.CorruptError, match="rewritten since"):
            next(iter(it))


def test_stacks_and_overviews(tmp_path):
    """Pages of the files of a stack are its bands; overviews of one page are of no stack."""
    x = stack((2, 3, 64, 64))
    for k in range(2):
        gdal_pages(tmp_path / f"{k}.tif", x[k][:, None], nodata=200)
        for page in range(3):
            gdal_pages(tmp_path / f"{k}-{page}.tif", x[k][page, None, None], nodata=200)
        with rasterio.open(tmp_path / f"{k}.tif", "r+") as f:
            f.build_overviews([2])
    frame = [{"a": str(tmp_path / "0.tif"), "b": str(tmp_path / "1.tif")}]
    got = rows(frame, Field(columns=["a", "b"], pages="bands", **NATIVE))
    assert np.array_equal(got[0], x.reshape(6, 64, 64))
    window = chaski.GeoWindow(size_m=320, resolution=20)
    got = rows(tmp_path / "0.tif", Field(pages="bands", dtype="float32"), window=window)
    apart = [rows(tmp_path / f"0-{k}.tif", Field(dtype="float32"), window=window) for k in range(3)]
    assert np.array_equal(got, np.concatenate(apart, axis=1))


def test_palettes(tmp_path):
    """Steps of classes are not blended, and have the dtype of the file; bands are refused."""
    x = stack((3, 32, 32), "uint8")
    colours = np.zeros((3, 256), "uint16")
    path = tmp_path / "x.tif"
    tifffile.imwrite(path, x, photometric="palette", colormap=colours, metadata=None)
    got = rows(path, Field(pages="steps"))
    assert got.dtype == np.uint8
    assert np.array_equal(got[0, :, 0], x)
    got = rows(
        path,
        Field(pages="steps", dtype="float32"),
        window=chaski.ResizedWindow(64, scale=(1, 1), ratio=1, of_asset=True),
    )
    assert np.array_equal(got[0, :, 0], x.repeat(2, 1).repeat(2, 2))
    with pytest.raises(chaski.UnsupportedError, match="take them as steps"):
        rows(path, Field(pages="bands"))


@pytest.mark.parametrize("transport", ["auto", "grpc"])
def test_one_of_the_sources(tmp_path, transport):
    """A source of a mixture has pages; the other has images with as many bands."""
    x, y = stack((4, 3, 32, 32), seed=1), stack((4, 3, 32, 32), seed=2)
    for name, images in (("pages", x), ("images", y)):
        (tmp_path / name).mkdir()
        for k, image in enumerate(images):
            form = {"photometric": "minisblack"}
            if name == "images":
                form |= {"planarconfig": "separate"}
            tifffile.imwrite(tmp_path / name / f"{k}.tif", image, metadata=None, **form)
    paged = chaski.Source(tmp_path / "pages", fields={"image": Field(pages="bands")})
    mixed = chaski.Mixture({"pages": paged, "images": chaski.Source(tmp_path / "images")})
    engine = chaski.Engine(transport=transport)
    seen = {"pages": 0, "images": 0}
    with chaski.load(mixed, batch_size=8, fields={"image": Field(**NATIVE)}, engine=engine) as it:
        for b in it:
            for image in np.asarray(b["image"])[np.asarray(b["valid"])]:
                seen["pages"] += any(np.array_equal(image, want) for want in x)
                seen["images"] += any(np.array_equal(image, want) for want in y)
    assert min(seen.values()) >= 2


@pytest.mark.parametrize("form", ["band", "pixel"])
def test_tiles_and_windows_with_little_nodata(tmp_path, binary, form):
    """Windows of tiles, windows without nodata in the picked page and band, and the plan."""
    x = stack((3, 2, 64, 64)) + 1
    x[1, 1, :, 40:] = 0
    x[0, :, 20:] = 0  # of a page that is not picked
    profile = {"nodata": 0, "tiled": True, "blockxsize": 16, "blockysize": 16}
    gdal_pages(tmp_path / "x.tif", x, interleave=form, **profile)
    field = Field(pages="steps", times=[1], bands=[1], **NATIVE)
    tiles = chaski.TileWindow(16, per_visit=1, tile=(16, 16), pool=4)
    views = np.lib.stride_tricks.sliding_window_view(x[1, 1], (16, 16))
    for window in nonempty(rows(tmp_path / "x.tif", field, 8, window=tiles)):
        assert (views == window[0]).all((2, 3)).any()
    run, coverage = tmp_path / "run.json", tmp_path / "x.coverage"
    with chaski.load(tmp_path, batch_size=1, fields={"image": field}) as it:
        run.write_text(json.dumps(it.spec))
    line = [binary, "stats", "--sampling", "--cell", "16", "-o", coverage, run]
    subprocess.run(line, check=True, capture_output=True)
    grid = chaski.Grid(16, max_nodata=0, coverage=coverage)
    with chaski.load(tmp_path, batch_size=16, fields={"image": field}, window=grid) as it:
        found = sum(int(np.asarray(b["valid"]).sum()) for b in it)
    assert found == 8  # of 16 windows those in the first 32 columns
    done = subprocess.run(
        [binary, "plan", "--json", run], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["steps"] == 1
    subprocess.run([binary, "verify", "--samples", run], check=True, capture_output=True)
    out = subprocess.run([binary, "explain", run], check=True, capture_output=True, text=True)
    assert "x.tif" in out.stdout


@pytest.mark.parametrize("pages", ["bands", "steps"])
@pytest.mark.parametrize("compression", ["zlib", None])
def test_strips_in_pieces(tmp_path, pages, compression):
    """Pages of one large strip of interleaved bands, which is decoded in pieces of rows."""
    x = stack((3, 200, 300, 3))
    path = tmp_path / "x.tif"
    form = {"compression": compression, "photometric": "rgb", "rowsperstrip": 200}
    tifffile.imwrite(path, x, metadata=None, **form)
    want = x.transpose(0, 3, 1, 2)
    if pages == "bands":
        want = want.reshape(9, 200, 300)
    engine = chaski.Engine(max_chunk=400_000 if compression is None else 20_000)
    got = rows(path, Field(pages=pages, **NATIVE), engine=engine)
    assert np.array_equal(got[0], want)
