"""The command `chaski`: the engine that the wheel carries, and subcommands that run in Python."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from typing import NoReturn

from chaski._engine import find_binary
from chaski.errors import EngineError

_IN_PYTHON = "compare", "doctor"


def main() -> NoReturn:
    """Replaces this process by the engine, with the same arguments, or waits for it on Windows."""
    if sys.argv[1:] and sys.argv[1] in _IN_PYTHON:
        try:
            importlib.import_module(f"chaski._{sys.argv[1]}").main(sys.argv[2:])
        except KeyboardInterrupt:
            print("chaski: interrupted", file=sys.stderr)
            sys.exit(130)
        sys.exit(0)
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
