"""Writes the containers beside this script with taco-eo 0.14.2 and cozip 2026.9.27, the original writers.

    pip install "taco-eo[writer]==0.14.2" cozip==2026.9.27 rasterio pyarrow && python make.py

expected.json has what taco-eo's own reader, rasterio and hashlib say of them.
"""

import datetime
import hashlib
import json
import shutil
import tempfile
from pathlib import Path

import cozip
import numpy as np
import pyarrow as pa
import rasterio
import taco
from pydantic import BaseModel
from rasterio.transform import from_origin

HERE = Path(__file__).parent
WORK = Path(tempfile.mkdtemp())
RND = np.random.default_rng(7)


class ML(BaseModel):
    __taco_namespace__ = "ml"
    split: str
    cloud: float | None = None


def raster(name: str, bands: int, side: int, place: tuple[float, float]) -> Path:
    path = WORK / name
    path.parent.mkdir(parents=True, exist_ok=True)
    profile = {
        "driver": "GTiff", "count": bands, "height": side, "width": side + 2, "dtype": "uint16",
        "crs": "EPSG:32718", "transform": from_origin(*place, 10, 10), "compress": "deflate",
        "tiled": True, "blockxsize": 16, "blockysize": 16,
    }
    with rasterio.open(path, "w", **profile) as d:
        d.write(RND.integers(0, 4000, (bands, side, side + 2), dtype=np.uint16))
    return path


def sample(i: int) -> taco.Sample:
    x, y = 500000 + i * 1000, 8000000.0
    assets = [
        taco.Asset(raster(f"{i}/image.tif", 3, 20, (x, y)), path="image.tif"),
        taco.Asset(raster(f"{i}/mask.tif", 1, 20, (x, y)), path="mask.tif"),
        taco.Asset(raster(f"{i}/before/B02.tif", 1, 20, (x, y)), path="before/B02.tif"),
    ]
    for n in range(1 + i % 3):
        assets.append(taco.Asset(raster(f"{i}/seq/t{n}.tif", 2, 12, (x, y)), path=f"seq/t{n}.tif"))
    when = datetime.datetime(2024, 1 + i, 3, tzinfo=datetime.timezone.utc)
    metadata = taco.Metadata(
        ml=ML(split="train" if i % 2 == 0 else "test", cloud=None if i == 3 else 10.5 * i),
        stac=taco.metadata.sample.STAC(
            centroid=taco.metadata.sample.Point(lon=-75.0 + i, lat=-18.0), datetime=when, proj_code="EPSG:32718", proj_shape=[20, 22],
            proj_transform=[10.0, 0.0, float(x), 0.0, -10.0, y],
        ),
    )
    return taco.Sample(id=f"sitio {i}", assets=assets, metadata=metadata)


def collection() -> taco.Collection:
    contract = taco.Contract(
        structure=["image.tif", "mask.tif", "before/B02.tif", "seq/t*[1,3].tif"],
        metadata=[taco.Level("sample", ml=ML, stac=taco.metadata.sample.STAC)],
    )
    return taco.Collection(
        contract=contract, id="scenes", description="Noise on a coast", licenses=["CC0-1.0"],
        providers=[{"name": "nobody"}],
    )


def write(name: str, numbers: list[int]) -> None:
    with taco.open_writer(collection(), HERE / name, overwrite=True) as w:
        for i in numbers:
            w.add(sample(i))
        w.run()


def expected(name: str) -> dict:
    data = taco.open_dataset(HERE / name)
    table = data.sql('SELECT * FROM dataset ORDER BY "taco:sample_index"')
    table = table if isinstance(table, pa.Table) else pa.table(table)
    rows, files = table.to_pylist(), {}
    for row in rows:
        for column, places in row.items():
            if not column.endswith("::location"):
                continue
            for n, place in enumerate(places if isinstance(places, list) else [places]):
                path = column.removesuffix("::location")
                path += f"{n}.tif" if isinstance(places, list) else ""
                with rasterio.open(place) as d:
                    pixels = d.read().astype("<u2")
                files[f"{row['id']}/{path}"] = [
                    list(pixels.shape), hashlib.sha256(pixels.tobytes()).hexdigest(), list(d.transform.to_gdal()),
                ]
    return {
        "columns": table.column_names,
        "ids": [r["id"] for r in rows],
        "cloud": [r["ml:cloud"] for r in rows],
        "files": files,
    }


def main() -> None:
    for old in ["scenes.zip", "scenes", "parts", "flat.zip"]:
        path = HERE / old
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    write("scenes.zip", [0, 1, 2, 3])
    write("scenes", [0, 2])
    (HERE / "parts").mkdir()
    for k in range(2):
        write(f"parts/p{k}.zip", [2 * k, 2 * k + 1])
    taco.consolidate([HERE / "parts/p0.zip", HERE / "parts/p1.zip"])
    tif = str(WORK / "0/image.tif")
    cozip.create(
        HERE / "flat.zip",
        pa.table({"name": ["a.tif", "sub/b.tif"], "path": [tif, tif], "split": ["train", "test"]}),
    )
    out = {name: expected(name) for name in ["scenes.zip", "scenes", "parts/.tacocat"]}
    (HERE / "expected.json").write_text(json.dumps(out, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
