"""Errors name the page of the documentation about them."""

from __future__ import annotations

import pickle
import re
import sys
import traceback
from pathlib import Path

import pytest

import chaski
from chaski import errors

DOCS = Path(__file__).resolve().parents[2] / "docs"


def anchors(page: str) -> set[str]:
    """Returns the anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", (DOCS / page).read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


@pytest.mark.parametrize("link", sorted(set(errors._PAGES.values())))
def test_pages_are_there(link):
    page, _, anchor = link.partition("#")
    assert (DOCS / page).is_file()
    assert not anchor or anchor in anchors(page)


def test_a_page_is_shown():
    one = chaski.UnsupportedError("a.tif: bands: no", file="a.tif", part="bands")
    assert one.page.endswith("/docs/sampling.md#fields") and str(one) == "a.tif: bands: no"
    for e in (one, pickle.loads(pickle.dumps(one))):
        shown = "".join(traceback.format_exception(e))
        assert (f"See {one.page}" in shown) == (sys.version_info >= (3, 11))
        assert shown.count("See ") <= 1
    assert chaski.UnsupportedError("a.tif: header: no", part="header").page == ""
    assert chaski.Error("no").page == ""


def test_errors_of_files_have_a_page(binary, tmp_path):
    (tmp_path / "a.tif").write_bytes(b"II*\0")
    with pytest.raises(chaski.CorruptError) as e:
        chaski.read(tmp_path / "a.tif")
    assert e.value.page.endswith("sampling.md#bad-samples")
