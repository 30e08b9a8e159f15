"""What the classes of arguments and records have in common."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, cast

from chaski._secrets import without_secrets


class Argument:
    """What all classes of arguments and records do."""

    __slots__ = ()

    def _changed(self) -> list[str]:
        """Returns the names of the members that differ from their defaults."""
        out = []
        me: Any = self
        for f in fields(me):
            v, d = getattr(self, f.name), f.default
            if f.default_factory is not MISSING:
                d = f.default_factory()
            v = tuple(v) if isinstance(v, list) else v
            # Arrays and tables have no truth value; no default is one.
            if v is not d and not (type(v) is type(d) and v == d):
                out.append(f.name)
        return out

    def __repr__(self) -> str:
        """Returns the call that makes it, without what is not set."""
        shown = {f.name for f in fields(cast(Any, self)) if f.repr}
        members = (f"{n}={getattr(self, n)!r}" for n in self._changed() if n in shown)
        return without_secrets(f"{type(self).__name__}({', '.join(members)})")
