"""Each raster dataset of TorchGeo gives the same samples whether rasterio or the engine reads.

Files are made with the names that the classes look for. To have those of TorchGeo's own tests,
unpack the archives in the folder tests/data of its repository where they lie, and name that folder:

    CHASKI_TORCHGEO_DATA=DIR python -m pytest -s python/tests/test_torchgeo_classes.py

It prints a row for each class; those without files there have made ones.
"""

from __future__ import annotations

import inspect
import io
import os
import urllib.request
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torchgeo.datasets", reason="TorchGeo is not installed: make frameworks")

import geopandas
import pandas as pd
import pyproj
import rasters
import shapely
import torch
from conftest import nonempty
from rasterio.transform import from_origin
from torchgeo.datasets import RasterDataset
from torchgeo.datasets.mmflood import MMFloodComponent

from chaski.torchgeo import accelerate

pytestmark = pytest.mark.usefixtures("binary")

DATA = os.environ.get("CHASKI_TORCHGEO_DATA")
SIDE = 48
STATES = ("dc", "de", "md", "ny", "pa", "va", "wv")
LANDSAT = "_023032_20210622_20210629_02_T1_{}.TIF"
SENSORS = {"1": "LM01", "2": "LM02", "3": "LM03", "4MSS": "LM04", "4TM": "LT04", "5MSS": "LM04"}
SENSORS |= {"5TM": "LT05", "7": "LE07", "8": "LC08", "9": "LC09"}
# For each class its files, {} for a band, and its folder in TorchGeo's own data.
NAMES = {
    "AbovegroundLiveWoodyBiomassDensity": ("00N_000E.tif", "agb_live_woody_density"),
    "AgriFieldNetImage": (
        "ref_agrifieldnet_competition_v1_source_00c23_{}_10m.tif",
        "agrifieldnet/source",
    ),
    "AgriFieldNetMask": (
        "ref_agrifieldnet_competition_v1_labels_train_00c23.tif",
        "agrifieldnet/train_labels",
    ),
    "Airphen": ("zone.tif", "airphen"),
    "AsterGDEM": ("ASTGTMV003_N000000_dem.tif", "astergdem"),
    "CDL": ("2023_30m_cdls.tif", "cdl"),
    "CMSGlobalMangroveCanopy": ("Mangrove_agb_AndamanAndNicobar.tif", ""),
    **{
        f"Chesapeake{s.upper()}": (f"{s}_lulc_2018_2022-Edition.tif", "chesapeake/lulc")
        for s in STATES
    },
    "CopernicusEmbed": ("embed_map_310k.tif", "copernicus/embed"),
    "EUDEM": ("eu_dem_v11_E30N10.TIF", "eudem"),
    "EmbeddedSeamlessData": ("SDC30_EBD_V001_02VMN_2024.tif", "esd"),
    "EnMAP": (
        "ENMAP01-____L2A-DT0000001053_20220611T072305Z_002_V010400_20231221T134421Z-"
        "SPECTRAL_IMAGE_COG.tiff",
        "enmap",
    ),
    "Esri2020": ("00A_20200101-20210101.tif", "esri2020"),
    "GlobBiomass": (("N00E020_agb.tif", "N00E020_agb_err.tif"), "globbiomass"),
    "GlobalBuildingMap": ("GBM_v1_e000_n10_e005_n05.tif", "gbm"),
    "GlobalMangroveWatch": ("GMW_N01E001_2020_v3.tif", "globalmangrovewatch"),
    "GoogleSatelliteEmbedding": ("2020/x.tif", "gse"),
    "L7IrishImage": ("L71226098_09820011112.TIF", "l7irish"),
    "L7IrishMask": ("L7_p226_r98_newmask2015.TIF", "l7irish"),
    "L8BiomeImage": ("LC80420082013220LGN00.TIF", "l8biome"),
    "L8BiomeMask": ("LC80420082013220LGN00_fixedmask.TIF", "l8biome"),
    "LandCoverAIGeo": (("images/M-33.tif", "masks/M-33.tif"), "landcoverai"),
    **{
        f"Landsat{k}": (f"{v}_L2SP{LANDSAT}", "landsat8" if k == "8" else "")
        for k, v in SENSORS.items()
    },
    "MMFloodComponent": ("activations/EMSR000-0/DEM/EMSR000-0.tif", "mmflood"),
    "MetaCHM": ("chm.tif", ""),
    "NAIP": ("m_3807511_ne_18_060_20181104.tif", "naip"),
    "NCCM": ("CDL2017_clip.tif", "nccm"),
    "NLCD": ("Annual_NLCD_LndCov_2019_CU_C1V1.tif", "nlcd"),
    "OpenAerialMap": ("OAM-1.tif", ""),
    "PRISMA": ("PRS_L2D_STD_20191215092453_20191215092457_0003.tif", "prisma"),
    "PrestoEmbeddings": ("Togo_Presto_embeddings_v1.tif", "presto"),
    "Sentinel1": (
        "S1A_IW_20221204T161641_DVR_RTC30_G_gpuned_1AE1_{}.tif",
        "sentinel1/S1A_IW_20221204T161641_DVR_RTC30_G_gpuned_1AE1",
    ),
    "Sentinel2": ("R10m/T26EMU_20220414T110751_{}_10m.tif", "sentinel2"),
    "SouthAfricaCropType": (
        ("train/imagery/s2/1/2017_07_01/1_2017_07_01_{}_10m.tif", "train/labels/1.tif"),
        "south_africa_crop_type",
    ),
    "SouthAmericaSoybean": ("SouthAmerica_Soybean_2021.tif", "south_america_soybean"),
    "TesseraEmbeddings": ("grid_1.05_2.05_2024.tiff", "tessera"),
}
OPTIONS = {
    "Airphen": {"bands": ["B4", "B3", "B1"]},
    "CMSGlobalMangroveCanopy": {"country": "AndamanAndNicobar"},
    "CDL": {"years": [2023]},
    "GlobalMangroveWatch": {"years": [2020]},
    "NLCD": {"years": [2019]},
    "SouthAfricaCropType": {"bands": ["B02", "B03"]},
    "Sentinel1": {"bands": ["VV", "VH"]},
    "Sentinel2": {"bands": ["B02", "B03", "B04"], "res": 10},
}


def kinds():
    """Returns the classes of TorchGeo that can be made, by name."""

    def below(kind):
        for sub in kind.__subclasses__():
            if sub.__module__.startswith("torchgeo.") and sub.__name__ != "Sentinel":
                yield from ([] if inspect.isabstract(sub) else [sub])
            yield from below(sub)

    return {k.__name__: k for k in below(RasterDataset)}


def bands_of(kind, name):
    """Returns the names that {} stands for."""
    chosen = OPTIONS.get(name, {}).get("bands")
    return chosen or getattr(kind, "default_bands", None) or kind.all_bands


def make(root, name, kind):
    """Writes two files side by side for each one that a class looks for."""
    rng = np.random.default_rng(len(name))
    names, _ = NAMES[name]
    for n in [names] if isinstance(names, str) else names:
        one = "{}" in n or "masks" in n or "labels" in n or not kind.is_image
        bands = 1 if one else len(getattr(kind, "all_bands", ())) or 3
        for path in {n.format(b) for b in bands_of(kind, name)} if "{}" in n else {n}:
            x = rng.integers(1, 3000, (bands, SIDE, SIDE)).astype("uint16")
            if "mask" in n or "labels" in n or not kind.is_image:
                codes = (
                    [0, 64, 128, 192, 255] if name in ("L7IrishMask", "L8BiomeMask") else range(4)
                )
                x = rng.choice(codes, (bands, SIDE, SIDE)).astype("uint8")
            where = from_origin(5e5, 4e6, 30, 30)
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            rasters.write(root / path, x, crs="EPSG:32633", transform=where)


def chm(root, monkeypatch):
    """Has MetaCHM, which takes its index from a server, find the made file."""
    frame = geopandas.GeoDataFrame(
        {
            "assets": [{"chm": {"href": str(root / "chm.tif")}}],
            "datetime": pd.to_datetime(["2020-01-01"], utc=True),
        },
        geometry=[shapely.box(5e5, 4e6 - SIDE * 30, 5e5 + SIDE * 30, 4e6)],
        crs="EPSG:32633",
    )
    monkeypatch.setattr(urllib.request, "urlopen", lambda _: io.BytesIO())
    monkeypatch.setattr(geopandas, "read_parquet", lambda *_, **__: frame.copy())


def opened(root, kind, name):
    """Returns a dataset of a class."""
    options = OPTIONS.get(name, {})
    if name == "MetaCHM":
        return kind()
    if kind is MMFloodComponent:
        return kind(["EMSR000"], "DEM", root)
    return kind(root, **options)


def windows(dataset, n=6, side=24):
    """Returns slices: all of it, and random ones."""
    rng = np.random.default_rng(1)
    x, y, _ = dataset.bounds
    width, height = x.stop - x.start, y.stop - y.start
    sides = min(side * x.step, width), min(side * y.step, height)
    out = []
    if width / x.step * height / y.step < 1e6:
        out.append((slice(x.start, x.stop), slice(y.start, y.stop)))
    for _ in range(n):
        west = x.start + round(rng.uniform(0, width - sides[0]) / x.step) * x.step
        north = y.stop - round(rng.uniform(0, height - sides[1]) / y.step) * y.step
        out.append((slice(west, west + sides[0]), slice(north - sides[1], north)))
    return out


def outcome(dataset, window):
    try:
        return dataset[window]
    except Exception as e:
        return type(e), str(e)


def test_all_are_named():
    assert set(NAMES) == set(kinds()) and len(NAMES) >= 44


@pytest.mark.parametrize("name", NAMES)
def test_equal(name, tmp_path, monkeypatch):
    kind = kinds()[name]
    monkeypatch.setattr(kind, "_verify", lambda self: None, raising=False)
    if name == "AgriFieldNetImage":  # AgriFieldNet does so
        monkeypatch.setattr(kind, "filename_glob", kind.filename_glob.format("B01"))
    folder = NAMES[name][1]
    root = Path(DATA, folder) if DATA and folder and Path(DATA, folder).is_dir() else None
    if root is None:
        make(root := tmp_path, name, kind)
        if name == "MetaCHM":
            chm(root, monkeypatch)
    compared = {}
    for crs in (None, pyproj.CRS.from_epsg(6933)):
        theirs, ours = opened(root, kind, name), accelerate(opened(root, kind, name))
        assert isinstance(ours, kind)
        if crs is not None:
            res = abs(theirs.res[0]) * (111_000 if theirs.crs.is_geographic else 1)
            for d in (theirs, ours):
                d.crs, d.res = crs, res
        slices = windows(theirs)
        want = [outcome(theirs, s) for s in slices]
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            got = [outcome(ours, s) for s in slices]
            there = [s for s, w in zip(slices, want, strict=True) if isinstance(w, dict)]
            batch = ours.__getitems__(there)
        compared[crs] = len(there), {str(w.message) for w in said if "TorchGeo" in str(w.message)}
        samples = [w for w in want if isinstance(w, dict)]
        for w, g in zip([*want, *samples], [*got, *batch], strict=True):
            assert type(w) is type(g), (w, g)
            if not isinstance(w, dict):
                assert w == g
                continue
            assert w.keys() == g.keys()
            for k, v in nonempty(w.items()):
                if isinstance(v, torch.Tensor):
                    assert v.dtype == g[k].dtype
                    close = 1e-6 if v.is_floating_point() else 0  # exact but for the last bit
                    torch.testing.assert_close(g[k], v, rtol=close, atol=0, equal_nan=True)
    (own, said), (other, said_too) = compared.values()
    file = "made" if root == tmp_path else folder
    print(f"| {name} | {file} | {own} | {other} | {said | said_too or ''} |")
    assert own, want
    if root == tmp_path:
        assert other and not said and not said_too
