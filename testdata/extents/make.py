"""Writes folders with two containers and a TACOLLECTION.json each with tacotoolbox.

    python make.py      needs tools/interop/taco.txt

sides has centroids on both sides of longitude 0, middles samples with and without an end, both the
columns of STAC and of ISTAC, starts no column of middles. Places and times are invented.
"""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import shapely
import tacotoolbox
from tacotoolbox._tacollection import create_tacollection
from tacotoolbox.sample.datamodel import Sample
from tacotoolbox.sample.extensions.istac import ISTAC
from tacotoolbox.sample.extensions.stac import STAC
from tacotoolbox.taco.datamodel import Provider, Taco
from tacotoolbox.tortilla.datamodel import Tortilla

HERE = Path(__file__).resolve().parent


def micros(day):
    """The first microsecond of a day, or None."""
    return day and int(dt.datetime.fromisoformat(day + "T00:00:00+00:00").timestamp()) * 10**6


def stac(lon, lat, start, end=None):
    """Columns of a raster of 2 x 2 pixels whose middle is at (lon, lat)."""
    corner = (lon - 0.5, 0.5, 0, lat + 0.5, 0, -0.5)
    return STAC(
        crs="EPSG:4326",
        tensor_shape=(1, 2, 2),
        geotransform=corner,
        time_start=micros(start),
        time_end=micros(end),
    )


def istac(lon, lat, start):
    """Columns of a square footprint around (lon, lat)."""
    square = shapely.box(lon - 1, lat - 1, lon + 1, lat + 1).wkb
    return ISTAC(crs="EPSG:4326", geometry=square, time_start=micros(start))


def plain(lon, lat, start):
    """A centroid and a start alone."""
    types = {"stac:centroid": pa.binary(), "stac:time_start": pa.timestamp("us")}
    values = [shapely.Point(lon, lat).wkb, micros(start)]
    columns = [pa.array([v], t) for v, t in zip(values, types.values(), strict=True)]
    return pa.table(columns, schema=pa.schema(types))


COLLECTIONS = {
    "sides": {
        "a": [
            [stac(-5, 50, "2020-01-01")],
            [stac(12, 51, "2020-02-01")],
            [stac(10, 52, "2020-03-01")],
        ],
        "b": [
            [stac(1, 0, "2020-01-01")],
            [stac(-12, 1, "2020-02-01")],
            [stac(-30, 2, "2020-03-01")],
        ],
    },
    "middles": {
        "a": [[stac(10, 50, "2020-01-01", "2020-01-11")], [stac(12, 51, "2030-02-01")]],
        "b": [[stac(100, 0, "2010-01-01")], [stac(102, 1, "2021-02-01", "2021-02-03")]],
    },
    "both": {
        "a": [[stac(10, 50, "2020-01-01"), istac(80, 50, "2030-01-01")]],
        "b": [[stac(100, 0, "2021-01-01"), istac(-80, 50, "2031-01-01")]],
    },
    "starts": {
        "a": [[plain(10, 50, "2020-01-01")], [plain(12, 51, "2020-02-01")]],
        "b": [[plain(-100, 0, "2021-01-01")], [plain(-102, 1, "2021-02-01")]],
    },
}


def main():
    """Writes the folders."""
    for folder, parts in COLLECTIONS.items():
        paths = []
        (HERE / folder).mkdir(exist_ok=True)
        for name, rows in parts.items():
            samples = []
            for i, columns in enumerate(rows):
                sample = Sample(id=f"{name}{i}", path=f"{name}{i}".encode())
                for c in columns:
                    sample.extend_with(c)
                samples.append(sample)
            taco = Taco(
                tortilla=Tortilla(samples=samples),
                id=name,
                dataset_version="1.0.0",
                description="Places and times.",
                licenses=["CC-BY-4.0"],
                providers=[Provider(name="Somebody", roles=["producer"])],
                tasks=["other"],
            )
            paths.append(HERE / folder / f"{name}.tacozip")
            paths[-1].unlink(missing_ok=True)
            tacotoolbox.create(taco, paths[-1])
        document = HERE / folder / "TACOLLECTION.json"
        document.unlink(missing_ok=True)
        create_tacollection(paths, document)


if __name__ == "__main__":
    main()
