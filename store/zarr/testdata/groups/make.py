"""Writes product.h5 with h5py 3.16 and references to it with kerchunk 0.2.10, as JSON and as Parquet.

    python make.py

The group PRODUCT has its dimension scales, as the products of Sentinel-5P have them, so that kerchunk
calls the dimensions of v and m "PRODUCT/time", "PRODUCT/y" and "PRODUCT/x". Their values are 0, 1, 2, …
in order; y is 50.5, 49.5, … and x 10.5, 11.5, …
"""

import json
import os
import shutil
from pathlib import Path

import h5py
import numpy as np
from kerchunk.df import refs_to_dataframe
from kerchunk.hdf import SingleHdf5ToZarr


def main() -> None:
    os.chdir(Path(__file__).parent)
    shutil.rmtree("product.parq", ignore_errors=True)
    with h5py.File("product.h5", "w", libver="latest") as f:
        group = f.create_group("PRODUCT")
        for name, values in (
            ("time", np.zeros(1)),
            ("y", 50.5 - np.arange(6)),
            ("x", 10.5 + np.arange(10)),
        ):
            group.create_dataset(name, data=values).make_scale(name)
        for name, shape, chunks in (("v", (1, 6, 10), (1, 3, 5)), ("m", (6, 10), (3, 5))):
            values = np.arange(60, dtype="f4").reshape(shape)
            array = group.create_dataset(name, data=values, chunks=chunks, compression="gzip")
            for i, scale in enumerate(("time", "y", "x")[-len(shape) :]):
                array.dims[i].attach_scale(group[scale])
    refs = SingleHdf5ToZarr("product.h5", inline_threshold=0).translate()
    Path("product.json").write_text(json.dumps(refs))
    refs_to_dataframe(refs, "product.parq", record_size=10)


if __name__ == "__main__":
    main()
