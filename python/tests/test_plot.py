"""Pictures of batches, against colours that numpy computes here."""

from __future__ import annotations

import colorsys
import io
import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import nonempty

import chaski
import chaski.torch

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
rasterio = pytest.importorskip("rasterio")
torch = pytest.importorskip("torch")

SIDE = 32
NAMES = ["B02", "B03", "B04", "B08"]
GREY = [128, 128, 128]


@pytest.fixture(scope="module")
def data(tmp_path_factory, binary):
    """Four images with nodata in a corner, their masks, and a triangle on the ground."""
    root = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(1)
    images = rng.integers(100, 4000, (4, 4, SIDE, SIDE), dtype=np.uint16)
    images[:, :, :4, :4] = 0
    masks = rng.integers(0, 3, (4, 1, SIDE, SIDE), dtype=np.uint8)
    masks[:, :, -5:] = 255
    place = {"crs": "EPSG:32630", "transform": rasterio.Affine(10, 0, 5e5, 0, -10, 4e6)}
    for name, stack in {"images": images, "masks": masks}.items():
        (root / name).mkdir()
        for i, a in enumerate(stack):
            how = {"count": len(a), "height": SIDE, "width": SIDE, "dtype": a.dtype, **place}
            with rasterio.open(root / name / f"{i}.tif", "w", driver="GTiff", **how) as f:
                f.write(a)
                f.descriptions = NAMES if name == "images" else ["class"]
    ring = [[500010.0, 3999980.0], [500110.0, 3999980.0], [500110.0, 3999880.0]]
    shape = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
    crs = {"type": "name", "properties": {"name": "EPSG:32630"}}
    one = {"type": "Feature", "properties": {"class": "roof"}, "geometry": shape}
    document = {"type": "FeatureCollection", "crs": crs, "features": [one]}
    (root / "shapes.geojson").write_text(json.dumps(document))
    return SimpleNamespace(root=root, images=images, masks=masks[:, 0])


def fields(root):
    return {
        "image": chaski.Field(pattern="images/{id}.tif", dtype="float32", fill=0, validity="ok"),
        "mask": chaski.Field(pattern="masks/{id}.tif", dtype="int64", layout="n y x", fill=255),
        "boxes": chaski.Vector(root / "shapes.geojson", kind="boxes"),
        "outlines": chaski.Vector(root / "shapes.geojson", kind="polygons"),
        "roofs": chaski.Vector(root / "shapes.geojson", column="class", classes=["roof"]),
    }


def stretched(image, bands, among, fill=0):
    """The colours of bands (b y x), each stretched as it is among images (..., b y x)."""
    out = []
    for band in bands:
        kept = np.asarray(among, np.float64)[..., band, :, :].ravel()
        low, high = np.percentile(kept[np.isfinite(kept) & (kept != fill)], [2, 98])
        out.append((np.asarray(image[band], np.float64) - low) / (high - low))
    return np.stack(out, axis=-1).clip(0, 1) * 255


def pictures(axes):
    return [np.asarray(image.get_array()) for image in axes.images]


def grid(figure, columns):
    return np.reshape(figure.axes, (-1, columns))


@pytest.mark.parametrize("dtype", ["float32", "native", "bfloat16"])
@pytest.mark.parametrize("kind", ["numpy", "torch", "sample"])
def test_pictures(data, dtype, kind):
    how = {"fields": fields(data.root), "shuffle": False, "batch_size": 3}
    how["fields"]["image"] = chaski.Field(pattern="images/{id}.tif", dtype=dtype, fill=0)
    if kind == "numpy":
        with chaski.load(data.root, **how) as loader:
            batch = next(iter(loader))
    elif kind == "torch":
        batch = next(iter(chaski.torch.IterableDataset(data.root, **how)))
    else:
        batch = chaski.torch.MapDataset(data.root, fields=how["fields"])[2]
    figure = batch.plot(rows=2)
    lines = grid(figure, 3)
    assert len(lines) == (1 if kind == "sample" else 2)
    for i, (first, second, third) in nonempty(enumerate(lines)):
        i = 2 if kind == "sample" else i
        among = data.images[[2] if kind == "sample" else [0, 1]].astype(np.float32)
        if dtype == "bfloat16":
            among = torch.from_numpy(among).bfloat16().float().numpy()
        image = among[0 if kind == "sample" else i]
        assert first.get_ylabel() == f"sample {i}"
        (colours,) = pictures(first)
        assert (colours[:4, :4] == GREY).all()
        want = stretched(image, [2, 1, 0], among)  # B04, B03, B02
        inside = (image != 0).all(axis=0)
        assert np.abs(colours.astype(float) - want)[inside].max() <= 1
        (classes,) = pictures(second)
        seen = {
            tuple(c): set(data.masks[i][(classes == c).all(axis=-1)])
            for c in np.unique(classes.reshape(-1, 3), axis=0).tolist()
        }
        assert sorted(map(sorted, seen.values())) == [[0], [1], [2], [255]]  # a colour each
        assert seen[tuple(GREY)] == {255}
        (roof,) = pictures(third)
        rows, columns = np.nonzero((roof != roof[-1, 0]).any(axis=-1))
        assert (rows.min(), columns.max()) == (2, 10)
        box, outline = first.patches
        assert (box.get_x(), box.get_y(), box.get_width(), box.get_height()) == (1, 2, 10, 10)
        (drawn,) = outline.get_path().to_polygons()
        assert {tuple(v) for v in drawn.tolist()} == {(1, 2), (11, 2), (11, 12)}
    titles = [axes.get_title() for axes in lines[0]]
    assert titles == ["image B04 B03 B02", "mask", "roofs"]
    (legend,) = figure.legends
    texts = [t.get_text() for t in legend.get_texts()]
    assert texts == ["0", "roof", "2", "boxes", "outlines"]


def test_choices(data):
    with chaski.load(data.root, fields=fields(data.root), batch_size=5, shuffle=False) as loader:
        (batch,) = loader  # the last row is padding
    assert len(grid(batch.plot("image", rows=9), 1)) == 4
    for bands, at in [(["B08", "B04", "B03"], [3, 2, 1]), ([0, 1, 2], [0, 1, 2])]:
        ((axes,),) = grid(batch.plot("image", rows=1, bands=bands), 1)
        want = stretched(data.images[0], at, data.images[:1])
        inside = (data.images[0] != 0).all(axis=0)
        assert np.abs(pictures(axes)[0].astype(float) - want)[inside].max() <= 1
        assert not axes.patches  # only what is named
    ((axes,),) = grid(batch.plot("image", rows=1, bands=["B08"]), 1)
    assert (np.ptp(pictures(axes)[0].astype(int), axis=-1) == 0).all()  # grey
    figure = batch.plot("image", "mask", rows=1, overlay=True)
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["1", "2"]
    ((axes,),) = grid(figure, 1)
    alpha = axes.images[1].get_alpha()
    assert ((alpha > 0) == np.isin(data.masks[0], [1, 2])).all()
    batch["prediction"] = np.where(data.masks == 255, 0, data.masks)
    ((_, mask, prediction),) = grid(batch.plot("image", "mask", "prediction", rows=1), 3)
    same = (pictures(mask)[0] == pictures(prediction)[0]).all(axis=-1)
    assert (same == (data.masks[0] != 255)).all()
    ((axes,),) = grid(batch.plot("prediction", rows=1, ignore={"prediction": 0}), 1)
    assert ((pictures(axes)[0] == GREY).all(axis=-1) == (batch["prediction"][0] == 0)).all()
    for wrong, message in [
        ({"names": ["masks"]}, "masks"), ({"names": ["valid"]}, "nothing to draw"),
        ({"bands": ["B11"]}, "B11"), ({"bands": [4]}, "bands has 4: image has 4 bands"),
    ]:  # fmt: skip
        with pytest.raises(chaski.NotFoundError, match=message):
            batch.plot(*wrong.pop("names", ()), **wrong)
    for bands in nonempty([[0, 1], [], 0, "B04"]):
        for wrong in (np.zeros((2, 3, 8, 8)), 5, None, [np.zeros((3, 8, 8))]):
            with pytest.raises(chaski.SpecError, match="batch is of .*: it must be a batch, a sam"):
                chaski.show(wrong)  # type: ignore[arg-type]
        with pytest.raises(chaski.SpecError, match="bands is .* three bands, or one"):
            batch.plot(bands=bands)


def boxes_of(path, kinds):
    """Writes boxes of one pixel more each, and returns their classes by width."""
    lines = [f"{i}.tif,4,6,{9 + k},14,{kind}" for i in range(4) for k, kind in enumerate(kinds)]
    path.write_text("\n".join(["image,xmin,ymin,xmax,ymax,label", *lines]))
    return {5 + k: kind for k, kind in enumerate(kinds)}


def test_classes_of_boxes(data, tmp_path):
    """Their names and colours are those that are given, or what their names suggest."""
    kinds = boxes_of(tmp_path / "b.csv", ["boat", "forest", "small house"])
    named = {
        "image": "images/{id}.tif",
        "boxes": chaski.Vector(tmp_path / "b.csv", kind="boxes"),
        "outlines": chaski.Vector(tmp_path / "b.csv", kind="polygons"),
    }
    with chaski.load(data.root, fields=named, batch_size=2, shuffle=False) as loader:
        batch = next(iter(loader))
    own = {"boxes": {2: "#ff0000"}}
    figure = batch.plot("image", "boxes", rows=2, palette=own, classes={"boxes": {1: "a", 2: "b"}})
    (legend,) = figure.legends
    assert [t.get_text() for t in legend.get_texts()] == ["a", "b", "small house"]
    marks = [p.get_edgecolor() for p in legend.get_patches()]
    seen = {int(p.get_width()): p.get_edgecolor() for p in figure.axes[0].patches}
    assert seen == dict(zip(kinds, marks, strict=True)) and seen[6] == (1, 0, 0, 1)
    figure = batch.plot()
    (legend,) = figure.legends  # both have the same classes
    assert [t.get_text() for t in legend.get_texts()] == [*kinds.values()]
    assert 90 < hue(np.array(legend.get_patches()[1].get_edgecolor()) * 255) < 160
    batch["prediction"] = np.zeros((9, SIDE, SIDE), np.uint8)
    with pytest.raises(chaski.SpecError, match="prediction has 9 rows, and the batch has 2"):
        batch.plot()


@pytest.mark.parametrize("size", [1.0, 2.0])
def test_titles_and_legends_lie_in_the_figure(data, size):
    """Views are called so, and names of many letters have several lines."""
    how = {"window": [chaski.RandomWindow(8)] * 2, "shuffle": False, "batch_size": 1}
    mask = chaski.Field(pattern="masks/{id}.tif", dtype="int64", fill=255)
    named = {"image": "images/{id}.tif", "mask": mask}
    with chaski.load(data.root, fields=named, **how) as loader:
        batch = next(iter(loader))
    names = ["land without any name", "roofs of tiles and of slate", "streets", "trees and hedges"]
    figure = batch.plot(rows=1, size=size, classes={"mask": names})
    titles = [axes.get_title().replace("\n", " ") for axes in figure.axes]
    assert titles == [f"{n}, view {k}" for n in ("image B04 B03 B02", "mask") for k in range(2)]
    page = io.BytesIO()
    figure.savefig(page, format="rgba", dpi=100)
    width, height = (figure.get_size_inches() * 100).astype(int)
    pixels = np.frombuffer(page.getvalue(), np.uint8).reshape(-1, width, 4)
    assert abs(len(pixels) - height) <= 1
    for edge in (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]):
        assert (edge == 255).all()  # what is cut has ink there


def test_names_are_no_formulas_and_steps_keep_their_masks():
    """A mask of one step before one of three: each picture has the step of its place."""
    batch = chaski.Batch({r"$\x$": np.random.default_rng(0).random((1, 3, 1, 4, 4))})
    batch["one"] = np.ones((1, 4, 4), np.uint8)
    batch["three"] = np.array([1, 2, 3], np.uint8).reshape(1, 3, 1, 1, 1).repeat(4, 3).repeat(4, 4)
    figure = batch.plot(overlay=True)
    figure.savefig(io.BytesIO())  # an unknown symbol of a formula would be an error
    colours = {tuple(pictures(axes)[2][0, 0]) for axes in figure.axes}
    assert len(colours) == 3
    with pytest.raises(chaski.NotFoundError, match="nothing to draw"):
        chaski.Batch(image=np.zeros((0, 3, 4, 4))).plot()


def test_steps_and_plain_arrays(data):
    series = np.stack([data.images[:2], data.images[2:]], axis=1).astype("f4")  # n t b y x
    series[0, 1, 0, 9, 9] = np.nan
    figures = []
    batch = chaski.Batch(image=series, label=data.masks[:2], valid=np.ones(2, bool))
    batch.axes = {"image": ("n", "t", "b", "y", "x")}
    figures.append(batch.plot(ignore={"image": 0}))
    plain = {"image": torch.from_numpy(series), "label": torch.from_numpy(data.masks[:2])}
    chaski.show(plain, ignore={"image": 0})
    figures.append(matplotlib.pyplot.gcf())
    for figure in nonempty(figures):
        lines = grid(figure, 3)
        titles = [place.get_title().split(",")[-1].strip() for place in lines[0]]
        assert titles == ["step 0", "step 1", "label"]
        for row, step in nonempty(np.ndindex(2, 2)):
            image = lines[row][step]
            assert lines[row][0].get_ylabel() == f"sample {row}"
            # Rows and steps have one stretch.
            want = stretched(series[row, step], [0, 1, 2], series)
            seen = (np.isfinite(series[row, step]) & (series[row, step] != 0)).all(axis=0)
            (colours,) = pictures(image)
            assert np.abs(colours.astype(float) - want)[seen].max() <= 1
            assert (colours[~seen] == GREY).all()
    matplotlib.pyplot.close("all")


def test_scores_have_a_bar_of_colours(data):
    with chaski.load(data.root, fields=fields(data.root), batch_size=2, shuffle=False) as loader:
        batch = next(iter(loader))
    batch["score"] = np.linspace(0, 1, 2 * SIDE * SIDE, dtype=np.float32).reshape(2, SIDE, SIDE)
    batch["score"][0, 3, 3] = np.nan
    figure = batch.plot("image", "score")
    assert [len(axes.child_axes) for axes in figure.axes] == [0, 0, 0, 1]  # below the last line
    (bar,) = figure.axes[3].child_axes
    assert bar.get_xlim() == (0, 1)
    for k in nonempty(range(2)):
        (colours,) = pictures(figure.axes[2 * k + 1])
        want = matplotlib.colormaps["viridis"](batch["score"][k])[..., :3] * 255
        seen = np.isfinite(batch["score"][k])
        assert np.abs(colours.astype(float) - want)[seen].max() <= 1
        assert (colours[~seen] == GREY).all()
    batch["score"] = batch["score"] * 8 - 3
    (bar,) = batch.plot("score").axes[-1].child_axes
    assert np.allclose(bar.get_xlim(), (-3, 5))


@pytest.mark.parametrize("augment", [None, "d4"])
def test_scale_and_north(data, augment):
    """The arrow points where rows go that lie further north, and the bar is as long as it says."""
    how = {"pixels": chaski.Pixels(geo=True, augment=augment), "batch_size": 4, "seed": 3}
    with chaski.load(data.root / "images", window=16, **how) as loader:
        batch = next(iter(loader))
    figure = batch.plot()
    for k, axes in nonempty(enumerate(figure.axes)):
        (line,) = axes.lines
        scale, north = axes.texts
        assert scale.get_text() == "50 m"
        assert np.ptp(line.get_xdata()) == pytest.approx(5 / 16)  # pixels of 10 m
        _, xc, xr, _, yc, yr = batch["geo"]["transform"][k]
        right, up = np.array(north.xy) - north.xyann
        pixel = np.array([right, -up])
        assert np.allclose(np.array([[xc, xr], [yc, yr]]) @ (pixel / np.hypot(*pixel)), [0, 10])


def hue(colour):
    """Returns the hue of a colour in degrees, None of grey."""
    h, s, _ = colorsys.rgb_to_hsv(*(np.asarray(colour)[:3] / 255.0))
    return None if s < 0.2 else 360 * h


def drawn(figure, k, value, batch):
    """Returns the colour of a class in the k-th picture."""
    (colour,) = np.unique(pictures(figure.axes[k])[0][batch["mask"][0] == value], axis=0)
    return colour


def test_classes_have_names_and_colours():
    """Forest is green and water blue where names say so, and nothing is where none does."""
    mask = np.arange(12, dtype=np.uint8).reshape(1, 3, 4)
    batch = chaski.Batch(mask=mask, prediction=mask.copy())
    for value in nonempty(range(12)):
        assert not 75 < (hue(drawn(batch.plot(), 0, value, batch)) or 0) < 260, value
    names = ["background", "Water", "broadleaf forest", "Conifer forests", "not water"]
    figure = batch.plot(classes={"mask": names})
    texts = [t.get_text() for t in figure.legends[0].get_texts()]
    assert texts == names + [str(v) for v in range(5, 12)]
    seen = [drawn(figure, 0, value, batch) for value in range(12)]
    assert 190 < hue(seen[1]) < 250 and 90 < hue(seen[2]) < 160 and 90 < hue(seen[3]) < 160
    assert len({tuple(c) for c in seen}) == 12
    assert not 75 < (hue(seen[4]) or 0) < 260
    for value in nonempty(range(12)):  # the prediction has the classes of the mask
        assert (drawn(figure, 1, value, batch) == seen[value]).all()
    own = {"mask": {1: "red", 3: "#00ff0080"}}
    figure = batch.plot("mask", classes={"mask": {1: "water"}}, palette=own)
    assert drawn(figure, 0, 1, batch).tolist() == [255, 0, 0, 255]
    assert drawn(figure, 0, 3, batch).tolist() == [0, 255, 0, 128]
    for wrong, message in nonempty([
        ({"classes": {"label": ["a"]}}, "classes has 'label'"),
        ({"palette": ["red"]}, "palette is .*: it must be a dict by member"),
        ({"palette": {"mask": ["reddish"]}}, "palette: .*reddish"),
        ({"classes": {"mask": {-1: "a"}}}, "classes of mask is -1"),
    ]):  # fmt: skip
        with pytest.raises(chaski.Error, match=message):
            batch.plot(**wrong)


def test_without_matplotlib(data):
    code = (
        "import sys; sys.modules['matplotlib.pyplot'] = None\n"
        "import numpy, chaski\n"
        "try: chaski.show({'a': numpy.zeros((1, 2, 2))})\n"
        "except ImportError as e: print(e)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install matplotlib" in done.stdout


def test_shapes_of_views(data):
    """Each view has its own boxes, those of the lists of a batch and of one sample."""
    views = [chaski.RandomWindow(SIDE // 2, per_asset=4), chaski.RandomWindow(SIDE // 2)]
    how = {"image": fields(data.root)["image"], "boxes": fields(data.root)["boxes"]}
    with chaski.load(data.root, window=views, batch_size=20, fields=how) as loader:
        batch = next(iter(loader))
        one = loader.sample(int(batch["sample"][0]))
    lists, drawn = batch["boxes"].rows(), 0
    for (line, k), source in [
        ((line, k), batch) for k, line in enumerate(grid(batch.plot(rows=20), 2))
    ] + [((line, 0), one) for line in grid(one.plot(), 2)]:
        for v, axes in nonempty(enumerate(line)):
            want = lists[2 * k + v].tolist() if source is batch else one["boxes"][v].tolist()
            got = [
                [p.get_x(), p.get_y(), p.get_x() + p.get_width(), p.get_y() + p.get_height()]
                for p in axes.patches
            ]
            np.testing.assert_allclose(got, want)
            drawn += len(got)
    assert drawn > 5
