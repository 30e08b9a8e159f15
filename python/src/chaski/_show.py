"""Tables that notebooks show of loaders, batches, statistics and datasets."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any


def table(caption: str, rows: Iterable[Sequence[Any]], head: Sequence[str] = ()) -> str:
    """Returns an HTML table, with everything escaped: files may hold any name."""

    def line(tags: str, cells: Sequence[Any]) -> str:
        return f"<tr>{''.join(f'<{tags}>{html.escape(str(v))}</{tags}>' for v in cells)}</tr>"

    lines = [f"<table><caption>{html.escape(caption)}</caption>"]
    if head:
        lines.append(line("th", head))
    return "".join([*lines, *(line("td", row) for row in rows), "</table>"])
