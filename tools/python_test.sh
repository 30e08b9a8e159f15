#!/usr/bin/env bash
# Runs the Python tests in two processes, because they wait for engines and clocks half of their time. The first has the
# files whose tests run in forks, so one process imports PyTorch for all of them, and every third of the others:
# both have about as much to do (856 and 903 s on a busy machine).
set -uo pipefail
cd "$(dirname "$0")/.."

# An engine of a test lives for 40 ms, and spends a third of them on its start. With eight times the usual garbage
# between collections, those of test_real and test_sources take 6.8 s of a processor instead of 8.8.
export GOGC=800

forks() { grep "$1" 'forks(' python/tests/test_*.py; } # -l: files with tests in forks, -L: the others
first=$(forks -l; forks -L | awk 'NR % 3 == 0')
second=$(forks -L | awk 'NR % 3')
.venv/bin/python -m pytest -q $first &
.venv/bin/python -m pytest -q $second
failed=$?
wait $! && exit $failed
