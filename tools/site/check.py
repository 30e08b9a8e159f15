"""Checks the pages of the built site.

Pictures have texts, headings skip no level, and pages load nothing from other hosts.

Usage: check.py FOLDER. mkdocs itself checks the links and their anchors.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path


class Checker(HTMLParser):
    """Collects what is wrong with a page."""

    def __init__(self) -> None:
        """Starts above all headings."""
        super().__init__()
        self.level = 0
        self.problems: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Checks an element."""
        values = dict(attrs)
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


def main() -> None:
    """Prints the problems of all pages and ends with 1 if there are any."""
    folder = Path(sys.argv[1])
    pages = sorted(folder.rglob("*.html"))
    if not pages:
        sys.exit(f"{folder} has no pages")
    count = 0
    for page in pages:
        checker = Checker()
        checker.feed(page.read_text())
        for problem in checker.problems:
            print(f"{page.relative_to(folder)}: {problem}", file=sys.stderr)
        count += len(checker.problems)
    if count:
        sys.exit(f"{count} problems in {len(pages)} pages")
    print(f"{len(pages)} pages")


if __name__ == "__main__":
    main()
