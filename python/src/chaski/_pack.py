"""What commands write: containers of rows in memory, catalogs of STAC items."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaski import taco
from chaski._calls import entry
from chaski._command import command
from chaski._plain import Path as _Path
from chaski._plain import absolute, as_path, json_text
from chaski.errors import SpecError

if TYPE_CHECKING:
    import pyarrow


@entry
def pack(
    samples: _Path | Sequence[_Path] | Iterable[Mapping[str, Any]] | Any,
    output: _Path,
    collection: _Path | Mapping[str, Any] | None = None,
    *,
    form: str = "auto",
    columns: Sequence[str] = (),
) -> taco.Dataset:
    """Writes a container of TACO 2 or 3, and returns its dataset.

        chaski.pack(
            [{"id": "a", "path": "a.tif", "cloud": 3},
             {"id": "b", "path": "b.tif", "cloud": 8}],
            "chips.tacozip",
            {"id": "chips", "dataset_version": "1.0", "description": "Chips",
             "licenses": ["MIT"], "providers": [{"name": "Ana"}], "tasks": ["other"]},
            columns=["stac", "index"],
        )

    Args:
        samples: dicts with "id", "path" (a file, its bytes, or for a folder a list of such dicts)
            and metadata columns; a table of pyarrow, pandas or polars, where "id" has the ids
            from level 0 down ("tile_0/img.tif") and "path" a file, or null for a folder; or the
            path of such a table, of a directory of files, or of containers to copy.
        output: the container to write: its name says the form, such as "chips.tacozip" or
            "chips.taco3.zip"; any other is a folder.
        collection: members of COLLECTION.json, or a file with them (YAML or JSON). "columns",
            "labels", "optical" and "split" are as for `chaski pack --collection`.
        form: as `chaski pack --form`: "zip", "folder", "taco3", ...
        columns: extensions to compute, as `chaski pack --columns`: "stac", "index", ...
    """
    listed = columns if isinstance(columns, str) else ",".join(columns)
    with tempfile.TemporaryDirectory() as folder:
        table, about = f"{folder}/samples.parquet", f"{folder}/collection.json"
        if isinstance(collection, Mapping):
            Path(about).write_text(json_text("collection", collection))
            collection = about
        elif collection is not None:
            as_path("collection", collection)
        command(
            "pack",
            *_sources(samples, folder, table),
            named={"samples": table, "collection": about},
            columns=listed or None,
            output=output,
            form=form,
            collection=collection,
        )
    return taco.load(output)


@entry
def stac(
    items: str | os.PathLike[str] | Mapping[str, Any] | Iterable[Any] | Any,
    out: str | os.PathLike[str],
    assets: Sequence[str] | Mapping[str, str],
    *,
    drop_missing: bool = False,
    skip_bad: bool = False,
) -> Path:
    """Writes a catalog of the assets of STAC items: one row an item, a raster field an asset.

    The header of every asset is read once (one request, if it is remote), so that later runs open
    none for it. Numbers, strings and times of the items become columns: "datetime",
    "eo:cloud_cover", ...

        items = client.search(collections=["sentinel-2-l2a"], bbox=bbox).item_collection()
        chaski.stac(items, "scenes.parquet", ["B04", "B08"])
        chaski.load("scenes.parquet", batch_size=8, fields={"B04": "B04"}, window=256)

    Args:
        items: an ItemCollection as a dict, or as an object with `to_dict` (pystac, pystac-client);
            a list of such items; or the path of a file (JSON, JSON lines, STAC-GeoParquet).
        out: the catalog to write, a Parquet file.
        assets: names of assets; or names of fields, with the name of the asset of each.
        drop_missing: leave out items that lack one of the assets, rather than raise.
        skip_bad: leave out items with an asset that cannot be read.

    Returns:
        The path of the catalog.
    """
    named = assets if isinstance(assets, Mapping) else {a: a for a in assets}
    if isinstance(assets, str) or not named:
        raise SpecError(f"assets is {assets!r}: it must be a list of names, or a dict")
    fields = [f"{field}={asset}" for field, asset in named.items()]
    path = Path(absolute(out))
    if path.suffix.lower() != ".parquet":
        raise SpecError(
            f"out is {os.fspath(out)!r}: it is a Parquet file, so it must end in .parquet"
        )
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/items.json"
        if isinstance(items, str | os.PathLike):
            if os.path.isdir(items):
                raise SpecError(f"items is the folder {os.fspath(items)!r}: it must be a file")
        else:
            Path(file).write_text(json_text("items", _items(items)))
            items = file
        command(
            "index",
            items,
            named={"items": file},
            skip_bad=skip_bad,
            output=path,
            field=fields,
            drop_missing=drop_missing,
        )
    return path


def _sources(samples: Any, folder: str, file: str) -> Sequence[_Path]:
    """Returns what `chaski pack` takes: paths, or the file of a table that is written."""
    if isinstance(samples, str | os.PathLike):
        return [samples]
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not isinstance(samples, Mapping) and not hasattr(samples, "__arrow_c_stream__"):
        given = list(samples) if isinstance(samples, Iterable) else [samples]
        if given and all(isinstance(s, str | os.PathLike) for s in given):
            return given
        rows = list(_rows(given, "", folder))
        if not rows:
            raise SpecError("samples is empty: a container has at least one sample")
        names = dict.fromkeys(name for row in rows for name in row)
        samples = {name: [row.get(name) for row in rows] for name in names}
    try:
        table: pyarrow.Table = pa.table(samples)
    except (TypeError, ValueError, pa.ArrowException) as e:
        raise SpecError(f"samples are not a table with columns id and path: {e}") from None
    if missing := {"id", "path"}.difference(table.column_names):
        raise SpecError(f"samples have no column {min(missing)}: a table has id and path")
    # pandas names so an index that has no name, such as one of rows that were filtered.
    junk = [name for name in table.column_names if re.fullmatch(r"__index_level_\d+__", name)]
    table = table.drop_columns(junk)
    at = table.column_names.index("path")
    files = [_absolute(p) if p else None for p in table.column(at).to_pylist()]
    pq.write_table(table.set_column(at, "path", pa.array(files, pa.string())), file)
    return [file]


def _rows(samples: Any, above: str, folder: str) -> Iterable[dict[str, Any]]:
    """Yields a row for each dict and those below it. Bytes become files of the folder."""
    for i, sample in enumerate(samples):
        if not isinstance(sample, Mapping) or not {"id", "path"} <= sample.keys():
            raise SpecError(f"samples[{i}] is {sample!r:.100}: it must be a dict with id and path")
        path, name = sample["path"], sample["id"]
        if not isinstance(name, str | int) or "/" in str(name):
            raise SpecError(f"samples[{i}] has id {name!r:.99}: it must be text without /")
        row = {**sample, "id": f"{above}{name}"}
        if isinstance(path, bytes | bytearray | memoryview):
            handle, row["path"] = tempfile.mkstemp(dir=folder)
            with open(handle, "wb") as file:
                file.write(path)
        elif isinstance(path, str | os.PathLike):
            row["path"] = os.fspath(path)
        elif path is None or isinstance(path, Iterable):
            row["path"] = None
        else:
            raise SpecError(f"samples[{i}] has path {path!r:.99}: it must be a file, bytes or rows")
        yield row
        if row["path"] is None:
            yield from _rows(path or [], f"{row['id']}/", folder)


def _absolute(path: Any) -> str:
    if not isinstance(path, str):
        raise SpecError(f"samples have path {path!r:.99}: a table has names of files or null")
    return absolute(path)


def _items(items: Any) -> Any:
    """Returns items as JSON holds them."""
    if hasattr(items, "to_dict"):
        return items.to_dict()
    if isinstance(items, Mapping):
        return dict(items)
    if isinstance(items, Iterable) and not isinstance(items, str | bytes):
        return [_items(i) for i in items]
    raise SpecError(
        f"items holds {items!r:.100}: it must be the path of one file, or STAC items, as dicts or "
        "with to_dict"
    )
