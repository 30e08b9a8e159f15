"""Takes batches as a training step would, and prints a line of JSON a round."""

import json
import platform
import sys
import time

import chaski

settings = json.loads(sys.argv[1])
spec = settings["spec"]
to_tensors = None
if settings["torch"]:
    from chaski.torch import to_tensors


def batches(loader):
    while True:
        yield from loader


def take(stream, waits):
    asked = time.perf_counter()
    batch = next(stream)
    waits.append(time.perf_counter() - asked)
    valid = batch["valid"]
    rows, size = int(valid.sum()), 0
    for field in spec["fields"]:
        array = batch[field["name"]]
        size += getattr(array, "nbytes", 0)
    if to_tensors is not None:
        batch = to_tensors(batch)
    first = batch[spec["fields"][0]["name"]]
    float(first.reshape(-1)[:: max(1, first.size if to_tensors is None else first.numel())].sum())
    return rows, size * rows // len(valid)  # rows of padding are no work done


def field(f):
    number = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
    f = {k: v for k, v in f.items() if k != "name"}
    if "fill" in f:
        f["fill"] = number.get(f["fill"], f["fill"])
    if "clip" in f.get("normalize", {}):
        n = f["normalize"]
        f["normalize"] = n | {"clip": tuple(number.get(v, v) for v in n["clip"])}
    return f


sampler, arguments = spec["sampler"], {}
if sampler["kind"] == "random_window":
    size = sampler["height"], sampler["width"]
    arguments["window"] = chaski.RandomWindow(size, per_asset=sampler["per_asset"])
if settings["workers"]:
    arguments["engine"] = chaski.Engine(workers=settings["workers"])
begin = time.perf_counter()
with chaski.load(
    spec["source"],
    batch_size=spec["batch_size"],
    fields={f["name"]: field(f) for f in spec["fields"]},
    shuffle=spec["shuffle"],
    seed=spec["seed"],
    drop_last=spec.get("drop_last", False),
    on_bad=spec["bad_samples"],
    **arguments,
) as loader:
    stream = batches(loader)
    take(stream, [])
    head = {
        "python": platform.python_version(),
        "package": chaski.__version__,
        "total": loader.samples,
        "first": time.perf_counter() - begin,
    }
    print(json.dumps(head), flush=True)
    for _ in range(4):
        take(stream, [])
    for _ in range(settings["rounds"]):
        samples, size, waits, start = 0, 0, [], time.perf_counter()
        while samples == 0 or time.perf_counter() - start < settings["seconds"]:
            r, s = take(stream, waits)
            samples, size = samples + r, size + s
        line = {"samples": samples, "bytes": size, "seconds": time.perf_counter() - start}
        waits.sort()
        last = len(waits) - 1
        for name, percent in (("p50", 50), ("p99", 99), ("max", 100)):
            line[f"wait_{name}"] = waits[last * percent // 100]
        print(json.dumps(line), flush=True)
