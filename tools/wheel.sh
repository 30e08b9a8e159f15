#!/usr/bin/env bash
# Builds dist/*.whl, the Python package with bin/chaski in it.
#
#   tools/wheel.sh [PYTHON]
#
# PYTHON is as in tools/pinned.sh. What builds the wheel is installed into .wheel: 1 MB. The licences of what bin/chaski
# links are written beside the package, for the wheel.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/pinned.sh .wheel build "$@"
go run ./tools/notices >python/THIRD-PARTY-NOTICES.txt
mkdir -p dist
(cd python && ../.wheel/bin/python -m hatchling build --target wheel --directory ../dist)
