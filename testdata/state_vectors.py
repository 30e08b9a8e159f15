"""Writes testdata/states.json: states of other runs, and what follows from them, by the Python package.

PYTHONPATH=python/src python testdata/state_vectors.py > testdata/states.json

The Go package shuffle is held to them (TestStateVectors).
"""

import itertools
import json
import random

from chaski.errors import StateError
from chaski.order import State, Weights

rng = random.Random(17)
RUN = {
    "samples": 100,
    "batch_size": 8,
    "shuffle": True,
    "fields": "image, mask",
    "fields.image.dtype": "float32",
    "fields.image.bands": "#0123456789abcdef",
    "sampler.kind": "random_window",
    "sampler.scale_min": "0.5",
    "data": "#" + "ab" * 16,
    "rows": 50,
}
CHANGES = [
    {},
    {"samples": 240, "rows": 120, "data": "#" + "cd" * 16},
    {"samples": 30},
    {"batch_size": 12},
    {"batch_size": 12, "last": "drop", "samples": 100},
    {"fields.image.dtype": "uint8", "fields.image.bands": "#fedcba9876543210"},
    {"fields.image.bands": None, "augment": "d4"},
    {"shuffle": False, "sources.a.count": 2500},
    {f"sources.s{i:02}.count": i for i in range(12)},
    {"take": 90, "samples": 90},
    {"take": 90, "samples": 90, "sampler.per_asset": 3},
    {"selected rows, weights, sizes or boxes": "#" + "ef" * 16},
    {"fields.y.classes": '["airport","zoo"]'},
    {"fields.y.classes": '["zoo"]'},
    {"fields.y.classes": '["airport","zoo","dam"]'},
]


def run(change):
    return {k: v for k, v in {**RUN, **change}.items() if v is not None}


cases = []
for old, new in itertools.product(range(len(CHANGES)), repeat=2):
    was, now = run(CHANGES[old]), run(CHANGES[new])
    for bare, seed in ((False, 7), (False, 8), (True, 7)):
        if rng.random() < 0.9 and old and new:
            continue
        n, g = now["samples"], now["batch_size"]
        drop = now.get("last") == "drop"
        # Somewhere, the begin, the end of the state's own epoch, and past that of the run.
        samples = rng.choice([rng.randrange(0, 12) * was["batch_size"], 0, was["samples"], 96, 96 + 8 * 12])
        begin = State(f"spec {new}", 7, 0, 0, run=now)
        held = [{}, {"weights": (Weights("w", "00"),)}, {"scores": ("s", "11")}][len(cases) % 3]
        state = State(f"spec {old}", seed, 3, samples, run={} if bare else was, **held)
        case = {"state": state.to_dict(), "now": begin.to_dict(), "n": n, "g": g, "drops_last": drop}
        for key, strict in (("strict", True), ("any", False)):
            try:
                after, note = state.resume(begin, n, g, drop, strict)
                case[key] = {"epoch": after.epoch, "samples": after.samples, "note": note}
                case[key]["held"] = bool(after.weights or after.scores)
            except StateError as e:
                case[key] = {"error": str(e)}
        cases.append(case)
print("[" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "]")
