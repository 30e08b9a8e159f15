#!/usr/bin/env bash
# Builds dist/*.whl, the Python package with bin/chaski in it.
#
#   tools/wheel.sh [PYTHON]
#
# PYTHON is an interpreter of version 3.10 or newer (default: python3). What builds the wheel is installed into .wheel: 1
# MB, pinned, with hashes. The licences of what bin/chaski links are written beside the package, for the wheel.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${1:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
  echo "wheel: $python is not Python 3.10 or newer; name one: make wheel PYTHON=/path/to/python3.12" >&2
  exit 1
fi
wanted=$(cksum <python/requirements-build.txt)
if [ "$(cat .wheel/installed 2>/dev/null)" != "$wanted" ]; then
  rm -rf .wheel
  "$python" -m venv .wheel
  .wheel/bin/python -m pip install --disable-pip-version-check --quiet --retries 10 --require-hashes --no-deps \
    -r python/requirements-build.txt
  echo "$wanted" >.wheel/installed
fi
go run ./tools/notices >python/THIRD-PARTY-NOTICES.txt
mkdir -p dist
(cd python && ../.wheel/bin/python -m hatchling build --target wheel --directory ../dist)
