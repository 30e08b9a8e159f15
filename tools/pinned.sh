#!/usr/bin/env bash
# Makes an environment of Python with pinned packages, or leaves one that has them as it is.
#
#   tools/pinned.sh FOLDER NAME [PYTHON]
#
# The packages are those of python/requirements-NAME.txt, with hashes. PYTHON is an interpreter of version 3.10 or newer
# (default: python3). pip's own settings (an index, a cache, a proxy) apply.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$1 requirements=python/requirements-$2.txt python=${3:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
  echo "$python is not Python 3.10 or newer; name one: make ... PYTHON=/path/to/python3.12" >&2
  exit 1
fi
wanted=$(cksum <"$requirements")
if [ "$(cat "$folder/installed" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$folder"
  "$python" -m venv "$folder"
  "$folder/bin/python" -m pip install --disable-pip-version-check --quiet --retries 10 --require-hashes --no-deps \
    -r "$requirements"
  echo "$wanted" >"$folder/installed"
fi
