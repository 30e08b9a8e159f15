"""Members of a batch: arrays, and what is known of them."""

from __future__ import annotations

import itertools
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from chaski import _show
from chaski._plain import as_array, count
from chaski._records import FieldInfo
from chaski.errors import SpecError

if TYPE_CHECKING:
    from typing_extensions import Self

Classes: TypeAlias = Mapping[int, str] | Sequence[str]
"""Names or colours of classes, by their numbers."""


def by_number(what: str, given: Classes, read: Callable[[Any], str] = str) -> dict[int, str]:
    """Returns names or colours of classes by their numbers."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise SpecError(f"{what} is {given!r:.100}: it must be a list from 0, or a dict by number")
    pairs = given.items() if isinstance(given, Mapping) else enumerate(given)
    return {count(what, k, 0): read(v) for k, v in pairs}


class Ragged(NamedTuple):
    """A field whose rows have different lengths: row k is `values[offsets[k]:offsets[k + 1]]`.

    In batches of `chaski.torch` both are tensors. With v windows of each sample there is a row for
    each window, as in `batch["image"].flatten(0, 1)`: the windows of sample k begin at k * v.

    Attributes:
        offsets: int64, rows + 1.
        values: the elements of all rows, such as boxes of shape (k, 4).
    """

    offsets: npt.NDArray[np.int64]
    values: npt.NDArray[Any]

    def rows(self) -> list[Any]:
        """Returns the values of each row, as views."""
        return [self.values[a:b] for a, b in itertools.pairwise(self.offsets.tolist())]


def polygons(batch: Mapping[str, Any], name: str) -> list[list[list[list[Any]]]]:
    """Returns the shapes of a field of kind "polygons": for each row a list of shapes.

    A shape is a list of polygons, a polygon a list of rings: outlines first, of which there are
    several if the window cuts it into pieces, then holes. A ring is an array (or tensor) of
    vertices (k, 2) of x and y, without the first one again at its end. What lies in an odd number
    of its rings belongs to a polygon. Outlines have a positive area by the shoelace formula, holes
    a negative one.

    Args:
        batch: a batch of `chaski.load`, or of `chaski.torch`.
        name: the field.
    """
    out = []
    if not isinstance(batch.get(f"{name}_rings"), Ragged):
        raise SpecError(f'name is {name!r}: it must be a field of kind "polygons" of the batch')
    for vertices, rings in zip(batch[name].rows(), batch[name + "_rings"].rows(), strict=True):
        row: list[list[list[Any]]] = []
        at = 0
        for shape, part, corners, _ in rings.tolist():
            if shape == len(row):
                row.append([])
            if part == len(row[shape]):
                row[shape].append([])
            row[shape][part].append(vertices[at : at + corners])
            at += corners
        out.append(row)
    return out


def _saved(torch: Any, v: Any) -> Any:
    """Returns a member of a batch as torch.load takes it."""
    if isinstance(v, Ragged):
        return tuple(_saved(torch, x) for x in v)
    if isinstance(v, np.ndarray):
        if v.dtype == object:  # text
            return v.tolist()
        if v.dtype.names:  # complex integers
            v = v.view(v.dtype[0]).reshape(*v.shape, 2)
        return torch.from_numpy(v.copy())
    return v.item() if isinstance(v, np.generic) else v


class Described(dict[str, Any]):
    """A dict whose "geo" is a dict of its members "geo.transform", "geo.epsg" and so on.

    With `on_bad="fill"`, so is "there", of "there.image" and the other fields.
    In numpy `["geo"]["time"]` is datetime64[us], a view of the microseconds of "geo.time".
    """

    dtypes: Mapping[str, str] = {}
    axes: Mapping[str, tuple[str, ...]] = {}
    source: str = ""
    fields: Mapping[str, FieldInfo] = {}
    _spec: Mapping[str, Mapping[str, Any]] = {}  # fields as in the spec

    def _like(self, other: Described) -> Self:
        """Takes over what other knows of its members."""
        self.dtypes, self.axes = other.dtypes, other.axes
        self.source, self.fields, self._spec = other.source, other.fields, other._spec
        return self

    def _fill(self, name: str) -> float | None:
        """Returns the fill of a field, None without one."""
        fill = self._spec.get(name, {}).get("fill")
        return None if fill is None else float(fill)

    def _colours(
        self, name: str, given: Mapping[int, str] = {}, colours: Mapping[int, str] = {}
    ) -> tuple[dict[int, str], tuple[str, ...]]:
        """Returns the names of a field's classes and their palette; what is given goes first."""
        names = dict(enumerate(self._spec.get(name, {}).get("vector", {}).get("classes", ()), 1))
        info = self.fields.get(name)
        names |= {v: n for v, n in enumerate(info.classes if info else ()) if n}
        names |= given
        return names, _show.palette(info.palette if info else (), names, colours)

    def _rows(self) -> str:
        """Returns how many rows there are."""
        valid = as_array(self.get("valid", ()))
        if not valid.ndim:
            return f"sample {self['sample']}" if "sample" in self else "one sample"
        return f"{np.count_nonzero(valid)} valid of {len(valid)} rows"

    def _about(self) -> str:
        """Returns what it is, without its members."""
        return f"chaski: {self._rows()}"

    def _shown(self) -> list[tuple[str, Any, str]]:
        """Returns name, dtype and shape of the members."""
        out: list[tuple[str, Any, str]] = []
        for name, v in self.items():
            if isinstance(v, Ragged):
                shape = f"ragged, {len(v.offsets) - 1} rows of {len(v.values)} values"
                out.append((name, self.dtypes.get(name) or v.values.dtype, shape))
            elif hasattr(v, "dtype"):
                dtype = self.dtypes.get(name) or str(v.dtype).removeprefix("torch.")
                out.append((name, dtype, str(tuple(v.shape))))
        return out

    def __repr__(self) -> str:
        members = "; ".join(f"{name} {dtype} {shape}" for name, dtype, shape in self._shown())
        return f"<{self._about()}; {members}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Leaves its class to pickles, but for those of torch.save, which have protocol 2.

        `torch.load` takes tensors, strings, numbers, lists, tuples and dicts of them, and no other
        objects. So arrays become tensors there, and ragged fields tuples of two.
        """
        torch = sys.modules.get("torch")
        if protocol != 2 or torch is None:
            return super().__reduce_ex__(protocol)
        return OrderedDict, (), None, None, iter((k, _saved(torch, v)) for k, v in self.items())

    def __missing__(self, name: str) -> dict[str, Any]:
        group = f"{name}."
        if name in ("geo", "there") and (
            found := {k.removeprefix(group): v for k, v in self.items() if k.startswith(group)}
        ):
            if name == "geo" and isinstance(found.get("time"), np.ndarray):
                found["time"] = found["time"].view("datetime64[us]")
            return found
        raise KeyError(f"{name}: there are {sorted(self)}")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f'it is a dict, without an attribute {name!r}: batch["image"] is a member; device= of '
            "chaski.torch.IterableDataset has all tensors there"
        )
