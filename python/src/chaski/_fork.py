"""Hooks of forks."""

from __future__ import annotations

import os
from collections.abc import Callable


def at_fork(**hooks: Callable[[], None]) -> None:
    """Calls `os.register_at_fork` where there are forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**hooks)
