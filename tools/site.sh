#!/usr/bin/env bash
# Builds the site of the documentation into .site/, and checks it.
#
#   tools/site.sh [PYTHON]
#
# PYTHON is as in tools/pinned.sh, but 3.11 or newer. What builds the site is installed into .site-env. bin/chaski is
# asked for its help.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/pinned.sh .site-env site "$@"
NO_MKDOCS_2_WARNING=1 .site-env/bin/mkdocs build --quiet
.site-env/bin/python tools/site/check.py .site
