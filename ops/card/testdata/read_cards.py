"""Reads the cards croissant.json and stac.json of coast.tacozip in a folder by the libraries of their forms."""

import json
import sys
from pathlib import Path

import mlcroissant
import pystac

folder = Path(sys.argv[1])

dataset = mlcroissant.Dataset(jsonld=str(folder / "croissant.json"))
assert not dataset.metadata.ctx.issues.errors, dataset.metadata.ctx.issues.errors
ranks = [row["sample/rank"] for row in dataset.records("sample")]
assert ranks == list(range(12)), ranks

collection = pystac.Collection.from_dict(json.loads((folder / "stac.json").read_text()))
(schema,) = collection.validate()
assert schema.endswith("collection-spec/json-schema/collection.json"), schema
