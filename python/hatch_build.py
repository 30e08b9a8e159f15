"""Puts the engine into the wheel."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WITHOUT_ENGINE = """
These sources of chaski-eo have no engine, a program in Go, and no wheel is for this platform.
Build the program (https://github.com/chaski-eo/chaski, make build) and install with
CHASKI_BIN_FOR_WHEEL=/path/to/chaski; or install without it, with CHASKI_BIN_FOR_WHEEL= (empty):
chaski then runs the program that CHASKI_BIN names, or that is on PATH.
"""


class EngineHook(BuildHookInterface[Any]):
    """Carries what CHASKI_BIN_FOR_WHEEL names, else ../bin/chaski, as chaski/_bin/chaski[.exe].

    The wheel is for one platform then: CHASKI_WHEEL_PLATFORM (for a binary of another platform,
    such as "manylinux_2_17_aarch64"), else this one. An empty CHASKI_BIN_FOR_WHEEL makes a wheel
    without a binary, for any platform. CHASKI_WHEEL_SBOM names a list of the binary's components in
    the form of CycloneDX, which the wheel carries as PEP 770 says.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the binary and the tag; an editable install carries none."""
        if version == "editable":
            return
        named = os.environ.get("CHASKI_BIN_FOR_WHEEL")
        if named == "":
            return
        binary = Path(named) if named else Path(self.root).parent / "bin" / "chaski"
        if not binary.is_file():
            raise FileNotFoundError(
                f"CHASKI_BIN_FOR_WHEEL: there is no {binary}" if named else WITHOUT_ENGINE
            )
        if not os.access(binary, os.X_OK):
            raise PermissionError(f"{binary} is not executable")
        platform = os.environ.get("CHASKI_WHEEL_PLATFORM") or _platform()
        name = "chaski.exe" if platform.startswith("win") else "chaski"
        build_data["force_include"][str(binary.resolve())] = f"chaski/_bin/{name}"
        if sbom := os.environ.get("CHASKI_WHEEL_SBOM"):
            build_data["sbom_files"].append(sbom)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"


def _platform() -> str:
    """Returns this platform's tag. The engine is one static binary: any Linux will do."""
    tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return tag.replace("linux_", "manylinux_2_17_", 1) if tag.startswith("linux_") else tag
