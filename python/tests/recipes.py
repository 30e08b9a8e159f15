"""Runs blocks of pages literally, and judges the masks that they see and make."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np


def run(block: str, names: dict[str, Any], labels: set[int]) -> set[int]:
    """Runs a block. At the end of every turn of its loops, each mask has labels of the set only.

    Masks are variables and members of batches whose names begin so. It returns their labels.
    """
    every = set[int]()

    def judge(scope: dict[str, Any]) -> None:
        seen = {**scope, **batch} if (batch := members(scope.get("batch"))) else scope
        for name, value in list(seen.items()):
            if name.startswith("mask") and hasattr(value, "shape") and len(value.shape) > 1:
                found = set(np.unique(np.asarray(value)).tolist())
                assert found <= labels, f"{name} has {sorted(found - labels)}: {block}"
                every.update(found)

    tree = ast.parse(block)
    for node in ast.walk(tree):
        if isinstance(node, ast.For):
            node.body += ast.parse("judge_masks({**globals(), **locals()})").body
    names["judge_masks"] = judge
    exec(compile(ast.fix_missing_locations(tree), "<page>", "exec"), names)
    return every


def members(batch: Any) -> dict[str, Any]:
    """Returns the tensors of a batch under names of their own."""
    return {f"{name} of the batch": batch[name] for name in batch} if batch is not None else {}
