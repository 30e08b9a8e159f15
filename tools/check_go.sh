#!/usr/bin/env bash
# Checks formatting, vets the code under each build tag with the analysers of staticcheck and `go vet`, and compares go.mod
# with the imports. GOFLAGS and TAGS are those of the Makefile.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}

unformatted=$(gofmt -l .)
[ -z "$unformatted" ] || { printf 'not formatted (gofmt -w):\n%s\n' "$unformatted"; exit 1; }

# It holds the types of 1,300 packages. With 2 GiB to fill before it collects garbage, it takes two thirds of the time.
mkdir -p bin
"$go" build -C tools/lint -o ../../bin/lint .
lint() { GOGC=off GOMEMLIMIT=2GiB bin/lint -tags "$@"; }
lint "$TAGS" ./...

# Users set the tag `purego`, tests set `twins`, which leaves the assembly of the standard library's cryptography, and so
# nearly all compiled packages, as they are. Both must choose the same files.
chosen() { "$go" list -tags "$1" -f '{{.ImportPath}} {{.GoFiles}} {{.SFiles}} {{.TestGoFiles}} {{.XTestGoFiles}}' ./...; }
cmp <(chosen purego) <(chosen twins)
# Only packages with such files are vetted once more, with what was found out about the others. What only assembly uses
# is unused here.
mapfile -t twins < <(diff <(chosen "$TAGS") <(chosen twins) | awk '/^>/ { print $2 }')
lint "$TAGS,twins" -checks inherit,-U1000 "${twins[@]}"
lint "$TAGS,invariants" ./internal/invariants

"$go" mod tidy -diff
