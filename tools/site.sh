#!/usr/bin/env bash
# Builds the site of the documentation into .site/, and checks it.
#
#   tools/site.sh [PYTHON]
#
# PYTHON is as in tools/pinned.sh, but 3.11 or newer. What builds the site is installed into .site-env. Go
# writes the pages of the command.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/pinned.sh .site-env site "$@"
NO_MKDOCS_2_WARNING=1 .site-env/bin/mkdocs build --quiet --config-file tools/site/mkdocs.yml
.site-env/bin/python tools/site/check.py .site
