"""Executes the notebooks of docs/tutorials, and fails if a cell does.

    notebooks.py [--write] [NOTEBOOK...]

With --write the outputs are stored in the notebooks. What one reads from the Hugging Face hub
comes from a stand-in on this machine (python/tests/hub.py), which draws its images. Each runs in a
temporary folder. It needs what python/requirements-notebooks.txt lists, beside what the notebooks
import; `make notebooks` has it.
"""

from __future__ import annotations

import base64
import io
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python" / "tests"))
import hub  # noqa: E402

SECONDS = 900  # a cell takes a few, but machines have other work
COLUMNS = 88  # that a page shows without scrolling
KILOBYTES = 300
STYLE = (
    "%config InlineBackend.figure_formats = ['png']\n%config InlineBackend.rc = {'figure.dpi': 70}"
)


def execute(notebook: Any) -> None:
    """Runs the cells of a notebook, whose outputs become those of this run."""
    style = nbformat.v4.new_code_cell(STYLE)
    notebook.cells.insert(0, style)
    try:
        with tempfile.TemporaryDirectory() as folder:
            NotebookClient(
                notebook,
                timeout=SECONDS,
                resources={"metadata": {"path": folder}},
                record_timing=False,
            ).execute()
    finally:
        notebook.cells.remove(style)


def shrink(png: str) -> str:
    """Returns a picture with a palette of 256 colours, which takes half of the space."""
    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB").quantize(256)
    out = io.BytesIO()
    picture.save(out, "png", optimize=True)
    return base64.b64encode(out.getvalue()).decode()


def join_prints(outputs: list[Any]) -> list[Any]:
    """Returns outputs with neighbouring prints as one: a page draws a box for each output."""
    joined: list[Any] = []
    for output in outputs:
        last = joined[-1] if joined else {}
        if output.output_type == "stream" and last.get("name") == output.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def tidy(notebook: Any) -> None:
    """Numbers the cells from 1, gives pictures their texts, and leaves out what says nothing."""
    number = 0
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        number += 1
        cell.execution_count = number
        cell.outputs = join_prints(cell.outputs)
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number
            if "image/png" in output.get("data", {}):
                output.metadata = {"image/png": {"alt": cell.metadata["alt"]}}
                output.data = {"image/png": shrink(output.data["image/png"])}
    notebook.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
    }


def problems(path: Path, notebook: Any) -> list[str]:
    """Returns what a page would show badly."""
    out = [
        f"a line of {len(line)} columns, over {COLUMNS}: {line}"
        for cell in notebook.cells
        if cell.cell_type == "code"
        for line in cell.source.splitlines()
        if len(line) > COLUMNS
    ]
    size = path.stat().st_size / 1000
    return out + [f"{size:.0f} KB, over {KILOBYTES}"] * (size > KILOBYTES)


def main() -> int:
    """Executes notebooks, and prints how long each took."""
    arguments = [a for a in sys.argv[1:] if a != "--write"]
    # The kernels run this checkout's package and command.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python" / "src"), *sys.path])
    os.environ["PATH"] = os.pathsep.join([str(ROOT / "bin"), os.environ["PATH"]])
    os.environ["CHASKI_BIN"] = str(ROOT / "bin" / "chaski")
    found = [Path(a) for a in arguments] or sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
    failed = 0
    for path in found:
        notebook = nbformat.read(path, as_version=4)
        started = time.monotonic()
        with hub.serve() as os.environ["HF_ENDPOINT"]:
            execute(notebook)
        if "--write" in sys.argv:
            tidy(notebook)
            nbformat.write(notebook, path)
        said = problems(path, notebook)
        failed += len(said)
        seconds, size = time.monotonic() - started, path.stat().st_size / 1000
        print(f"{path.name}: {seconds:.1f} s, {size:.0f} KB", *said, sep="\n  ", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
