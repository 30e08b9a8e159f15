"""Links between the pages of this repository lead to existing files and headings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import nonempty

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / p for p in ("README.md", "CONTRIBUTING.md", "python/README.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))


def headings(page: Path) -> set[str]:
    """Returns the anchors that a page's headings get on GitHub."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", t.strip().lower()).replace(" ", "-") for t in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links(page):
    for target in nonempty(re.findall(r"\]\(([^)\s]+)\)", page.read_text())):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        to = (page.parent / path).resolve() if path else page
        assert to.exists(), target
        assert not anchor or anchor in headings(to), target
