#!/usr/bin/env bash
# Kills trainers and engines that share memory, with signal 9, at N random points each. Checks that they
# leave nothing behind and that the next start works.
#
#   tools/soak-shm.sh [N]     default 100
#
# Uses bin/chaski (or CHASKI_BIN) and the interpreter in .venv (or PYTHON).
set -euo pipefail
cd "$(dirname "$0")/.."
export CHASKI_BIN=${CHASKI_BIN:-$PWD/bin/chaski}
CHASKI_KILLS=${1:-100} exec "${PYTHON:-.venv/bin/python}" -m pytest -q -o timeout=1800 python/tests/test_shared.py -k kill
