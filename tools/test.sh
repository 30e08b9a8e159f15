#!/usr/bin/env bash
# `make test`: runs every step, also after one has failed. At the end it prints the last lines of each failed step, one
# line for each step, and one for all.
#
# Two lanes run side by side, because downloads and many tests keep one core busy or none: the steps of Go, whose output
# is seen while they run, and the steps of Python, whose output is printed when each ends.
set -uo pipefail
cd "$(dirname "$0")/.."

logs=$(mktemp -d) # of each step NAME.log and, when it has ended, NAME.result
lane=
trap '[ -z "$lane" ] || kill "$lane" 2>/dev/null; rm -rf "$logs"' EXIT
TIMEFORMAT='%0R %U %S' # of `time`: by the clock, and by the processor for the program and for the system

step() { # NAME COMMAND...
  local name=$1 result=ok
  shift
  printf '\n== %s: %s\n' "$name" "$*"
  { time { "$@" 2>&1 | tee "$logs/$name.log" || result=FAILED; }; } 2> "$logs/$name.time"
  awk -v name="$name" -v result="$result" 'END {
    printf "%-9s %-6s %5d s, %5d s of a processor\n", name, result, $1, $2 + $3 }' "$logs/$name.time" > "$logs/$name.part"
  mv "$logs/$name.part" "$logs/$name.result"
}

quiet_step() { # NAME COMMAND...: its output is printed in one piece
  step "$@" > "$logs/$1.whole"
  cat "$logs/$1.whole"
}

left_out() { echo "$*" >> "$logs/without"; }

# The tests of Python wait more than they compute. With an equal share of two cores they would end minutes after those of
# Go, so these give way to them. This lane is a shell of its own: otherwise the processor time of the other one would
# count as that of the step in which it ends.
go_lane() (
  step build make build
  step check-go nice make check-go
  step go nice make test-go ${CC_FOUND:+RACED_TOO=1}
  if [ -n "${CC_FOUND-}" ]; then
    step race nice make test-race
  else
    left_out "the race detector, which needs a C compiler"
  fi
  step variants nice make test-variants
  interop
)

python_lane() {
  quiet_step env make env
  while [ ! -e "$logs/build.result" ]; do sleep 1; done # the tests of Python use the command
  quiet_step check make check-python check-generated check-house
  if newer=$(python_since 11); then
    quiet_step site make site PYTHON="$newer"
  else
    left_out "the site of the documentation (make site), which needs Python 3.11"
  fi
  quiet_step python make test-python
  interop
}

# interop compares with the original packages where `make interop` has installed them, which takes 2.5 GB and two minutes
# of a processor; the files that they wrote are in the corpus. Each lane calls it last, and the first call does it. The
# seed makes random cases the same in every run.
interop() {
  mkdir "$logs/interop.taken" 2>/dev/null || return 0
  if ! newer=$(python_since 12); then
    left_out "the comparison with the original packages (make interop), which needs Python 3.12"
  elif [ ! -d .interop ]; then
    left_out "the comparison with the original packages (make interop), which installs 2.5 GB once; run it after a" \
      "change to what chaski writes"
  else
    CHASKI_ORACLE_SEED=${CHASKI_ORACLE_SEED-1} quiet_step interop make interop PYTHON="$newer" INTEROPFLAGS=--short
  fi
}

# python_since prints an interpreter of version 3.MINOR or newer.
python_since() { # MINOR
  local python
  for python in ${PYTHON-} python3.{14,13,12,11} python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python .venv/bin/python; do
    if "$python" -c "import sys; sys.exit(sys.version_info < (3, $1))" 2>/dev/null; then
      echo "$python"
      return
    fi
  done
  return 1
}

tools/make_room.sh
python_lane &
lane=$!
go_lane
wait "$lane"
lane=

count=0 failed=0
for name in build check-go go race variants env check site python interop; do
  [ -e "$logs/$name.result" ] || continue
  count=$((count + 1))
  sed 's/^/test: /' "$logs/$name.result" >> "$logs/summary"
  if grep -q FAILED "$logs/$name.result"; then
    failed=$((failed + 1))
    printf '\n== %s failed; the end of its output:\n' "$name"
    tail -n 30 "$logs/$name.log"
  fi
done
printf '\n'
cat "$logs/summary"
[ ! -e "$logs/without" ] || sed 's/^/test: without /' "$logs/without"
versions="$("${GO:-go}" env GOVERSION), $(.venv/bin/python -c 'import platform, torch
print("Python", platform.python_version() + ", PyTorch", torch.__version__)' 2>/dev/null || echo "no Python environment")"
if [ "$failed" -gt 0 ]; then
  echo "test: FAILED: $failed of $count steps in $SECONDS s ($versions)"
  exit 1
fi
echo "test: PASSED: $count steps in $SECONDS s ($versions)"
