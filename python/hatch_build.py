"""Puts the engine into the wheel."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class EngineHook(BuildHookInterface[Any]):
    """Carries what CHASKI_BIN_FOR_WHEEL names, else ../bin/chaski, as chaski/_bin/chaski.

    The wheel is for one platform then: CHASKI_WHEEL_PLATFORM (for a binary of another platform,
    such as "manylinux_2_17_aarch64"), else this one. Without a binary it is for any platform, and
    users need CHASKI_BIN or PATH.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the binary and the tag; an editable install carries none."""
        if version == "editable":
            return
        named = os.environ.get("CHASKI_BIN_FOR_WHEEL")
        binary = Path(named) if named else Path(self.root).parent / "bin" / "chaski"
        if not binary.is_file():
            if named:
                raise FileNotFoundError(f"CHASKI_BIN_FOR_WHEEL: there is no {binary}")
            return
        if not os.access(binary, os.X_OK):
            raise PermissionError(f"{binary} is not executable")
        platform = os.environ.get("CHASKI_WHEEL_PLATFORM") or _platform()
        build_data["force_include"][str(binary.resolve())] = "chaski/_bin/chaski"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"


def _platform() -> str:
    """Returns this platform's tag. The engine is one static binary: any Linux will do."""
    tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return tag.replace("linux_", "manylinux_2_17_", 1) if tag.startswith("linux_") else tag
