"""One step of run.py, as a process that shares no thread pools and caches.

    python peers.py '{"verb": "one", ...}'

The argument is a Job; the last line of standard output is a JSON object, the answer. Verbs:

    versions   the installed packages and their versions
    imagery    join the scene of a shape, SCENE.npy, from files of imagery or their stand-ins
    truth      statistics of the bands, and signatures of an epoch's samples
    make       write the samples of a shape in a format, a key of WRITERS in samples.py
    check      one epoch of a loader: every sample once, with the right pixels
    one        samples per second of a loader, with their processor time and memory
    decode     bytes per second of whole files in one thread, without a loader

Needs numpy, rasterio for imagery and tog, and for each format and loader the package of its name.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from loaders import LOADERS, READERS, chaski_dataset
from samples import (
    CACHE,
    Job,
    Numbers,
    imagery,
    make,
    package,
    signatures_of,
    tolerance,
    truth,
    weights,
)

# As GDAL, rio-tiler and boto3 are set up for a store; the endpoint is set with the job's URL.
AT_A_STORE = {
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
    "GDAL_HTTP_MERGE_CONSECUTIVE_RANGES": "YES",
    "GDAL_HTTP_MULTIPLEX": "YES",
    "GDAL_INGESTED_BYTES_AT_OPEN": "32768",
    "VSI_CACHE": "TRUE",
    "VSI_CACHE_SIZE": "5000000",
    "AWS_ACCESS_KEY_ID": "any",
    "AWS_SECRET_ACCESS_KEY": "any",
    "AWS_REGION": "us-east-1",
}

# Checking.


def epoch_of(job: Job) -> Iterator[tuple[Any, list[tuple[int, int, int, int]]]]:
    """Yields the batches of an epoch and, for chaski, (sample, image, y, x) of their rows.

    Which sample stands where, and which window of it, follows from seed, epoch and position.
    """
    if not job.loader.startswith("chaski"):
        endless = forever(LOADERS[job.loader](job))
        for _ in range(job.of.samples // job.batch):
            yield next(endless), []
        return
    order, s = package("chaski.order"), job.of
    side = (s.scene, s.scene, s.side, s.side)
    for batch in chaski_dataset(job):
        rows = zip(batch["sample"].tolist(), batch["position"].tolist(), strict=True)
        if s.windows:
            places = [(k, k // s.per_asset, *order.window(0, 0, p, *side)) for k, p in rows]
        else:
            places = [(k, k, 0, 0) for k, _ in rows]
        yield batch["image"], places


def forever(batches: Iterable[Any]) -> Iterator[Any]:
    """Yields the batches of one epoch after the other."""
    while True:
        yield from batches


def check(job: Job) -> dict[str, Any]:
    """Compares the samples of an epoch with the truth."""
    shape, w = job.of, weights(job.of)
    found: list[Numbers] = []
    rows: list[tuple[int, int, int, int]] = []
    for batch, places in epoch_of(job):
        want = (job.batch, shape.bands, shape.side, shape.side)
        if str(batch.dtype) != "torch.float32" or tuple(batch.shape) != want:
            raise ValueError(f"a batch is {batch.dtype} {tuple(batch.shape)}, not float32 {want}")
        found += [sample.reshape(-1).double().numpy() @ w for sample in batch]
        rows += places
    if len(found) != shape.samples:
        return {"wrong": f"{len(found)} samples, not {shape.samples}"}
    signatures = np.array(found)
    if not rows:
        expected = np.load(job.folder / "truth.npy")
        return verdict(paired(signatures, expected, tolerance(shape)), tolerance(shape))
    if len({sample for sample, *_ in rows}) < len(rows):
        return {"wrong": "samples come twice in an epoch"}
    expected = signatures_of(job, np.array(rows)[:, 1:])
    return verdict(np.abs(signatures - expected).max(axis=1), tolerance(shape))


def paired(found: Numbers, expected: Numbers, limit: float) -> Numbers:
    """Returns how far each signature is from its own: the nearest that no other has taken.

    A sample without one is infinitely far. Sorting both by size would exchange samples whose first
    sums are equal but for rounding.
    """
    expected = expected[np.argsort(expected[:, 0])]
    free = np.ones(len(expected), bool)
    off = np.full(len(found), np.inf)
    for i, signature in enumerate(found):
        low, high = np.searchsorted(expected[:, 0], signature[0] + np.array([-limit, limit]))
        near = np.flatnonzero(free[low : high + 1]) + low
        if len(near):
            far = np.abs(expected[near] - signature).max(axis=1)
            free[near[far.argmin()]], off[i] = far.min() > limit, far.min()
    return off


def verdict(off: Numbers, limit: float) -> dict[str, Any]:
    """Says whether all samples are near their signatures; off is how far each is."""
    bad = int(np.count_nonzero(~(off <= limit)))
    if bad:
        return {"wrong": f"{bad} of {len(off)} samples are not those that were written"}
    return {"samples": len(off), "off": float(off.max(initial=0))}


# Measuring.


def measure(job: Job) -> dict[str, Any]:
    """Times the loop of a consumer that only touches each batch.

    Local files are read epoch after epoch, after a warm-up. Behind a link it is the first epoch
    from its start, because some loaders keep what they have fetched. Of one that does not end in
    time, the time from its first batch counts.
    """
    package("torch")  # which every consumer has imported

    born = time.perf_counter()
    cpu = cpu_seconds()
    batches = forever(LOADERS[job.loader](job))
    first = next(batches)
    float(first[:, 0, 0, 0].sum())
    ready = time.perf_counter()
    answer: dict[str, Any] = {"first_batch_s": ready - born}
    if job.pause is not None:
        for _ in range(job.of.samples // job.batch):
            next(batches)
            time.sleep(job.pause)
        settle()
    del first  # or its memory would be no loader's for the next batches
    for _ in range(0 if job.url else max(1, job.workers)):
        batch = next(batches)
        float(batch[:, 0, 0, 0].sum())
    waits: list[float] = []
    cpu = cpu if job.url else cpu_seconds()
    samples, most = 0, job.of.samples - job.batch if job.url else math.inf
    now = start = time.perf_counter()
    while (now - start < job.seconds or not waits) and samples < most:
        asked = now
        batch = next(batches)
        waits.append(time.perf_counter() - asked)
        float(batch[:, 0, 0, 0].sum())
        samples += batch.shape[0]
        now = time.perf_counter()
    if samples == most:  # the whole epoch
        samples, start = job.of.samples, born
    passed = now - start
    answer |= {"samples": samples, "seconds": passed, "samples_per_s": samples / passed}
    if cpu is not None:
        answer["cpu_s_per_sample"] = (cpu_seconds() - cpu) / samples
    p50, p99 = np.percentile(waits, [50, 99])
    return answer | {"wait_p50_s": p50, "wait_p99_s": p99, "waits": len(waits)} | memory()


def settle() -> None:
    """Waits until nothing works any more: what is encoded belongs to the first epoch."""
    last, now = -1.0, 0.0
    while now - last > 0.03:  # three ticks of the clock
        time.sleep(0.5)
        last, now = now, cpu_seconds() or 0


def decode(job: Job) -> dict[str, Any]:
    """Times a reader by itself."""
    files, read = job.files(), READERS[job.loader](job)
    for path in files[:4]:
        read(path, None)
    size, start = 0, time.perf_counter()
    for path in itertools.cycle(files):
        size += read(path, None).nbytes
        if time.perf_counter() - start >= job.seconds:
            break
    return {"decode_bytes_per_s": size / (time.perf_counter() - start)}


def tree() -> list[int]:
    """Returns this process and its descendants, or nothing on systems without /proc."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue  # it has ended
    mine = {os.getpid()} & parents.keys()
    while more := {p for p, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sorted(mine)


def cpu_seconds() -> Any:
    """Returns the CPU time of this process, its descendants, and those that have ended."""
    ticks = 0
    pids = tree()
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(v) for v in fields[11:15])  # user and system, own and of ended children
    return ticks / os.sysconf("SC_CLK_TCK") if pids else None


def memory() -> dict[str, float]:
    """Returns the memory of this process and its descendants, in bytes.

    The first is the sum of each process's peak, in which shared pages count several times. The
    second is the present memory, in which shared pages count once.
    """
    peak = now = 0
    for pid in tree():
        try:
            status = Path(f"/proc/{pid}/status").read_text()
            peak += 1024 * int(status.split("VmHWM:")[1].split()[0])
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            now += 1024 * int(rollup.split("\nPss:")[1].split()[0])
        except (OSError, IndexError, ValueError):
            continue
    return {"rss_bytes": peak, "pss_bytes": now} if peak else {}


def versions(job: Job) -> dict[str, Any]:
    """Returns which of the named packages are installed, with their versions."""
    found = {}
    for name in job.packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    if "chaski" in job.packages:
        try:
            found["chaski"] = package("chaski").__version__
        except ImportError:
            pass
    if "rasterio" in found:
        rasterio = package("rasterio")

        found["GDAL"] = rasterio.__gdal_version__
    return {"python": platform.python_version(), "versions": found}


VERBS: dict[str, Callable[[Job], dict[str, Any]]] = {
    "versions": versions,
    "imagery": imagery,
    "truth": truth,
    "make": make,
    "check": check,
    "one": measure,
    "decode": decode,
}


def main() -> None:
    """Does the job. A failure is an answer too."""
    job = Job.parse(sys.argv[1])
    os.environ.setdefault("GDAL_CACHEMAX", "5%" if job.large else str(CACHE))
    if job.url:
        os.environ.update(AT_A_STORE | {"S3_ENDPOINT_URL": job.url})
    try:
        answer = VERBS[job.verb](job)
    except ImportError as e:
        answer = {"missing": str(e)}
    except Exception as e:
        answer = {"failed": " ".join(f"{type(e).__name__}: {e}".split())[:300]}
    print("\n" + json.dumps(answer), flush=True)
    os._exit(0)  # workers and thread pools of peers do not always end


if __name__ == "__main__":
    main()
