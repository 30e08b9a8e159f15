"""`chaski compare`: a loader of your own beside the call of chaski that gives the same samples."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import multiprocessing
import os
import re
import runpy
import statistics
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from chaski._plain import as_array
from chaski._plot import pyplot
from chaski._show import colours, visible
from chaski._suggest import suggest
from chaski.errors import SpecError

_ROWS = {
    "first batch, s": "first",
    "clock a sample, ms": "clock",
    "CPU a sample, ms": "cpu",
    "wait for a batch, ms": "wait",
    "longest wait, ms": "longest",
    "memory, MB": "memory",
}
_POINTS = 64  # values by which samples of two loaders find each other
_KEPT = 1 << 29  # bytes of the samples of a loader, at most
_CLOSE, _NEAR = 1e-5, 0.2  # values are equal; samples are the same, with some values changed
_COUNTS = "valid", "position", "sample"
Sample = Mapping[str, "np.ndarray[Any, Any]"]


def main(arguments: Sequence[str]) -> None:
    """Runs the command."""
    p = argparse.ArgumentParser("chaski compare", description=__doc__)
    p.add_argument("loader", metavar="MODULE:FUNCTION", help="returns your DataLoader")
    p.add_argument("call", nargs="?", help="chaski.load(...), or MODULE:FUNCTION that returns it")
    p.add_argument("--data", metavar="DIR", help="find the call by chaski suggest DIR")
    p.add_argument("--seconds", type=float, default=10, help="of each run (default: 10)")
    p.add_argument("--rounds", type=int, default=3, help="runs of each (default: 3)")
    p.add_argument("--samples", type=int, default=64, help="compared (default: 64)")
    p.add_argument("--step", type=float, default=0, metavar="SECONDS", help="of training a batch")
    p.add_argument("--out", default="compare.png", help="the picture (default: compare.png)")
    a = p.parse_args(arguments)
    try:
        _compare(a)
    except (SpecError, ImportError, OSError) as e:
        sys.exit(f"chaski: {e}")


def _compare(a: argparse.Namespace) -> None:
    mine = _apart("about", a.loader, a.samples)
    call = a.call or _suggested(a.data or mine["folder"], mine["batch"])
    if not a.call:
        print(f"The call that chaski suggest finds:\n  {call}\n")
    ours = _apart("about", a.loader, 1 << 14, call)
    runs: dict[str, list[dict[str, float]]] = {"mine": [], "ours": []}
    for _ in range(a.rounds):  # in turns, so that both have the machine alike
        runs["mine"].append(_apart("measure", a.loader, a.seconds, a.step))
        runs["ours"].append(_apart("measure", a.loader, a.seconds, a.step, call))
    figures = {
        who: {k: statistics.median(run[k] for run in of) for k in _ROWS.values()}
        for who, of in runs.items()
    }
    names = a.loader.rpartition(":")[2], "chaski"
    print(_table(figures, names))
    lines, pair = equality(mine["samples"], ours["samples"])
    print("\n".join(["", *lines]))
    draw(figures, names, lines, pair).savefig(a.out, dpi=120)
    print(f"\nThe picture is {a.out}")


def _suggested(folder: str | None, batch: int) -> str:
    """Returns the call for a folder, with a size of batches."""
    if folder is None:
        raise SpecError(
            "nothing says where the files of the loader are: add --data DIR, or the call"
        )
    found = suggest(folder)
    if not found.calls:
        raise SpecError(f"chaski suggest {folder} finds no call: give one\n{found}")
    call = found.calls.get("train") or next(iter(found.calls.values()))
    return re.sub(r"batch_size=\d+", f"batch_size={batch}", call)


def _number(v: float) -> str:
    return f"{v:.3g}" if v < 100 else f"{v:,.0f}"


def _table(figures: Mapping[str, Mapping[str, float]], names: Sequence[str]) -> str:
    lines = [f"{'':22}{names[0]:>14}{names[1]:>12}{'gain':>8}"]
    for title, key in _ROWS.items():
        mine, ours = figures["mine"][key], max(figures["ours"][key], 1e-9)
        lines.append(f"{title:22}{_number(mine):>14}{_number(ours):>12}{mine / ours:>8.1f}")
    return "\n".join(lines)


# What runs in a process of its own.


def _apart(what: str, *args: Any) -> Any:
    """Calls a function of this module in a new process, and returns what it does."""
    spawn = multiprocessing.get_context("spawn")
    pipe, theirs = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_answer, args=(theirs, what, args))
    process.start()
    theirs.close()
    try:
        answer, failed = pipe.recv()
    except EOFError:
        answer, failed = "its process has ended", "killed?"
    process.join()
    if failed:
        raise SpecError(f"{args[0]}: {answer}\n{failed}".rstrip())
    return answer


def _answer(pipe: Any, what: str, args: Sequence[Any]) -> None:
    os.environ["CHASKI_JOB"] = f"compare-{os.getpid()}"  # an engine of its own
    try:
        pipe.send((globals()["_" + what](*args), ""))
    except BaseException as e:
        pipe.send((f"{type(e).__name__}: {e}", traceback.format_exc()))


def _maker(named: str, call: str = "") -> Callable[[], Any]:
    """Returns what makes the user's loader, or evaluates a call, which may use that module."""
    sys.path.insert(0, os.getcwd())
    if re.match(r"^[\w./\\-]+:\w+$", call):
        named, call = call, ""
    file, _, function = named.rpartition(":")
    if file.endswith(".py"):
        names = runpy.run_path(file)
    elif file:
        names = vars(importlib.import_module(file))
    else:
        raise SpecError(f"{named}: write MODULE:FUNCTION, or FILE.py:FUNCTION")
    if call:
        import chaski

        return lambda: eval(call, {**names, "chaski": chaski})
    if not callable(names.get(function)):
        raise SpecError(f"{file} has no function {function}")
    return cast(Callable[[], Any], names[function])


def _about(named: str, samples: int, call: str = "") -> dict[str, Any]:
    """Returns samples of a loader in the order of its dataset, and where its files lie."""
    if re.match(r"(chaski\.)?(torch\.IterableDataset|load)\(", call) and "shuffle=" not in call:
        call = re.sub(r"\)\s*$", ", shuffle=False)", call)
    loader = _maker(named, call)()
    dataset: Any = getattr(loader, "dataset", None)
    size, folder, batches = getattr(loader, "batch_size", 16), _folder(dataset), iter(loader)
    sampler = getattr(getattr(loader, "batch_sampler", None), "sampler", None)
    if type(sampler).__name__ == "RandomSampler":  # one by one, in order
        batches = (loader.collate_fn([dataset[i]]) for i in range(len(dataset)))
    kept: list[Sample] = []
    for row in itertools.chain.from_iterable(map(_rows, batches)):
        kept.append(row)
        if len(kept) >= samples or len(kept) * sum(a.nbytes for a in row.values()) > _KEPT:
            break
    return {"samples": kept, "batch": size or 16, "folder": folder}


def _folder(dataset: Any) -> str | None:
    """Returns the folder that a dataset names, of the datasets that it wraps."""
    for _ in range(4):
        for name in ("root", "paths", "folder", "directory", "data_dir", "path", "files"):
            v = getattr(dataset, name, None)
            if isinstance(v, (str, os.PathLike)) and os.path.isdir(v):
                return os.fspath(v)
            if isinstance(v, (list, tuple)) and v and isinstance(v[0], (str, os.PathLike)):
                common = os.path.commonpath([os.path.abspath(f) for f in v])
                return str(common if os.path.isdir(common) else os.path.dirname(common))
        dataset = getattr(dataset, "dataset", None)
    return None


def _leaves(v: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the arrays in a batch by name: keys, or numbers of a tuple."""
    if isinstance(v, Mapping):
        for k, x in v.items():
            yield from _leaves(x, f"{name}.{k}" if name else str(k))
    elif isinstance(v, (list, tuple)) and any(hasattr(x, "shape") for x in v):
        for k, x in enumerate(v):
            yield from _leaves(x, f"{name}.{k}" if name else str(k))
    elif getattr(v, "shape", ()):
        a = as_array(v.detach().cpu().float() if str(v.dtype) == "torch.bfloat16" else v)
        if a.dtype.kind in "biuf":
            yield name, a


def _valid(batch: Any) -> np.ndarray[Any, Any]:
    """Returns which rows of a batch are samples."""
    leaves = dict(_leaves(batch))
    every = np.ones(max((len(a) for a in leaves.values()), default=len(batch)), bool)
    return np.asarray(leaves.get("valid", every))


def _rows(batch: Any) -> list[Sample]:
    """Returns the samples of a batch."""
    valid = _valid(batch)
    leaves = [(k, a) for k, a in _leaves(batch) if len(a) == len(valid) and k not in _COUNTS]
    return [{k: np.array(a[i]) for k, a in leaves} for i in np.flatnonzero(valid)]


def _measure(named: str, seconds: float, step: float, call: str = "") -> dict[str, float]:
    """Runs a loader for some seconds, epoch by epoch, and returns its figures."""
    peak, over = [0.0], threading.Event()
    watch = threading.Thread(target=_watch, args=(over, peak), daemon=True)
    watch.start()
    make = _maker(named, call)  # the import of PyTorch is no part of the first batch
    begun = time.perf_counter()
    loader = make()
    loop = iter(loader)
    next(loop)
    first = time.perf_counter() - begun
    waits, samples, cpu, begun = [], 0, _cpu(), time.perf_counter()
    asked = begun
    batch: Any = None
    while time.perf_counter() - begun < seconds:
        batch = next(loop, None)
        if batch is None:
            loop = iter(loader)
            continue
        waits.append(time.perf_counter() - asked)
        samples += int(_valid(batch).sum())
        time.sleep(step)
        asked = time.perf_counter()
    took, cpu = time.perf_counter() - begun, _cpu() - cpu
    over.set()
    del loop, loader, batch  # before PyTorch ends, for whose workers it is an error
    if not samples:
        raise SpecError(f"no batch came within {seconds:g} s: write --seconds")
    return {
        "first": first,
        "clock": 1e3 * took / samples,
        "cpu": 1e3 * cpu / samples,
        "wait": 1e3 * statistics.median(waits),
        "longest": 1e3 * max(waits),
        "memory": peak[0],
    }


def _tree(name: str) -> Iterator[str]:
    """Yields a file below /proc of this process and of each below it."""
    folders = ["/proc/self"]
    for folder in folders:
        with contextlib.suppress(OSError):  # it has ended
            yield Path(folder, name).read_text()
            for task in Path(folder, "task").glob("*/children"):
                folders += [f"/proc/{pid}" for pid in task.read_text().split()]


def _cpu() -> float:
    """Returns the seconds of processors that this process, and those below it, have had."""
    ticks = 0
    for text in _tree("stat"):
        ticks += sum(map(int, text.rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK") if ticks else sum(os.times()[:4])  # without /proc


def _watch(over: threading.Event, peak: list[float]) -> None:
    """Keeps the most memory in MB that the processes have; what they share counts once."""
    while not over.wait(0.5):
        found = [re.search(r"^Pss:\s+(\d+)", s, re.MULTILINE) for s in _tree("smaps_rollup")]
        peak[0] = max(peak[0], sum(int(m[1]) for m in found if m) / 1e3)


# Whether the samples are equal.


def equality(
    mine: Sequence[Sample], ours: Sequence[Sample]
) -> tuple[list[str], tuple[Sample, Sample]]:
    """Says of each member in how many samples it is equal, and where not; and returns a pair."""
    named = _partners(mine[0], ours[0]) if mine and ours else {}
    if not named:
        members = [sorted(s[0]) if s else [] for s in (mine, ours)]
        return ["no member of {} has the shape of one of {}".format(*members)], ({}, {})
    points, others = _points(mine, [*named]), _points(ours, [*named.values()])
    far = [np.abs(others - p).mean(1) for p in points]
    pairs = [(a, ours[int(f.argmin())]) for a, f in zip(mine, far, strict=True) if f.min() < _NEAR]
    lines = [f"{n}: chaski has no such member" for n in mine[0] if n not in named]
    if not pairs:
        lines.append("No sample of the two is the same: random windows and augmentation differ")
    elif lost := len(mine) - len(pairs):
        lines.append(f"{lost} of {len(mine)} samples are not among the {len(ours)} of chaski")
    for name, other in named.items() if pairs else ():
        unlike = [(len(_places(a[name], b[other])), i) for i, (a, b) in enumerate(pairs)]
        worst, equal = max(unlike)[1], sum(n == 0 for n, _ in unlike)
        a, b = pairs[worst][0][name], pairs[worst][1][other]
        where = "" if equal == len(pairs) else _where(a, b, worst)
        kind = f"{a.dtype} {a.shape}"
        kind += "" if (a.dtype, a.shape) == (b.dtype, b.shape) else f", chaski {b.dtype} {b.shape}"
        title = name if name == other else f"{name} (chaski {other!r})"
        lines.append(f"{title}: equal in {equal} of {len(pairs)} samples ({kind}){where}")
    first = pairs[0] if pairs else (mine[0], ours[0])
    return lines, (first[0], {n: first[1][o] for n, o in named.items()})


def _partners(mine: Sample, ours: Sample) -> dict[str, str]:
    """Returns which member is which: by its name, else the first of the same shape."""
    fit = {
        n: [o for o in ours if np.squeeze(ours[o]).shape == np.squeeze(mine[n]).shape] for n in mine
    }
    out = {name: name for name in mine if name in fit[name]}
    for name in mine:
        free = [o for o in fit[name] if o not in out.values()]
        if name not in out and free:
            out[name] = free[0]
    return out


def _points(samples: Sequence[Sample], names: Sequence[str]) -> np.ndarray[Any, Any]:
    """Returns some values of each sample, whatever the scale of its members."""
    out: list[Any] = []
    for name in names:
        flat = [np.ravel(s[name]).astype(np.float64) for s in samples]
        v = np.stack([f[np.linspace(0, f.size - 1, _POINTS).astype(int)] for f in flat])
        out.append((v - v.mean(1, keepdims=True)) / (v.std(1, keepdims=True) + 1e-9))
    return np.asarray(np.nan_to_num(np.concatenate(out, axis=1)))


def _places(a: Any, b: Any) -> np.ndarray[Any, Any]:
    """Returns where values differ by more than float32 rounds."""
    x, y = np.atleast_1d(np.squeeze(a)), np.atleast_1d(np.squeeze(b))
    if x.shape != y.shape:
        return np.zeros((max(x.size, y.size), 1), int)
    return np.argwhere(~np.isclose(x, y, _CLOSE, _CLOSE, equal_nan=True))


def _where(a: Any, b: Any, sample: int) -> str:
    """Says where two values differ, and whether one is a scale and an offset of the other."""
    x, y = (np.atleast_1d(np.squeeze(v)).astype(np.float64) for v in (a, b))
    places = _places(x, y)
    if x.shape != y.shape:
        return f"; sample {sample} has the shape {a.shape}, of chaski {b.shape}"
    first = tuple(map(int, places[0]))
    if y.std() > 0 and np.isfinite(x).all() and np.isfinite(y).all():
        slope, offset = np.polyfit(y.ravel(), x.ravel(), 1)
        if not len(_places(x, y * slope + offset)):
            return f"; it is {slope:.6g} × chaski's, {offset:+.3g}: see normalize"
    return (
        f"; most in sample {sample}: {len(places):,} of {x.size:,} values, the first at {first}: "
        f"{x[first]:g}, chaski {y[first]:g}; at most by {np.nanmax(np.abs(x - y)):g}"
    )


def draw(
    figures: Mapping[str, Mapping[str, float]],
    names: Sequence[str],
    lines: Sequence[str],
    pair: tuple[Sample, Sample],
) -> Any:
    """Returns a picture of the figures, and below them one sample of both loaders."""
    images = [n for n in pair[1] if min(np.squeeze(pair[1][n]).shape[-2:], default=1) > 1][:1]
    figure = pyplot().figure(layout="constrained", figsize=(10, 6 if images else 2.8))
    many = 1 + len(images)
    head, *below = figure.subfigures(many, 1, height_ratios=[2.2, 3.4][:many])
    for place, (title, key) in zip(head.subplots(1, len(_ROWS)), _ROWS.items(), strict=True):
        values = [figures[who][key] for who in ("mine", "ours")]
        bars = place.bar(names, values, color=("#9e9e9e", "#2a7f9e"))
        place.bar_label(bars, [_number(v) for v in values], fontsize=8)
        place.set(yticks=[], ylim=(0, 1.2 * max(*values, 1e-9)))
        place.set_title(title, fontsize=9)
        place.tick_params(axis="x", labelsize=8)
        place.spines[["left", "top", "right"]].set_visible(False)
    for name in images:
        shown = [_bands(s[name]) for s in pair]
        both = [colours(a, None) for a in shown]
        gap = np.abs(shown[0].astype(np.float64) - shown[1]).max(axis=-1)
        places = below[0].subplots(1, 3)
        for place, what, title in zip(places, (*both, gap), (*names, "difference"), strict=True):
            drawn = place.imshow(what, cmap="magma", vmin=0, vmax=gap.max() or 1)
            place.set(xticks=[], yticks=[])
            place.set_title(f"{name}, {title}", fontsize=9)
        figure.colorbar(drawn, ax=places[2])
        below[0].supxlabel(textwrap.fill("; ".join(lines[:2]), 120), fontsize=8)
    return figure


def _bands(v: Any) -> Any:
    """Returns (y, x, b) of an image of which the shortest axis has the bands."""
    a = np.squeeze(v)
    a = np.moveaxis(a, np.argmin(a.shape), -1) if a.ndim == 3 else a.reshape(*a.shape[-2:], -1)
    return a[..., visible(a.shape[-1], ())]
