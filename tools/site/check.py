"""Checks the pages of the built site.

Searches find the right page first, and llms.txt names all pages. Pictures have texts, headings skip
no level, links and titles have names, lines of code fit beside the menus, all public names of
Python are described, and pages load nothing from other hosts.

Usage: check.py FOLDER. mkdocs itself checks the links and their anchors.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

from search import Index

COLUMNS = 88
# What people search for, and the page that must come first.
SEARCHES = {
    "docker": "docker-slurm/",
    "resume": "resume/",
    "nodata": "your-data/",
    "cog": "reads/",
    "sentinel": "eopf/",
    "lightning": "models/",
    "s3": "remote-data/",
    "slow": "performance/",
    "augmentation": "augmentation/",
    "multi gpu": "many-gpus/",
    "hdf5": "hdf5/",
    "coco": "labels/",
    "hard examples": "sampling/",
    "self-supervised": "self-supervised/",
    "eurosat": "data-sets/",
    "predict": "predict/",
    "quickstart": "",
    "slurm": "docker-slurm/",
}
API = Path(__file__).resolve().parents[2] / "docs/api/python.txt"


class Checker(HTMLParser):
    """Collects what is wrong with a page."""

    def __init__(self) -> None:
        """Starts above all headings."""
        super().__init__()
        self.level = 0
        self.problems: list[str] = []
        self.ids: set[str] = set()
        self.inside: dict[str, str | None] = {"a": None, "pre": None, "title": None}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Checks an element."""
        values = dict(attrs)
        self.ids.add(values.get("id") or "")
        if tag in self.inside:
            self.inside[tag] = values.get("aria-label") or values.get("title") or ""
        if tag == "img" and not values.get("alt"):
            self.problems.append(f"the picture {values.get('src')} has no text")
        if tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            level = int(tag[1])
            if level > self.level + 1:
                self.problems.append(f"<{tag}> follows <h{self.level}>: {values.get('id')}")
            self.level = level
        loaded = values.get("src") if tag in ("script", "img", "iframe") else None
        if tag == "link" and values.get("rel") == "stylesheet":
            loaded = values.get("href")
        if loaded and "//" in loaded and not loaded.startswith("data:"):
            self.problems.append(f"it loads {loaded}")

    def handle_data(self, data: str) -> None:
        """Collects the text of the elements that it is in."""
        for tag, text in self.inside.items():
            if text is not None:
                self.inside[tag] = text + data

    def handle_endtag(self, tag: str) -> None:
        """Checks the text of an element."""
        text = self.inside.get(tag)
        if text is None:
            return
        self.inside[tag] = None
        if tag == "pre":
            text = re.sub(r"https?://\S+", "", text)
            self.problems += [f"code: {t}" for t in text.splitlines() if len(t) > COLUMNS]
        elif not text.strip() or re.search(r"\.md\b", text):
            self.problems.append(f"<{tag}> is named {text.strip()!r}")


def searches(folder: Path) -> list[str]:
    """Returns the searches that find another page first."""
    index = Index(folder)
    found = {query: [*index.rank(query), "no page"][0] for query in SEARCHES}
    return [
        f"a search for {query!r} finds {found[query] or 'the start page'}, not {page}"
        for query, page in SEARCHES.items()
        if found[query] != page
    ]


def unlisted(folder: Path, pages: list[Path]) -> list[str]:
    """Returns the pages that llms.txt does not name."""
    text = (folder / "llms.txt").read_text()
    links = ["/" + link for link in re.findall(r"^- \[[^]]*\]\(([^)]*)\)", text, re.MULTILINE)]
    names = [
        page.parent.relative_to(folder).as_posix() for page in pages if page.name != "404.html"
    ]
    return [
        f"llms.txt: it lacks {name}"
        for name in names
        if not any(link.endswith(f"/{name}/".replace("/./", "/")) for link in links)
    ]


def main() -> None:
    """Prints the problems of all pages and ends with 1 if there are any."""
    folder = Path(sys.argv[1])
    pages = sorted(folder.rglob("*.html"))
    if not pages:
        sys.exit(f"{folder} has no pages")
    count = 0
    ids: set[str] = set()
    for page in pages:
        checker = Checker()
        checker.feed(page.read_text())
        for problem in checker.problems:
            print(f"{page.relative_to(folder)}: {problem}", file=sys.stderr)
        count += len(checker.problems)
        ids |= checker.ids
    described = {name.rpartition(".")[2] for name in ids if name.startswith("chaski.")}
    for name in re.findall(r"^(?:class )?(\w+)\b(?! chaski)", API.read_text(), re.MULTILINE):
        if name not in described:
            print(f"no page describes {name}", file=sys.stderr)
            count += 1
    for problem in [*searches(folder), *unlisted(folder, pages)]:
        print(problem, file=sys.stderr)
        count += 1
    if count:
        sys.exit(f"{count} problems in {len(pages)} pages")
    print(f"{len(pages)} pages")


if __name__ == "__main__":
    main()
