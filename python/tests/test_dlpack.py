"""Batches become arrays of JAX and tensors of TensorFlow over the same memory, by DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import nonempty
from test_real import N, chips  # noqa: F401

import chaski

pytestmark = pytest.mark.usefixtures("binary")


def jax_of(array: np.ndarray) -> Any:
    jax = pytest.importorskip("jax", reason="JAX is not installed: make frameworks")
    return jax.dlpack.from_dlpack(array)


def tensorflow_of(array: np.ndarray) -> Any:
    tensorflow = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    return tensorflow.experimental.dlpack.from_dlpack(array.__dlpack__())


@pytest.mark.parametrize("of", [jax_of, tensorflow_of])
@pytest.mark.parametrize("transport", ["grpc", "shm"])
def test_batches_by_dlpack(chips, of, transport):  # noqa: F811
    """Arrays stay what they were when the batch, and the loader, are gone."""
    kept = []
    engine = chaski.Engine(workers=1, transport=transport)
    stored = chaski.Pixels(dtype="native")
    with chaski.load(chips[0], batch_size=4, pixels=stored, engine=engine) as loader:
        for batch in loader:
            kept.append((batch["sample"].copy(), batch["valid"].copy(), of(batch["image"])))
            assert np.shares_memory(np.asarray(kept[-1][2]), batch["image"])
        del batch
    seen = 0
    for samples, valid, images in nonempty(kept):
        assert np.array_equal(np.asarray(images)[valid], chips[1][samples[valid]])
        seen += int(valid.sum())
    assert seen == N
