#!/usr/bin/env bash
# Runs tests in the environment of other people's trainers (Lightning, Accelerate, Ray and others), which it makes
# first. Elsewhere the tests that need them are skipped by name.
#
#   tools/trainers.sh                the adapters of TorchGeo and TerraTorch in environments of their own, then all
#                                    tests with trainers, each killed CHASKI_SOAK_KILLS times
#   tools/trainers.sh TEST_FILE...   these tests, given to pytest
#
# PYTHON   the interpreter of the environments, of version 3.12; default: python3.12
set -euo pipefail
cd "$(dirname "$0")/.."
export CHASKI_BIN=$PWD/bin/chaski PYTHONPATH=$PWD/python/src

# run ENVIRONMENT TEST_FILE...
run() {
  tools/pinned.sh ".frameworks-env/$1" "$1" "${PYTHON:-python3.12}"
  ".frameworks-env/$1/bin/python" -m pytest -q "${@:2}"
}

if [ $# -gt 0 ]; then
  run trainers "$@"
  exit
fi
for name in torchgeo terratorch; do
  run "$name" python/tests/test_"$name"*.py python/tests/test_coming_from.py "python/tests/test_examples.py::test_$name"
done
run trainers python/tests/test_{exact_resume,lightning,trainer,loop_pages,distributed,dlpack}.py
