"""`suggest`: the call of `load` for a folder."""

from __future__ import annotations

import json
from dataclasses import dataclass

from chaski._argument import Argument
from chaski._calls import entry
from chaski._command import ask
from chaski._plain import Path, as_path


@dataclass(frozen=True, repr=False)
class Suggestion(Argument):
    """What `suggest` found: str() of it is the text of `chaski suggest`.

    Attributes:
        calls: texts of calls of `load`, by their splits; "" without splits.
        found: what was counted.
        check: what only you can know, such as the classes of a mask in colours.
        unused: files that the calls do not use.
        another: the calls of another reading that explains as many files, if there is one.
    """

    calls: dict[str, str]
    found: list[str]
    check: list[str]
    unused: list[str]
    another: dict[str, str]

    def __str__(self) -> str:
        lines = []
        for split, call in self.calls.items():
            lines += [f"# {split}", call] if split else [call]
        another = list(self.another.values())[:1]
        parts = {"Found": self.found, "Check": self.check, "Not used": self.unused}
        for title, rest in {**parts, "Another reading": another}.items():
            if rest:
                lines += ["", f"{title}:", *(f"  {line}" for line in rest)]
        return "\n".join(lines)


@entry
def suggest(folder: Path) -> Suggestion:
    """Finds the call of `load` for a local folder, as `chaski suggest` does.

        print(chaski.suggest("data"))

    It looks at names, headers, some pixels of masks, tables, labels and lists of ids, and loads
    nothing: `check` and `unused` say what to look at before the calls are used.

    Args:
        folder: a directory.
    """
    out, _ = ask(["suggest", "--json", "--", as_path("folder", folder)])
    said = json.loads(out)

    def calls(name: str) -> dict[str, str]:
        return {c["split"]: c["call"] for c in said[name] or ()}

    lists = {name: said[name] or [] for name in ("found", "check", "unused")}
    return Suggestion(calls=calls("calls"), another=calls("another"), **lists)
