"""Ranks the pages of the built site for a search as the theme does, with lunr.

A term matches all words that it begins. The words of a title weigh more than those of the text, a
rare word more than a frequent one, and a page more than one of its sections.
"""

import html
import json
import math
import re
from collections import Counter
from pathlib import Path

K1 = 1.2  # lunr's: how soon a word that is repeated weighs no more


class Index:
    """The search index of a site, which mkdocs writes."""

    def __init__(self, folder: Path) -> None:
        """Counts the words of all pages and sections."""
        found = json.loads((folder / "search/search_index.json").read_text())
        self.separator = re.compile(found["config"]["separator"])
        self.fields = {k: v["boost"] for k, v in found["config"]["fields"].items()}
        self.docs = found["docs"]
        self.counts = [
            {field: Counter(self.words(doc.get(field, ""))) for field in self.fields}
            for doc in self.docs
        ]
        self.frequency = Counter(
            word for doc in self.counts for words in doc.values() for word in words
        )

    def words(self, text: str | list[str]) -> list[str]:
        """Returns the words of a title or of the HTML of a section."""
        plain = text if isinstance(text, str) else " ".join(text)
        plain = html.unescape(re.sub(r"<[^>]*>", " ", plain))
        return [word.lower() for word in self.separator.split(plain) if word]

    def rank(self, query: str) -> list[str]:
        """Returns the addresses of the pages found, the best first."""
        terms = self.words(query)  # as lunr's lexer ends terms
        words = {w for w in self.frequency if any(w.startswith(term) for term in terms)}
        pages: dict[str, float] = {}
        for doc, counts in zip(self.docs, self.counts, strict=True):
            score = self.score(counts, words) * doc.get("boost", 1)
            page, _, section = doc["location"].partition("#")
            here = {w for field in counts.values() for w in field if w in words}
            matched = sum(any(w.startswith(term) for w in here) for term in terms)
            score *= 1 + ((not section) + matched / len(terms)) ** 2
            if score:
                pages[page] = max(score, pages.get(page, 0))
        return sorted(pages, key=lambda page: -pages[page])

    def score(self, counts: dict[str, Counter[str]], words: set[str]) -> float:
        """Returns what the words weigh in one page or section."""
        weight = 0.0
        for field, boost in self.fields.items():
            for word in words & counts[field].keys():
                count, n = counts[field][word], self.frequency[word]
                rare = math.log(1 + abs((len(self.docs) - n + 0.5) / (n + 0.5)))
                weight += boost * rare * (K1 + 1) * count / (K1 + count)
        return weight / math.sqrt(len(words) or 1)
