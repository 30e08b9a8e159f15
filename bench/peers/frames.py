"""Decoding speed of OpenZL frames: chaski and the original library, one core, class by class.

    python frames.py --chaski bin/chaski --rounds 5 DIR

DIR has the frames DIR/CLASS/*.zl. All of a class are decoded once by both, and must give the same
bytes, those of FRAME.raw where it lies beside FRAME.zl. Then each class is measured in rounds, in
which both take turns. Printed are the MB of content a second, medians of the rounds, their ratio
with the lowest and the highest of one round, and the geometric mean of the ratios, without the
class "store", which measures how memory is copied.

Needs openzl, and geozl for frames with its codecs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openzl.ext as zl  # type: ignore[import-not-found]


def with_chaski(chaski: str, files: list[Path], seconds: float) -> float:
    """Returns the MB a second of one round of `chaski bench decode`."""
    argv = [chaski, "bench", "decode", "--opened", "--json", "--workers", "1", "--rounds", "1"]
    run = subprocess.run(
        [*argv, "--seconds", str(seconds), *map(str, files)],
        check=True,
        stdout=subprocess.PIPE,
        env=os.environ | {"GOMAXPROCS": "1"},
    )
    return next(
        float(f["median"]) for f in json.loads(run.stdout)["figures"] if f["unit"] == "MB/s"
    )


def original(frames: list[bytes]) -> Callable[[bytes], Any]:
    """Returns what decodes the frames: openzl or, where that refuses, geozl."""
    decoder = zl.DCtx()
    try:
        decoder.decompress(frames[0])
    except Exception:
        import geozl  # type: ignore[import-not-found]

        return geozl.decompress  # type: ignore[no-any-return]
    return decoder.decompress  # type: ignore[no-any-return]


def content(decoded: Any) -> bytes:
    """Returns the bytes of all outputs."""
    if isinstance(decoded, list):
        return b"".join(output.content.as_bytes() for output in decoded)
    return bytes(decoded)


def check(chaski: str, files: list[Path], decode: Callable[[bytes], Any]) -> int:
    """Compares the contents, and returns how many bytes they are."""
    size = 0
    for file in files:
        run = subprocess.run(
            [chaski, "frame", "--format", "raw", str(file)], check=True, stdout=subprocess.PIPE
        )
        wanted = [content(decode(file.read_bytes()))]
        if (raw := file.with_suffix(".raw")).exists():
            wanted.append(raw.read_bytes())
        if any(run.stdout != w for w in wanted):
            raise SystemExit(f"{file}: chaski decodes it to other bytes")
        size += len(run.stdout)
    return size


def main() -> None:
    """Measures, and prints a table."""
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("folder", metavar="DIR", type=Path)
    p.add_argument("--chaski", default="bin/chaski")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.2, help="of one turn")
    args = p.parse_args()
    print("| class | ratio | chaski | original | times |\n|---|--:|--:|--:|---|")
    medians = []
    for folder in sorted(args.folder.iterdir()):
        if not (files := sorted(folder.glob("*.zl"))):
            continue
        frames = [f.read_bytes() for f in files]
        decode = original(frames)
        size = check(args.chaski, files, decode)
        rounds = []
        for _ in range(args.rounds):
            ours = with_chaski(args.chaski, files, args.seconds)
            start, passes = time.perf_counter(), 0
            while (took := time.perf_counter() - start) < args.seconds or passes == 0:
                for frame in frames:
                    decode(frame)
                passes += 1
            rounds.append((ours, passes * size / took / 1e6))
        times = sorted(a / b for a, b in rounds)
        ours, theirs = (statistics.median(r) for r in zip(*rounds, strict=True))
        if folder.name != "store":
            medians.append(statistics.median(times))
        print(
            f"| {folder.name} | {size / sum(map(len, frames)):.2f} | {ours:.0f} | {theirs:.0f} | "
            f"{statistics.median(times):.2f} ({times[0]:.2f} to {times[-1]:.2f}) |",
            flush=True,
        )
    if medians:
        print(f"\nGeometric mean without store: {statistics.geometric_mean(medians):.2f}")


if __name__ == "__main__":
    main()
