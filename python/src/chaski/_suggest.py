"""`suggest`: the call of `load` for a folder."""

from __future__ import annotations

import json

from chaski._calls import entry
from chaski._command import ask
from chaski._plain import Path, as_path
from chaski._records import Suggestion


@entry
def suggest(folder: Path) -> Suggestion:
    """Finds the call of `load` for a local folder, as `chaski suggest` does.

        print(chaski.suggest("data"))

    It looks at names, headers, some pixels of masks, tables, labels and lists of ids, and loads
    nothing: `check` and `unused` say what to look at before the calls are used.

    Args:
        folder: a directory.
    """
    return suggested(folder)


def suggested(folder: Path, timeout: float | None = None) -> Suggestion:
    """Does what `suggest` says, within some seconds."""
    out, _ = ask(["suggest", "--json", "--", as_path("folder", folder)], timeout=timeout)
    said = json.loads(out)

    def calls(name: str) -> dict[str, str]:
        return {c["split"]: c["call"] for c in said[name] or ()}

    lists = {name: said[name] or [] for name in ("found", "check", "unused")}
    return Suggestion(calls=calls("calls"), another=calls("another"), **lists)
