"""Training from HDF5, side by side with h5py in a torch DataLoader.

    bench_hdf5.py [--rounds N] [--workers W] [--samples N]

Run it with an interpreter that has the packages chaski, torch and h5py. It writes samples of
(n, 32, 32, 18) float64, as So2Sat has them, one in a chunk (gzip and shuffle), and not chunked; and
a scene of uint16 in chunks of 256 by 256 (gzip), of which random windows of 256 by 256 are read.
Both give float32 tensors in batches of 64 (16 windows). Figures are samples for a second of
processor time, of all processes, and the ratio of their medians.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile

import numpy as np


def write(path: str, count: int) -> None:
    """Writes the file."""
    import h5py

    rng = np.random.default_rng(1)
    data = rng.normal(0.1, 0.05, (count, 32, 32, 18)).astype("f4").round(3).astype("f8")
    y, x = np.mgrid[0:4096, 0:4096]
    ground = 1500 + 900 * np.sin(x / 90) * np.cos(y / 70)
    with h5py.File(path, "w") as f:
        f.create_dataset(
            "chunked", data=data, chunks=(1, 32, 32, 18), compression="gzip", shuffle=True
        )
        f.create_dataset("plain", data=data)
        scene = (ground + rng.normal(0, 20, ground.shape)).astype("u2")
        f.create_dataset("scene", data=scene, chunks=(256, 256), compression="gzip", shuffle=True)


def theirs(path: str, name: str, workers: int, count: int):
    """Yields batches of h5py."""
    import h5py
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Samples(Dataset):
        file = None

        def __len__(self) -> int:
            return count

        def __getitem__(self, i: int):
            if self.file is None:
                self.file = h5py.File(path)[name]
            if name == "scene":
                y, x = np.random.default_rng(i).integers(0, 4096 - 256, 2)
                return torch.from_numpy(self.file[y : y + 256, x : x + 256].astype("f4"))
            return torch.from_numpy(self.file[i].astype("f4").transpose(2, 0, 1))

    size = 16 if name == "scene" else 64
    yield from DataLoader(Samples(), batch_size=size, shuffle=True, num_workers=workers)


def ours(path: str, name: str, workers: int, count: int):
    """Yields batches of chaski."""
    import chaski

    scene = name == "scene"
    window = chaski.RandomWindow((256, 256), per_asset=count) if scene else None
    rows = chaski.Rows() if scene else chaski.Rows(dims="n y x b")
    engine = chaski.Engine(workers=workers)
    size = 16 if scene else 64
    fields = {"image": {"column": name}}
    with chaski.load(
        path, batch_size=size, rows=rows, fields=fields, window=window, engine=engine
    ) as loader:
        for batch in loader:
            yield batch["image"]


def spent() -> float:
    """Returns the processor time of this process and of those that it waited for."""
    return sum(
        sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )


def run(side: str, path: str, name: str, workers: int, count: int) -> None:
    """Reads an epoch, and prints the processor time."""
    import torch  # noqa: F401

    before = spent()
    batches = (theirs if side == "h5py" else ours)(path, name, workers, count)
    seen = sum(len(b) for b in batches)
    assert seen >= count, seen
    print(spent() - before)


def main() -> None:
    """Prints a table of samples a second of processor time."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--samples", type=int, default=2000)
    p.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.run:
        side, path, name = args.run
        return run(side, path, name, args.workers, args.samples)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "data.h5")
        write(path, args.samples)
        for name in ("chunked", "plain", "scene"):
            count = args.samples // 2 if name == "scene" else args.samples
            rates: dict[str, list[float]] = {"h5py": [], "chaski": []}
            for _ in range(args.rounds):
                for side in rates:

                    def seconds(n: int, side: str = side, name: str = name) -> float:
                        command = [
                            sys.executable,
                            __file__,
                            "--workers",
                            str(args.workers),
                            "--samples",
                            str(n),
                        ]
                        done = subprocess.run(
                            [*command, "--run", side, path, name],
                            stdout=subprocess.PIPE,
                            check=True,
                        )
                        return float(done.stdout.split()[-1])

                    rates[side].append(count / seconds(count))
            h5py, chaski = (statistics.median(rates[side]) for side in rates)
            rate = f"h5py {h5py:.0f}, chaski {chaski:.0f} samples a second"
            print(f"{name}: {rate}, {chaski / h5py:.2f} times", flush=True)


if __name__ == "__main__":
    main()
