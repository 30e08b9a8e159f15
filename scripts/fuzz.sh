#!/usr/bin/env bash
# Runs every fuzz target of the module, one after the other, and where a C compiler is present those
# of package zstd once more with libzstd: FuzzTwins, which holds the two decoders against each other,
# is only there.
#
#   scripts/fuzz.sh [TIME]     of each, default 5s
#
# An input that fails is kept by `go test` below testdata/fuzz/ of its package: it goes into the
# repository, with the fix, as a test.
set -uo pipefail
cd "$(dirname "$0")/.."
time=${1:-5s}
go=${GO:-go}

failed=0
count=0

# targets PACKAGE [FLAG...]: fuzzes what go test -list finds.
targets() {
  local package=$1 list target out
  shift
  if ! list=$($go test "$@" -list '^Fuzz' "$package" 2>&1); then
    printf '%s\nfuzz: %s FAILED to build\n' "$list" "$package"
    failed=$((failed + 1))
    return
  fi
  for target in $(grep '^Fuzz' <<<"$list"); do
    count=$((count + 1))
    if out=$($go test "$@" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 10x "$package" 2>&1); then
      printf 'fuzz: %-24s %s\n' "$target" "$(grep '^fuzz: elapsed' <<<"$out" | tail -1 | sed 's/^fuzz: //')"
    else
      printf '%s\nfuzz: %s of %s FAILED\n' "$out" "$target" "$package"
      failed=$((failed + 1))
    fi
  done
}

while read -r package <&3; do
  dir=$($go list -f '{{.Dir}}' "$package")
  grep -q '^func Fuzz' "$dir"/*_test.go || continue # listing compiles the package's tests
  targets "$package"
done 3< <($go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./... | grep .)
if command -v "$($go env CC)" >/dev/null 2>&1; then
  CGO_ENABLED=1 targets ./internal/zstd -tags datadog
fi
echo "fuzz: $count targets, $failed failed"
[ "$failed" -eq 0 ] && [ "$count" -gt 0 ]
