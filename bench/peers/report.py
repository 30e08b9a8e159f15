"""Tables and a figure of what was measured."""

from __future__ import annotations

import html
import json
import statistics
from pathlib import Path
from typing import Any

from shapes import BASELINE

Row = dict[str, Any]

CPU = "cpu_s_per_sample"

# By processor time: loaders with the same memory for tiles, and with what each takes by default.
PAIRS = {
    "chaski": ("rasterio", "pillow", "tifffile-loop", "cv2-loop", "zarrs-loop", "h5py-loop"),
    "chaski-large": ("rasterio-large", "rasterio-loop"),
    "chaski-recode": ("rasterio",),
    "chaski-fast": ("rasterio",),
}

# Figures of a round; each row has the least, median and most of its rounds.
FIGURES = (
    "samples_per_s",
    CPU,  # of all processes
    "wait_p50_s",  # of the consumer for a batch
    "wait_p99_s",
    "first_batch_s",  # from making the loader, after importing PyTorch
    "decode_bytes_per_s",  # whole files in one thread, without a loader
    "rss_bytes",  # the sum of the processes' peaks
    "pss_bytes",  # of all processes at the end, shared pages counted once
    "of_link",  # bytes that samples need, of those that the link carries
    "requests_per_sample",
)


def spread(values: list[float]) -> dict[str, float] | None:
    """Returns the least, median and most of values, None if there are none."""
    if not values:
        return None
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def summarise(rows: list[Row]) -> None:
    """Adds the spreads of figures, and of the ratio to the baseline round by round."""
    base: list[Row] = next(
        (r["rounds"] for r in rows if r["peer"] == BASELINE and r["status"] == "ok"), []
    )
    for row in rows:
        if row["status"] != "ok":
            continue
        for name in FIGURES:
            row[name] = spread([r[name] for r in row["rounds"] if r.get(name)])
        pairs = zip(row["rounds"], base, strict=bool(base))
        row["ratio"] = spread([r["samples_per_s"] / b["samples_per_s"] for r, b in pairs])
    by_name = {r["peer"]: r["rounds"] for r in rows if r["status"] == "ok"}
    for row in rows:
        if against := PAIRS.get(row["peer"]) if row["status"] == "ok" else None:
            row["against"] = {
                peer: spread([b[CPU] / r[CPU] for r, b in zip(row["rounds"], other, strict=True)])
                for peer in against
                if (other := by_name.get(peer)) and all(CPU in r for r in row["rounds"] + other)
            }


def ranked(rows: list[Row]) -> list[Row]:
    """Returns the rows with figures, fastest first, then the others."""
    speed = {id(r): (r.get("samples_per_s") or {"median": 0})["median"] for r in rows}
    return sorted(rows, key=lambda r: -speed[id(r)])


def middle(figure: dict[str, float] | None, scale: float, digits: int) -> str:
    """Returns the median times a scale."""
    return "–" if figure is None else f"{figure['median'] * scale:.{digits}f}"


def full(figure: dict[str, float] | None, digits: int) -> str:
    """Returns the median, and the least and most in brackets if they differ."""
    if figure is None or figure["min"] == figure["max"]:
        return middle(figure, 1, digits)
    low, high = (f"{figure[k]:.{digits}f}" for k in ("min", "max"))
    return f"{middle(figure, 1, digits)} ({low} – {high})"


def settings(result: dict[str, Any]) -> str:
    """Describes the rounds."""
    s = result["settings"]
    rounds = "one round" if s["rounds"] == 1 else f"{s['rounds']} rounds in turns"
    return f"{rounds} of {s['seconds']:g} s, {s['workers']} workers each"


def markdown(result: dict[str, Any]) -> str:
    """Returns the machine, and a table for each shape."""
    m = result["machine"]
    versions = ", ".join(f"{k} {v}" for k, v in sorted(m["versions"].items()))
    lines = [
        "# Side by side with other loaders",
        "",
        f"{result['date']} on {m['cpu']}, {m['cores']} cores, {m['memory'] / 1e9:.0f} GB, "
        f"{m['os']}, Python {m['python']}; {settings(result)}; load average "
        f"{m['load_before']:.2f} before and {m['load_after']:.2f} after.",
        "",
        f"{versions}.",
        "",
    ]
    if result["settings"]["quick"]:
        lines += ["**Small files and short rounds: do not compare these figures.**", ""]
    lines += [
        "Samples a second into a loop that takes batches: median of the rounds, least – most in "
        f"brackets. × is against {BASELINE}, round by round. CPU is of all processes of a loader. "
        "Waits are the consumer's, for a batch. First batch: from making the loader, PyTorch being "
        "imported. Memory is what all processes have at the end, shared pages counted once; peak "
        "RSS is the sum of the most that each had. Decoding is of whole files into arrays, in one "
        "thread, without a loader.",
        "",
    ]
    lines += [*pairs(result["shapes"]), ""]
    about = {row["peer"]: row for shape in result["shapes"] for row in shape["rows"]}
    lines += [f"- {name}: {row['about']} ({row['format']})" for name, row in about.items()]
    for shape in result["shapes"]:
        lines += table(shape)
    return "\n".join(lines) + "\n"


def pairs(shapes: list[dict[str, Any]]) -> list[str]:
    """Returns how many times less processor time chaski takes than other loaders."""
    heads = [(own, other) for own, others in PAIRS.items() for other in others]
    lines = [
        "How many times the processor time of chaski others take for a sample, round by round:",
        "",
        "| shape | " + " | ".join(f"{own} : {other}" for own, other in heads) + " |",
        "|---" * (len(heads) + 1) + "|",
    ]
    for shape in shapes:
        found = {row["peer"]: row.get("against") or {} for row in shape["rows"]}
        cells = [full(found.get(own, {}).get(other), 2) for own, other in heads]
        lines.append(f"| {' | '.join([shape['shape']['name'], *cells])} |")
    return lines


def table(shape: dict[str, Any]) -> list[str]:
    """Returns the lines about a shape."""
    sizes = (f"{name} {size / 1e6:.0f} MB" for name, size in sorted(shape["bytes"].items()))
    heads = ["peer", "samples/s", "×", "CPU, ms a sample", "wait p50 / p99, ms", "first batch, s"]
    last = (
        ["of the link", "requests a sample"] if shape["shape"].get("delay") else ["decoding, MB/s"]
    )
    heads += ["memory / peak RSS, MB", *last]
    lines = ["", f"## {shape['shape']['name']}", "", f"{shape['about']}. From {shape['imagery']}."]
    lines += [f"Files: {', '.join(sizes)}.", "", f"| {' | '.join(heads)} |"]
    lines += ["|---|" + "---:|" * (len(heads) - 1)]
    for row in ranked(shape["rows"]):
        if row["status"] == "ok":
            cells = [row["peer"], full(row["samples_per_s"], 0), full(row["ratio"], 2)]
            cells += [middle(row["cpu_s_per_sample"], 1e3, 2)]
            waits = (middle(row[f"wait_p{p}_s"], 1e3, 1) for p in (50, 99))
            cells += [" / ".join(waits), middle(row["first_batch_s"], 1, 2)]
            cells += [" / ".join(middle(row[f"{k}_bytes"], 1e-6, 0) for k in ("pss", "rss"))]
            if len(last) > 1:
                cells += [full(row["of_link"], 2), middle(row["requests_per_sample"], 1, 2)]
            else:
                cells += [middle(row["decode_bytes_per_s"], 1e-6, 0)]
        else:
            why = " ".join(row["why"].replace("|", "/").split())
            why = why if len(why) <= 120 else why[:119] + "…"
            cells = [row["peer"], f"{row['status']}: {why}"] + [""] * (len(heads) - 2)
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def figure(result: dict[str, Any]) -> str:
    """Returns an SVG with a bar for each peer, and a line from its least to its most."""
    height, left, wide, y = 16, 150, 420, 44
    parts: list[str] = []

    def text(x: float, y: float, content: str, style: str = "") -> None:
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}" {style}>{html.escape(content)}</text>')

    text(10, 20, "Samples a second", 'font-size="14" font-weight="bold"')
    text(
        10,
        34,
        "into a PyTorch loop (chaski-load: a Go one); median, least and most of "
        + settings(result),
    )
    for shape in result["shapes"]:
        rows = [row for row in ranked(shape["rows"]) if row["status"] == "ok"]
        scale = wide / max([row["samples_per_s"]["max"] for row in rows], default=1)
        text(10, y + 14, f"{shape['shape']['name']}: {shape['about']}", 'font-weight="bold"')
        y += 22
        for row in rows:
            low, mid, high = (row["samples_per_s"][k] * scale for k in ("min", "median", "max"))
            color = "#0077bb" if row["peer"].startswith("chaski") else "#b4bcc6"
            text(left - 6, y + 11, row["peer"], 'text-anchor="end"')
            parts.append(
                f'<rect x="{left}" y="{y + 2}" width="{mid:.1f}" height="12" fill="{color}"/>'
            )
            parts.append(f'<path d="M{left + low:.1f} {y + 8}H{left + high:.1f}" stroke="#333"/>')
            ratio = "" if row["ratio"] is None else f" × {row['ratio']['median']:.2f}"
            text(left + max(mid, high) + 6, y + 11, middle(row["samples_per_s"], 1, 0) + ratio)
            y += height
        y += 10
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + wide + 120}" height="{y + 10}" '
    head += (
        'font-family="sans-serif" font-size="10"><rect width="100%" height="100%" fill="white"/>'
    )
    return head + "\n" + "\n".join(parts) + "\n</svg>\n"


def write(result: dict[str, Any], folder: Path) -> None:
    """Writes peers.md, peers.json and peers.svg."""
    (folder / "peers.md").write_text(markdown(result))
    (folder / "peers.json").write_text(json.dumps(result, indent=1) + "\n")
    (folder / "peers.svg").write_text(figure(result))
