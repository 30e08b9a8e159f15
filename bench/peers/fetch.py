"""What `Loader.fetch` of random samples costs beside a stream of as many, in processor time.

    python bench/peers/fetch.py chips/ --samples 8 32 64 128

Each turn is a process with an engine of its own. A stream that pauses sleeps 2 ms a sample after
each batch, so that its workers rest and wake as those of fetch do.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import subprocess
import sys
import time

from sides import processor_seconds

WAYS = "fetch", "pauses", "stream"
OF_A_TURN = 2048  # samples: 3 to 4 s of a core


def turn(chips: str, way: str, samples: int) -> float:
    """Returns the milliseconds of all processes for a sample."""
    import chaski

    pixels, scale = chaski.Pixels(dtype="float32"), chaski.Normalize([1e-4], [-0.1])
    drawn, rounds = random.Random(0), OF_A_TURN // samples
    with chaski.load(
        chips + "/*.tif",
        batch_size=samples,
        shuffle=True,
        last="drop",
        pixels=pixels,
        normalize=scale,
        engine=chaski.Engine(share=False),
    ) as loader:
        batches = itertools.chain.from_iterable(loader for _ in itertools.count())
        begun = 0.0
        for i in range(-6, rounds):
            if i == 0:
                begun = processor_seconds()
            if way == "fetch":
                batch = loader.fetch(drawn.sample(range(loader.samples), samples))
            else:
                batch = next(batches)
            batch["image"].reshape(samples, -1)[:, 0].sum()
            if way == "pauses":
                time.sleep(0.002 * samples)
        return 1000 * (processor_seconds() - begun) / (rounds * samples)


def main() -> None:
    """Prints a line for each number of samples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chips")
    parser.add_argument("--samples", type=int, nargs="+", default=[8, 32, 64, 128])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--way", choices=WAYS, help="take one turn")
    o = parser.parse_args()
    if o.way:
        print(turn(o.chips, o.way, o.samples[0]))
        return
    for samples in o.samples:
        found: dict[str, list[float]] = {way: [] for way in WAYS}
        for i in range(o.rounds):
            for way in WAYS if i % 2 else WAYS[::-1]:
                line = [sys.executable, __file__, o.chips, "--way", way, "--samples", str(samples)]
                found[way].append(float(subprocess.check_output(line)))
        line = [f"{way} {statistics.median(ms):.2f} ms" for way, ms in found.items()]
        for other in WAYS[1:]:
            ratios = sorted(a / b for a, b in zip(found["fetch"], found[other], strict=True))
            middle = statistics.median(ratios)
            line.append(f"against {other} {middle:.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})")
        print(f"{samples} samples: " + ", ".join(line), flush=True)


if __name__ == "__main__":
    main()
