"""Draws arrays, has libtiledb 1.6.3 write them, and puts them into a ZIP with what they hold.

    drawn.py LIBRARY ZIP COUNT

LIBRARY is the library that write16.py takes, the interpreter has the package tiledb. ZIP becomes
testdata/tiledb/drawn.zip: COUNT arrays of at most 16 KiB, by their seeds, and reads.jsonl, the
lines of write16.py about them. Where libtiledb of the package reads another array than was written,
it is left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from known import pack

HERE = Path(__file__).parent
MOST = 16 << 10  # bytes of an array


def lines(script: str, *args: str, text: str | None = None) -> list[dict[str, Any]]:
    """Runs a script of this folder, and returns its lines."""
    run = [sys.executable, str(HERE / script), *args]
    out = subprocess.run(run, input=text, stdout=subprocess.PIPE, check=True, text=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def agreed(array: dict[str, Any]) -> bool:
    """Reports whether the package reads what was written."""
    got = lines("oracle.py", text=json.dumps([r["read"] for r in array["reads"]]))
    for have, want in zip(got, array["reads"], strict=True):
        if have.get("error") and not want["read"]["dense"] and not want["read"]["cells"]:
            continue  # oracle.py has no room for no cells
        if have.get("error") or have.get("coords", "") != want["coords"]:
            return False
        for name, hashes in want["attrs"].items():
            if {"offsets": "", **have["attrs"][name]} != hashes:
                return False
    return True


def main() -> None:
    """Runs the command line."""
    library, archive, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with tempfile.TemporaryDirectory() as temporary:
        drawn, kept = Path(temporary, "drawn"), Path(temporary, "kept")
        drawn.mkdir()
        kept.mkdir()
        chosen = []
        for array in lines("write16.py", library, str(drawn), "1", str(4 * count), "600"):
            folder = drawn / str(array["seed"])
            if "reads" not in array or len(chosen) == count:
                continue
            if sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) > MOST:
                continue
            if not agreed(array):
                print(f"left out: {array['seed']}: {array['what']}", file=sys.stderr)
                continue
            folder.rename(kept / folder.name)
            for read in array["reads"]:
                read["read"]["path"] = folder.name
            chosen.append(json.dumps(array))
        (kept / "reads.jsonl").write_text("\n".join(chosen) + "\n")
        pack(kept, archive)


if __name__ == "__main__":
    main()
