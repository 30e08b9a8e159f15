#!/usr/bin/env bash
# Checks formatting, vets the code under each build tag, runs staticcheck, and compares go.mod with the imports. GOFLAGS
# and TAGS are those of the Makefile.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}

unformatted=$(gofmt -l .)
[ -z "$unformatted" ] || { printf 'not formatted (gofmt -w):\n%s\n' "$unformatted"; exit 1; }
"$go" vet ./...

# Users set the tag `purego`, tests set `twins`, which leaves the assembly of the standard library's cryptography, and so
# nearly all compiled packages, as they are. Both must choose the same files.
chosen() { "$go" list -tags "$1" -f '{{.ImportPath}} {{.GoFiles}} {{.SFiles}} {{.TestGoFiles}} {{.XTestGoFiles}}' ./...; }
cmp <(chosen purego) <(chosen twins)
# Only packages with such files are vetted once more: 10 s of a processor instead of 43.
mapfile -t twins < <(diff <(chosen "$TAGS") <(chosen twins) | awk '/^>/ { print $2 }')
"$go" vet -tags "$TAGS,twins" "${twins[@]}"
"$go" vet -tags "$TAGS,invariants" ./internal/invariants

# It holds the types of 1,300 packages. With 2 GiB to fill before it collects garbage, it takes two thirds of the time.
GOGC=off GOMEMLIMIT=2GiB "$go" run honnef.co/go/tools/cmd/staticcheck@v0.8.2 -tags "$TAGS" ./...
"$go" mod tidy -diff
