#!/usr/bin/env bash
# Builds the site of the documentation into .site/, and checks it.
#
#   tools/site.sh [PYTHON]
#
# PYTHON is an interpreter of version 3.10 or newer (default: python3). What builds the site is installed into .site-env:
# pinned, with hashes. bin/chaski is asked for its help.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${1:-python3}
wanted=$(cksum <python/requirements-site.txt)
if [ "$(cat .site-env/installed 2>/dev/null)" != "$wanted" ]; then
  rm -rf .site-env
  "$python" -m venv .site-env
  .site-env/bin/python -m pip install --disable-pip-version-check --quiet --retries 10 --require-hashes --no-deps \
    -r python/requirements-site.txt
  echo "$wanted" >.site-env/installed
fi
NO_MKDOCS_2_WARNING=1 .site-env/bin/mkdocs build --quiet
.site-env/bin/python tools/site/check.py .site
