"""The command `chaski`: runs the engine that the wheel carries."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import NoReturn

from chaski._engine import find_binary
from chaski.errors import EngineError


def main() -> NoReturn:
    """Replaces this process by the engine, with the same arguments, or waits for it on Windows."""
    try:
        binary = find_binary()
    except EngineError as e:
        print(f"chaski: {e}", file=sys.stderr)
        sys.exit(1)
    if os.environ.get("_CHASKI_PID") == str(os.getpid()):  # exec keeps the number
        print(f"chaski: CHASKI_BIN is {binary}, which starts this command again", file=sys.stderr)
        sys.exit(1)
    os.environ["_CHASKI_PID"] = str(os.getpid())
    if sys.platform == "win32":  # os.execv would return to the shell at once
        signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is for the engine, which ends by it
        sys.exit(subprocess.call([binary, *sys.argv[1:]]))
    os.execv(binary, ["chaski", *sys.argv[1:]])
