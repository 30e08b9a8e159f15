"""Puts the engine into the wheel, and the README of the repository into its metadata."""

from __future__ import annotations

import os
import posixpath
import re
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "https://github.com/chaski-eo/chaski"
LINK = re.compile(r"(!?)(\[[^]]*\]\()(?![a-z]+:|#)([^()\s]+)\)")
UNRELEASED = re.compile(r"<!-- unreleased -->.*?<!-- /unreleased -->\n", re.DOTALL)

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


class ReadmeHook(MetadataHookInterface):
    """Describes the package by the repository's README, whose links become whole addresses.

    Sources that are built into a wheel bring their description along: hatchling reads PKG-INFO.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        """Reads README.md here (a release copies it), else of the checkout."""
        here = Path(self.root)
        file = next(f for f in (here / "README.md", here.parent / "README.md") if f.is_file())
        text = LINK.sub(_whole, UNRELEASED.sub("", file.read_text("utf-8")))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def _whole(link: re.Match[str]) -> str:
    """Returns a link of README.md as one that holds everywhere."""
    kind = "raw" if link[1] else "blob"
    return f"{link[1]}{link[2]}{REPOSITORY}/{kind}/main/{posixpath.normpath(link[3])})"


def _platform() -> str:
    """Returns this platform's tag. The engine is one static binary: any Linux will do."""
    tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return tag.replace("linux_", "manylinux_2_17_", 1) if tag.startswith("linux_") else tag
