"""`chaski card` as the libraries of its forms read it. A test is skipped without its library."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

COAST = Path(__file__).parents[2] / "testdata/coast/coast.tacozip"


def card(binary, form):
    run = [binary, "card", "--to", form, "--year", "2026", COAST]
    return subprocess.run(run, check=True, capture_output=True, text=True).stdout


def test_croissant(binary, tmp_path):
    """The library finds no fault, and reads the rows of level 0 from the container."""
    mlc = pytest.importorskip("mlcroissant")
    shutil.copy(COAST, tmp_path)
    (tmp_path / "card.json").write_text(card(binary, "croissant"))
    dataset = mlc.Dataset(jsonld=str(tmp_path / "card.json"))
    assert not dataset.metadata.ctx.issues.errors
    rows = list(dataset.records("sample"))
    assert [r["sample/rank"] for r in rows] == list(range(12))


def test_stac(binary):
    """The collection is valid by the schemas of STAC that come with pystac."""
    pystac = pytest.importorskip("pystac")
    pytest.importorskip("jsonschema")
    collection = pystac.Collection.from_dict(json.loads(card(binary, "stac")))
    (schema,) = collection.validate()
    assert schema.endswith("collection-spec/json-schema/collection.json")
