"""Prints the samples of shards as mosaicml-streaming or webdataset reads them.

Called by: python shards.py mds|wds DIRECTORY. A sample is a line of JSON.
"""

import glob
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import types
from unittest import mock

import numpy as np

# What streaming imports, and reading shards does not need: PyTorch alone has 2 GB.
UNUSED = "torch torchvision transformers catalogue snappy brotli tqdm filelock".split()


class Unused(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes empty modules."""

    def find_spec(self, name, path=None, target=None):
        """Finds the modules of UNUSED."""
        if name.split(".")[0] in UNUSED:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        """Makes a module that has everything."""
        return mock.MagicMock(__spec__=spec, __path__=[], __name__=spec.name)

    def exec_module(self, module):
        """Does nothing."""


def mds(folder):
    """Yields samples by the readers that StreamingDataset has for its shards."""
    sys.meta_path.insert(0, Unused())
    for name in ("streaming", "streaming.base"):  # without the datasets that they import
        spec = importlib.util.find_spec(name)
        package = types.ModuleType(name)
        package.__path__ = list(spec.submodule_search_locations)
        sys.modules[name] = package
    from streaming.base.compression import decompress
    from streaming.base.format import reader_from_json
    from streaming.base.hashing import get_hash

    with open(os.path.join(folder, "index.json")) as f:
        index = json.load(f)
    assert index["version"] == 2
    for shard in index["shards"]:
        reader = reader_from_json(folder, "", shard)
        reader.validate(False)
        raw, zipped = reader.raw_data, reader.zip_data
        if zipped:
            with open(os.path.join(folder, zipped.basename), "rb") as f:
                packed = f.read()
            assert len(packed) == zipped.bytes
            assert zipped.hashes["xxh64"] == get_hash("xxh64", packed)
            with open(os.path.join(folder, raw.basename), "xb") as f:
                f.write(decompress(shard["compression"], packed))
        with open(os.path.join(folder, raw.basename), "rb") as f:
            whole = f.read()
        assert len(whole) == raw.bytes
        assert raw.hashes["xxh64"] == get_hash("xxh64", whole)
        for i in range(len(reader)):
            yield reader[i]


def wds(folder):
    """Yields samples by WebDataset, with the members of the JSON beside the others."""
    import webdataset  # which does without PyTorch

    tars = sorted(glob.glob(folder + "/*.tar"))
    for sample in webdataset.WebDataset(tars, shardshuffle=False).decode():
        found = {k.removesuffix(".npy"): v for k, v in sample.items() if not k.startswith("__")}
        yield {**found.pop("json"), **found}


def plain(value):
    """Returns a value for JSON: of arrays and bytes the SHA-256, and None for NaN."""
    if isinstance(value, np.ndarray):
        sha256 = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return {"shape": value.shape, "dtype": value.dtype.name, "sha256": sha256}
    if isinstance(value, bytes):
        return {"sha256": hashlib.sha256(value).hexdigest()}
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and value != value else value


for one in {"mds": mds, "wds": wds}[sys.argv[1]](sys.argv[2]):
    print(json.dumps({name: plain(value) for name, value in one.items()}, sort_keys=True))
