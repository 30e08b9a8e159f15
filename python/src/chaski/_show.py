"""Tables that notebooks show of loaders, batches, statistics and datasets."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any


def table(caption: str, rows: Iterable[Sequence[Any]], head: Sequence[str] = ()) -> str:
    """Returns an HTML table, with everything escaped: files may hold any name."""

    def cells(tag: str, values: Sequence[Any]) -> str:
        return "".join(f"<{tag}>{html.escape(str(v))}</{tag}>" for v in values)

    lines = [cells("th", head)] if head else []
    lines += [cells("th", [first]) + cells("td", others) for first, *others in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table>{cells('caption', [caption])}{body}</table>"
