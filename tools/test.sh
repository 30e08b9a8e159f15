#!/usr/bin/env bash
# `make test`: runs every step, also after one has failed. At the end it prints the last lines of failed steps, one line
# for each step, and one for all.
set -uo pipefail
cd "$(dirname "$0")/.."

start=$SECONDS
failed= # names of steps
count=0
summary=()
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

step() { # NAME COMMAND...
  local name=$1 t=$SECONDS
  shift
  printf '\n== %s: %s\n' "$name" "$*"
  if "$@" 2>&1 | tee "$logs/$name"; then
    summary+=("$(printf '%-9s ok      %4d s' "$name" $((SECONDS - t)))")
  else
    summary+=("$(printf '%-9s FAILED  %4d s' "$name" $((SECONDS - t)))")
    failed+=" $name"
    count=$((count + 1))
  fi
}

step build make build-default
step check make check
step go make test-go
[ -z "${CC_FOUND-}" ] || step race make test-race
step variants make test-variants
step python make test-python
# The original packages have wheels for Python 3.12 and newer. Random cases are the same in every run
# here; `make interop` by itself draws new ones.
newer=
for python in ${PYTHON-} python3.14 python3.13 python3.12 python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[2-9].*/bin/python; do
  if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then
    newer=$python
    break
  fi
done
# They take 1.9 GB in .interop, and pip unpacks them below /tmp first. A full disk is not a fault of the code, so the
# step is skipped then.
without="which needs Python 3.12"
if [ -n "$newer" ] && [ ! -d .interop ] && [ "$(df -Pk . | awk 'NR == 2 { print int($4 / 1024) }')" -lt 3000 ]; then
  newer=
  without="which needs 3 GB of disk; $(df -Ph . | awk 'NR == 2 { print $4 }') are free"
fi
[ -z "$newer" ] || CHASKI_ORACLE_SEED=${CHASKI_ORACLE_SEED-1} step interop make interop PYTHON="$newer"

for name in $failed; do
  printf '\n== %s failed; the end of its output:\n' "$name"
  tail -n 30 "$logs/$name"
done
printf '\n'
printf 'test: %s\n' "${summary[@]}"
[ -n "$newer" ] || echo "test: without the comparison with the original packages (make interop), $without"
[ -n "${CXX_FOUND-}" ] || echo "test: without chaski-full and DuckDB, which need compilers of C and C++"
[ -n "${CC_FOUND-}" ] || echo "test: without the race detector, which needs a C compiler"
python=$(.venv/bin/python -c 'import platform, torch
print("Python", platform.python_version() + ", PyTorch", torch.__version__)' 2>/dev/null) || python="no Python environment"
if [ "$count" -gt 0 ]; then
  echo "test: FAILED: $count of ${#summary[@]} steps in $((SECONDS - start)) s ($(${GO:-go} env GOVERSION), $python)"
  exit 1
fi
echo "test: PASSED: ${#summary[@]} steps in $((SECONDS - start)) s ($(${GO:-go} env GOVERSION), $python)"
