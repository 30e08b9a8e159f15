"""Writes dates.tacozip with tacotoolbox, and answers.json with what tacoreader says of it.

    python make.py      needs tools/interop/taco.txt

Five samples roi_K, with three dates tD below each, and img.tif and label.tif below each date. Dates and files have a
time, files have statistics; all of these are invented. The rasters are those of ../coast/coast_dir.
"""

import contextlib
import datetime as dt
import io
import json
import logging
import random
from pathlib import Path

import pyarrow as pa
import tacoreader
import tacotoolbox
from tacotoolbox.sample.datamodel import Sample
from tacotoolbox.taco.datamodel import Curator, Provider, Taco
from tacotoolbox.tortilla.datamodel import Tortilla

HERE = Path(__file__).resolve().parent
CHIPS = HERE.parent / "coast" / "coast_dir" / "DATA"
RNG = random.Random(5)


def time(year):
    """A day of a year."""
    return dt.datetime(year, RNG.randint(1, 12), RNG.randint(1, 28), 10)


def statistics():
    """Numbers as geotiff:stats has them, of three bands."""
    bands = []
    for _ in range(3):
        least, middle, most = sorted(RNG.uniform(0, 3000) for _ in range(3))
        marks = sorted(RNG.uniform(least, most) for _ in range(4))
        bands.append([least, most, middle, RNG.uniform(1, 400), 100.0, *marks])
    return bands


def row(sample, **columns):
    """Adds columns (type, value) to a sample."""
    names = {"time": "stac:time_start", "shape": "stac:tensor_shape", "stats": "geotiff:stats"}
    fields = {names.get(k, k): (t, pa.array([v], t)) for k, (t, v) in columns.items()}
    schema = pa.schema([pa.field(name, t) for name, (t, _) in fields.items()])
    sample.extend_with(pa.table([v for _, v in fields.values()], schema=schema))
    return sample


def build():
    """Returns the dataset."""
    us, shape, stats = pa.timestamp("us"), pa.list_(pa.int64()), pa.list_(pa.list_(pa.float32()))
    samples = []
    for k in range(5):
        dates = []
        for d in range(3):
            tile, files = CHIPS / f"tile_{(k + d) % 3:02}", []
            for path in (tile / "s2" / "img.tif", tile / "ref" / "label.tif"):
                image = path.name == "img.tif"
                size = [3, 24 * (k + 1), 24] if image else [1, 24, 24]
                one = Sample(id=path.name, path=path)
                numbers = statistics() if image and (k, d) != (4, 2) else None
                files.append(
                    row(one, time=(us, time(2019 + d)), shape=(shape, size), stats=(stats, numbers))
                )
            date = Sample(id=f"t{d}", path=Tortilla(samples=files))
            dates.append(row(date, time=(us, time(2018 + RNG.randrange(4)))))
        one = Sample(id=f"roi_{k}", path=Tortilla(samples=dates))
        samples.append(row(one, rank=(pa.int64(), (3 * k) % 5)))
    return Taco(
        tortilla=Tortilla(samples=samples),
        id="dates",
        dataset_version="1.0.0",
        description="Five samples with three dates each.",
        licenses=["CC-BY-4.0"],
        providers=[Provider(name="Somebody", roles=["producer"])],
        curators=[Curator(name="Someone")],
        keywords=["coast", "dates"],
        tasks=["classification"],
        title="Dates",
    )


def tree(frame):
    """The ids below a frame."""
    ids = frame._data.column("id").to_pylist()
    below = {}
    for i, name in enumerate(ids):
        at = frame.read(i)
        below[name] = at.split(",")[0] if isinstance(at, str) else tree(at)
    return below


def flat(table):
    """The rows of flatten."""
    names = ["l0:id", "l1:id", "l2:id", "gdal_vsi"]
    rows = zip(*(table.column(n).to_pylist() for n in names), strict=True)
    return [[a, b, c, v.split(",")[0]] for a, b, c, v in rows]


def main():
    """Writes both files."""
    logging.disable()
    (HERE / "dates.tacozip").unlink(missing_ok=True)
    with contextlib.redirect_stdout(io.StringIO()):
        tacotoolbox.create(build(), HERE / "dates.tacozip", output_format="zip")
    ds = tacoreader.load(str(HERE / "dates.tacozip"))
    answers = {"filters": [], "sorted": [], "stats": []}
    years = [f"{y}-01-01/{z}-12-31" for y in range(2018, 2022) for z in range(y, 2022)]
    for span in years:
        for level in (1, 2):
            found = ds.filter_datetime(span, level=level)
            answers["filters"].append(
                {
                    "span": span,
                    "level": level,
                    "tree": tree(found.data),
                    "flatten": sorted(flat(found.flatten())),
                    "rsut": bool(found.is_rsut()),
                }
            )
    for by, down, most in (
        ("l2:stac:time_start", False, 7),
        ("l1:stac:time_start", True, 4),
        ("l2:stac:time_start", True, None),
    ):
        found = tacoreader.load(str(HERE / "dates.tacozip"))  # sort and limit change the dataset
        if most == 7:
            found = found.filter_datetime(years[0], level=1)
        found = found.sort(by, descending=down)
        if most is not None:
            found = found.limit(most)
        answers["sorted"].append([by, down, most, flat(found.flatten())])
    for name in ("mean", "std", "min", "max", "p25", "p50", "median", "p75", "p95"):
        for id in ("t0", "t2"):
            values = getattr(ds, f"stats_{name}")([0, 2], level=2, id=id).tolist()
            answers["stats"].append([name, id, values])
    for name in ("id", "version", "providers", "curators", "keywords", "title", "licenses"):
        answers[name] = getattr(ds, name)
    answers["data_raw"] = ds.data_raw._data.column("internal:gdal_vsi").to_pylist()
    answers["data_raw"] = [v.split(",")[0] for v in answers["data_raw"]]
    (HERE / "answers.json").write_text(json.dumps(answers, indent=1) + "\n")


main()
