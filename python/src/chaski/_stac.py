"""From the items of a STAC search to a catalog."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from chaski._engine import command, printed
from chaski._plain import json_text
from chaski.errors import SpecError


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

    Raises:
        SpecError: items has another type, or no asset is named.
        EngineError: an asset is missing or cannot be read; the message names it.
    """
    named = assets if isinstance(assets, Mapping) else {a: a for a in assets}
    if isinstance(assets, str) or not named:
        raise SpecError(f"assets is {assets!r}: it must be a list of names, or a dict")
    fields = [f"{field}={asset}" for field, asset in named.items()]
    path = Path(out).absolute()
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/items.json"
        if not isinstance(items, str | os.PathLike):
            Path(file).write_text(json_text("items", _plain(items)))
            items = file
        ran = command(
            "index", items, output=path, field=fields, drop_missing=drop_missing, skip_bad=skip_bad
        )
    printed(ran, items=file)
    return path


def _plain(items: Any) -> Any:
    """Returns items as JSON holds them."""
    if hasattr(items, "to_dict"):
        return items.to_dict()
    if isinstance(items, Mapping):
        return dict(items)
    if isinstance(items, Iterable):
        return [_plain(i) for i in items]
    raise SpecError(f"items holds {items!r}: it must hold STAC items, as dicts or with to_dict")
