"""Batches of satellite-image chips: read, laid out, shuffled and normalised by the chaski engine.

    import chaski

    with chaski.load(
        "chips/", batch_size=64, normalize="mean_std", stats="stats.json"
    ) as loader:
        for batch in loader:          # one epoch
            batch["image"]            # float32, (64, bands, height, width)

`load` starts an engine, `connect` uses a running one, `read` reads one window, `stats` counts what
normalisation needs; `chaski.torch` has datasets for PyTorch, `chaski.order` tells which sample
comes when.
"""

# First: it raises where another project's files are mixed in.
from chaski import _arguments, _fields, _windows, errors, jobs, order, taco
from chaski import _distribution as _distribution
from chaski._access import Token, tls
from chaski._arguments import *  # noqa: F403  (its __all__ is part of the one below)
from chaski._assemble import Batch
from chaski._bad import BadRows
from chaski._fields import *  # noqa: F403
from chaski._kept import pasted
from chaski._loader import Loader
from chaski._members import Ragged, polygons
from chaski._open import connect, load
from chaski._pack import pack, stac
from chaski._paste import GroundGrid, paste
from chaski._plot import show
from chaski._read import info, read
from chaski._records import Suggestion
from chaski._rpc import Connection
from chaski._sign import sign
from chaski._sources import Scenes, Split
from chaski._stats import Stats, stats, weights
from chaski._suggest import suggest
from chaski._windows import *  # noqa: F403
from chaski.errors import *  # noqa: F403

__version__ = "0.1.0"

__all__ = [
    "BadRows",
    "Batch",
    "Connection",
    "GroundGrid",
    "Loader",
    "Ragged",
    "Scenes",
    "Split",
    "Stats",
    "Suggestion",
    "Token",
    "connect",
    "info",
    "load",
    "jobs",
    "order",
    "pack",
    "paste",
    "pasted",
    "polygons",
    "read",
    "show",
    "sign",
    "stac",
    "stats",
    "suggest",
    "taco",
    "tls",
    "weights",
]
__all__ += _arguments.__all__ + _fields.__all__ + _windows.__all__
__all__ += errors.__all__
