#!/usr/bin/env bash
# `make test`: runs every step, also after one has failed. At the end it prints the last lines of failed steps, one line
# for each step, and one for all.
#
# Two lanes of steps run side by side, because downloads and many tests keep one core busy or none. The first lane has
# the steps of Go, whose output is seen while they run. The second has those of Python; the output of each is printed
# when it ends. The comparison with other people's packages is done by the lane that ends first, where `make interop` has
# made their environments.
set -uo pipefail
cd "$(dirname "$0")/.."

start=$SECONDS
steps=(build check-go go race variants env check site python interop) # in the order of the summary
logs=$(mktemp -d)                                                # NAME.log and, when it has ended, NAME.result
lane=
trap '[ -z "$lane" ] || kill "$lane" 2>/dev/null; rm -rf "$logs"' EXIT

# used sets cpu to the seconds of processor time of all steps of this lane so far. `times` is a part of the shell: in a
# pipe it would tell the times of another one.
used() {
  local file=$logs/times.$BASHPID
  times > "$file"
  cpu=$(awk -F'[ms ]+' 'NR == 2 { printf "%d", $1 * 60 + $2 + $3 * 60 + $4 }' "$file")
}

step() { # NAME COMMAND...
  local name=$1 t=$SECONDS result=ok before cpu
  shift
  printf '\n== %s: %s\n' "$name" "$*"
  used
  before=$cpu
  "$@" 2>&1 | tee "$logs/$name.log" || result=FAILED
  used
  printf '%-9s %-6s %5d s, %5d s of a processor\n' "$name" "$result" $((SECONDS - t)) $((cpu - before)) > "$logs/$name.result"
}

whole() { # NAME COMMAND...: a step whose output is printed in one piece
  step "$@" > "$logs/$1.whole"
  cat "$logs/$1.whole"
}

# Megabytes that are free on the disk of the checkout.
free() { df -Pk . | awk 'NR == 2 { print int($4 / 1024) }'; }

# Compiled packages of older versions fill a disk, because Go keeps each for five days after its last use. Where less is
# free than a first run needs, those go that no build used in the three hours before the last one: Go notes a use once an
# hour. 11 GB are 5 for .venv, 1 for pip beside it, 3 for compiled packages, 2 for their sources.
make_room() {
  local cache last
  [ "$(free)" -lt 11000 ] || return 0
  cache=$("${GO:-go}" env GOCACHE)
  last=$(find "$cache" -name '*-[ad]' -printf '%T@\n' 2>/dev/null | sort -n | tail -1)
  [ -z "$last" ] || find "$cache" -name '*-[ad]' ! -newermt "@$((${last%.*} - 10800))" -delete
  echo "test: $(free) MB of disk are free, without compiled packages of older builds"
}

# Each lane calls it last, and the first call does it. Its packages take 2.5 GB and two minutes of a processor to install,
# so the step is for checkouts that have them; the files that they wrote are in the corpus.
interop() {
  local original="the comparison with the original packages (make interop)"
  mkdir "$logs/interop.taken" 2>/dev/null || return 0
  if [ -z "$newer" ]; then
    echo "$original, which needs Python 3.12" >> "$logs/without"
  elif [ ! -d .interop ]; then
    echo "$original, which installs 2.5 GB once; run it after a change to what chaski writes" >> "$logs/without"
  else
    CHASKI_ORACLE_SEED=${CHASKI_ORACLE_SEED-1} whole interop make interop PYTHON="$newer" INTEROPFLAGS=--short
  fi
}

site() {
  local python=${newer:-.venv/bin/python}
  if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    whole site make site PYTHON="$python"
  else
    echo "the site of the documentation (make site), which needs Python 3.11" >> "$logs/without"
  fi
}

second() {
  whole env make env
  # The command is built by the first lane: the tests of Python use it.
  while [ ! -e "$logs/build.result" ]; do sleep 1; done
  whole check make check-python check-generated check-house
  site
  whole python make test-python
  interop
}

# The original packages have wheels for Python 3.12 and newer. Random cases are the same in every run
# here; `make interop` by itself draws new ones.
newer=
for python in ${PYTHON-} python3.14 python3.13 python3.12 python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[2-9].*/bin/python; do
  if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then
    newer=$python
    break
  fi
done

# A shell of its own: the processor time of the second lane would count as that of the step in which it ends.
# The second one computes less and waits more: with an equal share of two cores it ends minutes after this one, which
# computes while it waits instead.
first() (
  step build make build
  step check-go nice make check-go
  step go nice make test-go ${CC_FOUND:+RACED_TOO=1}
  [ -z "${CC_FOUND-}" ] || step race nice make test-race
  step variants nice make test-variants
  interop
)

make_room
second &
lane=$!
first
wait "$lane"
lane=

count=0
failed=0
for name in "${steps[@]}"; do
  [ -e "$logs/$name.result" ] || continue
  count=$((count + 1))
  if grep -q FAILED "$logs/$name.result"; then
    failed=$((failed + 1))
    printf '\n== %s failed; the end of its output:\n' "$name"
    tail -n 30 "$logs/$name.log"
  fi
done
printf '\n'
for name in "${steps[@]}"; do
  [ ! -e "$logs/$name.result" ] || sed 's/^/test: /' "$logs/$name.result"
done
[ ! -e "$logs/without" ] || sed 's/^/test: without /' "$logs/without"
[ -n "${CC_FOUND-}" ] || echo "test: without the race detector, which needs a C compiler"
python=$(.venv/bin/python -c 'import platform, torch
print("Python", platform.python_version() + ", PyTorch", torch.__version__)' 2>/dev/null) || python="no Python environment"
if [ "$failed" -gt 0 ]; then
  echo "test: FAILED: $failed of $count steps in $((SECONDS - start)) s ($(${GO:-go} env GOVERSION), $python)"
  exit 1
fi
echo "test: PASSED: $count steps in $((SECONDS - start)) s ($(${GO:-go} env GOVERSION), $python)"
