#!/usr/bin/env bash
# Runs the Python tests in three processes, because they wait for engines and clocks half of their time. A file's tests
# stay in one of them, which keeps an engine for the file.
set -euo pipefail
cd "$(dirname "$0")/.."

# An engine of a test lives for 40 ms, and spends a third of them on its start. With eight times the usual garbage
# between collections, those of test_real and test_sources take 6.8 s of a processor instead of 8.8.
export GOGC=800

.venv/bin/python -m pytest -q -n 3 --dist loadfile python/tests
