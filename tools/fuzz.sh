#!/usr/bin/env bash
# Runs every fuzz target of the module, one after the other. With a C compiler, those of package zstd
# run again with libzstd, because FuzzTwins, which compares the two decoders, needs both.
#
#   tools/fuzz.sh [TIME]     time of each target, such as 1m; without it, all share an hour
#
# CHASKI_FUZZ_COUNTS=FILE appends a line for each target that passes: package, target, its time and how many
# inputs it ran, with tabs between.
#
# CHASKI_FUZZ_ONLY=REGEX runs only targets whose "PACKAGE TARGET" has a match, such as "zarr |FuzzHeader$", and
# CHASKI_FUZZ_MISSING=FILE only those that have no line in that file, which is tools/fuzz_counts.tsv. With
# either, the tests that draw random cases are left out.
#
# Then it runs the tests that draw random cases, with another seed than in `make test`, and what the Python package reads
# (tools/fuzz_python.py), if there is .venv (`make env`).
#
# Each package is built once for all of its targets. One line reports each target. "gathering
# baseline coverage" means that it had time for its seeds only.
#
# A failing input is kept below testdata/fuzz/ of its package. Commit it with the fix, as a test.
set -uo pipefail
cd "$(dirname "$0")/.."
time=${1-}
go=${GO:-go}
share=3600 # seconds for all targets together, without TIME
least=10   # seconds: in less, a target runs its seeds only

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
count=0
found=$($go env GOCACHE)/fuzz # where go test keeps the inputs that reach new code
targets=() # PACKAGE, DIR, BINARY and TARGET, with tabs between
only=${CHASKI_FUZZ_ONLY-}
missing=${CHASKI_FUZZ_MISSING-}

# wanted PACKAGE TARGET: whether to run it.
wanted() {
  local name=${1#github.com/chaski-eo/chaski/}
  [[ "$name $2" =~ ${only:-.} ]] && { [ -z "$missing" ] || ! grep -q "^$name"$'\t'"$2"$'\t' "$missing"; }
}

# build PACKAGE DIR [FLAG...]: adds the targets of a package.
build() {
  local package=$1 dir=$2 binary=$tmp/${#targets[@]}.test list target any=
  shift 2
  for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$dir"/*_test.go); do
    wanted "$package" "$target" && any=1
  done
  [ -n "$any" ] || return
  if ! $go test -c -fuzz . -o "$binary" "$@" "$package" || ! list=$(cd "$dir" && "$binary" -test.list '^Fuzz'); then
    printf 'fuzz: %s FAILED to build\n' "$package"
    failed=$((failed + 1))
    return
  fi
  for target in $(grep '^Fuzz' <<<"$list"); do
    wanted "$package" "$target" && targets+=("$package"$'\t'"$dir"$'\t'"$binary"$'\t'"$target")
  done
}

once() { # PACKAGE DIR BINARY TARGET
  (cd "$2" && "$3" -test.run '^$' -test.fuzz "^$4\$" -test.fuzztime "$time" -test.fuzzminimizetime 10x \
    -test.fuzzcachedir "$found/$1" -test.timeout 10m 2>&1)
}

# late OUTPUT: whether the fuzzing engine reached its own deadline between two inputs and reported that
# as a failure of the target (go.dev/issue/75804; fixed in Go 1.27). A real failure names its input.
late() {
  grep -q '^ *context deadline exceeded$' <<<"$1" && ! grep -qi 'failing input' <<<"$1"
}

fuzz() { # PACKAGE DIR BINARY TARGET
  local out rc tries=1
  count=$((count + 1))
  out=$(once "$@") && rc=0 || rc=1
  while [ $rc -ne 0 ] && late "$out" && [ $tries -lt 5 ]; do
    printf 'fuzz: %-24s again: %s\n' "$4" "the fuzzing engine missed its own deadline"
    tries=$((tries + 1))
    out=$(once "$@") && rc=0 || rc=1
  done
  if [ $rc -eq 0 ]; then
    printf 'fuzz: %-24s %s\n' "$4" "$(grep '^fuzz: elapsed' <<<"$out" | tail -1 | sed 's/^fuzz: //')"
    if [ -n "${CHASKI_FUZZ_COUNTS-}" ]; then
      printf '%s\t%s\t%s\t%s\n' "$1" "$4" "$time" "$(grep -o 'execs: [0-9]*' <<<"$out" | tail -1 | tr -dc 0-9)" \
        >>"$CHASKI_FUZZ_COUNTS"
    fi
  else
    printf '%s\nfuzz: %s of %s FAILED\n' "$out" "$4" "$1"
    failed=$((failed + 1))
  fi
}

packages=$($go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{"\t"}}{{.Dir}}{{end}}' ./...) || exit 1
while IFS=$'\t' read -r package dir; do
  grep -q '^func Fuzz' "$dir"/*_test.go && build "$package" "$dir"
done < <(grep . <<<"$packages")
if command -v "$($go env CC)" >/dev/null 2>&1; then
  export CGO_ENABLED=1
  IFS=$'\t' read -r package dir < <($go list -f '{{.ImportPath}}{{"\t"}}{{.Dir}}' ./internal/zstd)
  build "$package" "$dir" -tags datadog
fi

if [ -z "$time" ] && [ "${#targets[@]}" -gt 0 ]; then
  time=$((share / ${#targets[@]}))
  time=$((time < least ? least : time))s
fi
for t in "${targets[@]}"; do
  IFS=$'\t' read -r package dir binary target <<<"$t"
  fuzz "$package" "$dir" "$binary" "$target"
done
if [ -z "$only$missing" ]; then
  packages=$($go list -f '{{range .TestImports}}{{if eq . "pgregory.net/rapid"}}{{$.ImportPath}}{{"\n"}}{{end}}{{end}}{{range .XTestImports}}{{if eq . "pgregory.net/rapid"}}{{$.ImportPath}}{{"\n"}}{{end}}{{end}}' ./... | grep . | sort -u)
  if CHASKI_RAPID_SEED=0 $go test -count=1 $packages; then
    echo "fuzz: random cases of $(wc -w <<<"$packages") packages passed"
  else
    echo "fuzz: random cases FAILED: repeat them with the -rapid.seed printed above"
    failed=$((failed + 1))
  fi
fi
if [ -x .venv/bin/python ]; then
  for kind in $(.venv/bin/python tools/fuzz_python.py --list); do
    if wanted python "$kind"; then
      count=$((count + 1))
      .venv/bin/python tools/fuzz_python.py --time "$time" --only "$kind" || failed=$((failed + 1))
    fi
  done
else
  echo "fuzz: no .venv (make env): what the Python package reads is left out"
fi
echo "fuzz: $count targets of $time each, $failed failed"
[ "$failed" -eq 0 ] && { [ "$count" -gt 0 ] || [ -n "$only$missing" ]; }
