"""Whole images, resized, whose masks have other sizes, against torch's interpolation and numpy."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import nonempty

import chaski

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("one_engine")

SIZE = (16, 12)
rng = np.random.default_rng(5)
# Of each sample the sizes of its image and of its mask: some differ by a pixel, in the first
# sample or in another.
CASES = {
    "first": [((21, 20), (20, 20)), ((40, 30), (40, 30)), ((33, 65), (34, 64))],
    "later": [((20, 20), (20, 20)), ((40, 30), (41, 29)), ((7, 9), (300, 200))],
}


def bilinear(x: np.ndarray, size: tuple[int, int] = SIZE) -> np.ndarray:
    t = torch.from_numpy(x.astype(np.float32))[None]
    return torch.nn.functional.interpolate(t, size, mode="bilinear")[0].numpy()


def nearest(x: np.ndarray, size: tuple[int, int] = SIZE) -> np.ndarray:
    rows, columns = (
        ((np.arange(n) + 0.5) * old / n).astype(int)
        for n, old in zip(size, x.shape[-2:], strict=True)
    )
    return x[:, rows][:, :, columns]


def write(root, sizes) -> tuple[list, list]:
    for name in ("images", "masks"):
        (root / name).mkdir()
    images, masks = [], []
    for k, (of_image, of_mask) in enumerate(sizes):
        images.append(rng.integers(0, 200, (3, *of_image)).astype(np.uint8))
        masks.append(rng.integers(0, 9, (1, *of_mask)).astype(np.uint8))
        np.save(root / f"images/{k}.npy", images[-1])
        np.save(root / f"masks/{k}.npy", masks[-1])
    return images, masks


FIELDS = {
    "image": chaski.Field(pattern="images/{id}.npy", dims="b y x"),
    "mask": chaski.Field(pattern="masks/{id}.npy", dims="b y x", dtype="int64"),
}


@pytest.mark.parametrize("case", CASES)
def test_masks_of_other_sizes(tmp_path, binary, case) -> None:
    images, masks = write(tmp_path, CASES[case])
    window = chaski.ResizedWindow(SIZE, whole=True)
    pixels = chaski.Pixels(windows=True)
    with chaski.load(tmp_path, fields=FIELDS, window=window, batch_size=4, pixels=pixels) as run:
        for b in nonempty(run):
            assert b["valid"].all()
            for k, row in nonempty(enumerate(b["sample"])):
                assert np.allclose(b["image"][k], bilinear(images[row]), rtol=1e-4, atol=1e-3)
                assert (b["mask"][k] == nearest(masks[row])).all()
                assert tuple(b["window"][k]) == (0, 0, *images[row].shape[1:])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("sizes", [[SIZE, SIZE], [SIZE, (6, 8)], [(6, 8), SIZE, (5, 5)]], ids=str)
def test_several_windows(tmp_path, binary, case, sizes) -> None:
    """Each is as large as it says in both fields."""
    images, masks = write(tmp_path, CASES[case])
    window = [chaski.ResizedWindow(size, whole=True) for size in sizes]
    end = (lambda _: "") if sizes[0] == sizes[1] else (lambda size: "." + "x".join(map(str, size)))
    with chaski.load(tmp_path, fields=FIELDS, window=window, batch_size=4) as run:
        for b in nonempty(run):
            assert b["valid"].all()
            for k, row in nonempty(enumerate(b["sample"])):
                for v, size in nonempty(enumerate(sizes)):
                    name = end(size if size[0] != size[1] else size[:1])
                    view = v if sizes[0] == sizes[1] else 0
                    assert np.allclose(
                        b[f"image{name}"][k, view],
                        bilinear(images[row], size),
                        rtol=1e-4,
                        atol=1e-3,
                    )
                    assert (b[f"mask{name}"][k, view] == nearest(masks[row], size)).all()


def test_a_sample_without_its_image(tmp_path, binary) -> None:
    """With "fill" the mask stays, whatever its size."""
    _, masks = write(tmp_path, CASES["later"])
    (tmp_path / "images/1.npy").write_bytes(b"\x93NUMPY damaged")
    window = chaski.ResizedWindow(SIZE, whole=True)
    options = {"fields": FIELDS, "window": window, "batch_size": 4, "on_bad": "fill"}
    with chaski.load(tmp_path, shuffle=False, **options) as run:
        b = next(iter(run))
    assert b["there.image"].tolist() == [1, 0, 1] and b["there.mask"].tolist() == [1, 1, 1]
    assert all((b["mask"][k] == nearest(masks[k])).all() for k in range(3))


def test_a_ratio_stays_one(tmp_path, binary) -> None:
    """Masks of half the resolution have half the size."""
    write(tmp_path, [((32, 24), (16, 12)), ((64, 64), (32, 32))])
    window = chaski.ResizedWindow(SIZE, whole=True)
    with chaski.load(tmp_path, fields=FIELDS, window=window, batch_size=2) as run:
        assert next(iter(run))["mask"].shape == (2, 1, 8, 6)
