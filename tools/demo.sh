#!/usr/bin/env bash
# `make demo`, once the command and .venv exist.
set -euo pipefail
cd "$(dirname "$0")/.."
data=.demo

heading() { printf '\n-- %s\n' "$*"; }

heading "A labelled dataset of one Sentinel-2 scene: half of the chips TOG, half rumi"
${GO:-go} run ./examples/demo-dataset -scene testdata/demo/coast.tif -out "$data"

heading "Its statistics"
"$CHASKI_BIN" stats --field 'image=images/{id}.tif' -o "$data/stats.json" "$data/train"
.venv/bin/python - "$data/stats.json" <<'PY'
import json, sys
bands = json.load(open(sys.argv[1]))["fields"]["image"]["bands"]
print("band   mean    std    min    max")
for name, b in zip(("B05", "B06", "B07", "B8A", "B11", "B12"), bands, strict=True):
    print(f"{name} {b['mean']:7.1f} {b['std']:6.1f} {b['min']:6.0f} {b['max']:6.0f}")
PY

heading "Two epochs of training on the batches that the engine streams"
# Waiting threads of PyTorch must not spin, because the engine needs the cores as well.
OMP_WAIT_POLICY=passive .venv/bin/python examples/train.py "$data" --stats "$data/stats.json" \
  --sheet "$data/batch.png" --scene testdata/demo/coast.tif

heading "Chips in a TACO container; training on it, without unpacking it"
.venv/bin/python examples/cut_chips.py testdata/coast/coast.tacozip "$data/coast.tacozip"
OMP_WAIT_POLICY=passive .venv/bin/python examples/container.py "$data/coast.tacozip" --image image.npy --mask mask.npy
