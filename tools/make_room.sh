#!/usr/bin/env bash
# Makes room for a first run of `make test` on a small disk: 11 GB, of which 5 are .venv, 1 is pip beside it, 3 are
# compiled packages and 2 their sources.
#
# Go keeps each compiled package for five days after its last use, so those of older versions fill a disk. Where less
# than 11 GB are free, the script deletes those that no build used in the three hours before the last one: Go notes a use
# once an hour.
set -euo pipefail
cd "$(dirname "$0")/.."

free() { df -Pk . | awk 'NR == 2 { print int($4 / 1024) }'; } # MB

[ "$(free)" -lt 11000 ] || exit 0
cache=$("${GO:-go}" env GOCACHE)
last=$(find "$cache" -name '*-[ad]' -printf '%T@\n' 2>/dev/null | sort -n | tail -1)
[ -z "$last" ] || find "$cache" -name '*-[ad]' ! -newermt "@$((${last%.*} - 10800))" -delete
echo "test: $(free) MB of disk are free, without compiled packages of older builds"
