"""`chaski bench peers`, from a command line to its files, with the installed loaders."""

import json
import math
import subprocess
import sys
import xml.etree.ElementTree

import pytest
from conftest import ROOT

pytest.importorskip("torch")
pytest.importorskip("rasterio")

PEERS = ["chaski", "chaski-load", "rasterio"]


@pytest.mark.timeout(1800)  # a dozen processes import PyTorch
def test_one_command_measures_and_writes_the_report(tmp_path, binary):
    out = tmp_path / "report"
    command = [binary, "bench", "peers", "--quick"]
    command += ["--python", sys.executable, "--work", str(tmp_path / "work"), "-o", str(out)]
    command += ["--shapes", "index-1x64", "--peers", ",".join(PEERS), "--seconds", "0.05"]
    p = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert p.returncode == 0, p.stderr

    report = json.loads((out / "peers.json").read_text())
    assert report["settings"] == {"rounds": 1, "seconds": 0.05, "workers": 2, "quick": True}
    assert {"torch", "rasterio", "GDAL"} <= report["machine"]["versions"].keys()
    (shape,) = report["shapes"]
    assert [row["peer"] for row in shape["rows"]] == PEERS
    for row in shape["rows"]:
        assert row["status"] == "ok", row
        (measured,) = row["rounds"]
        assert row["samples_per_s"]["median"] == measured["samples_per_s"] > 0
    ours, _, base = (row["samples_per_s"]["median"] for row in shape["rows"])
    assert math.isclose(shape["rows"][0]["ratio"]["median"], ours / base)

    text = (out / "peers.md").read_text()
    assert text == p.stdout
    table = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    assert sorted(table) == sorted(["peer", *PEERS])
    assert (out / "peers.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert xml.etree.ElementTree.parse(out / "peers.svg").getroot().tag.endswith("svg")
