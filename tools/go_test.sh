#!/usr/bin/env bash
# Runs the Go tests in one of four ways. GOFLAGS, CGO_ENABLED, TAGS and CC_FOUND are those of the Makefile.
#
#   tools/go_test.sh all        all packages, without -short; with RACED_TOO=1 without packages that `race` tests in full
#   tools/go_test.sh race       the race detector, with checks that users do not have (build tag invariants)
#   tools/go_test.sh variants   code that build tags choose: no assembly and unsafe, zstd in C
#   tools/go_test.sh arm64      what computes with pixels, for arm64; elsewhere qemu-user runs it
#
# PACKAGES   packages of race, and of each of the variants, in place of their own
# SHORT      -short, which tries fewer cases, unless it is set and empty. `all` goes without
#
# The settings below shorten the tests; no result depends on them. Seconds are of a processor.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
short=${SHORT--short}

# A test that hangs is ended after an hour: the slowest package takes a minute on two idle cores, and far longer on busy
# ones. `make check-go` vets. Without symbol tables, linkers take a quarter less. Tests wait for links, clocks and
# servers, so three packages at a time keep two cores busy.
options=(-timeout 1h -vet=off '-ldflags=-s -w' -p 3)

# With twice the usual garbage between collections, the tests of cli take 34 s instead of 42. With four times, those of
# format/tables/query take 2.8 GB instead of 1.3. The race detector follows each block that is freed: there, four times
# makes 55 s of 68 for cli.
export GOGC=200

# The decoder in C compiles in 11 s; with Go's own -O2 -g in 40.
export CGO_CFLAGS=${CGO_CFLAGS:--Og}

# Packages with assembly or unsafe and a twin in plain Go, and those that read or write pixels by them. Arrays of TileDB
# reach them by their filters.
pixels=(./format/{chunk,picture,codec/geozl/...,codec/openzl,codec/openzl/internal/kernel} ./einops ./stats/moments ./rumi ./tiff
  ./store/tiledb/filter ./internal/{cast,inflate,kernel,planes,scan} ./grpc/payload)
# The package with a twin in C, whose tests compare both on whole, broken and hostile frames, and those that read pieces
# and whole tiles by it. `make soak-go` tests the others.
zstd=(./format/chunk ./internal/zstd ./tiff)

# concurrent prints the packages that run something beside something else: others have no races. Of those left out, the
# first ones have a cache or a pool but tests that start nothing; the next are programs for measurements and tests, and
# a server that asks servers by what client and server test; the others link the SDKs of clouds, which compile for the
# race detector in 50 s. `make soak-go` tests them all.
concurrent() {
  grep -rlE --include='*.go' --exclude-dir='.[a-z]*' \
    '^[[:space:]]*go [a-zA-Z]|"sync"|"sync/atomic"|errgroup|[.]Parallel[(]|RunParallel|internal/invariants' . |
    xargs -n1 dirname | sort -u | grep -vxF "$(printf '%s\n' \
      ./format/{codec/jpeg,tables/{parquet,query}} ./internal/{accept,crs,lru,procs,reload,trace,zstd,zstd/whole} \
      ./loader/{ledger,resources,shapes,spec,survey} ./proto/chaski/v1 ./store/{catalog/internal/listing,taco/internal/{model,taco2}} \
      ./tools/testkit/{netsim/far,corpus,counted} ./format/codec/openzl \
      ./bench ./examples/demo-dataset ./tools/{mutants{,/chosen},slowstore,testkit/netsim{,/fakes3}} ./grpc/upstream \
      ./cmd/chaski/{cli,internal/{console,container,raster,serve}} ./source/blobsource/s3)"
}

# unraced prints the packages that `race` does not test, or of whose cases it tries fewer.
unraced() {
  local module dir raced
  module=$("$go" list -m)
  raced=$(concurrent | while read -r dir; do
    grep -qsE 'testing[.]Short|race[.][ES]|AllocsPerRun|netsim/far' "$dir"/*_test.go || echo "$module${dir#.}"
  done)
  "$go" list ./... | grep -vxF "$raced"
}

# run FLAG... PACKAGE...
run() { "$go" test "${options[@]}" "$@"; }

case ${1-} in
  all)
    packages=(./...)
    [ -z "${RACED_TOO-}" ] || mapfile -t packages < <(unraced)
    run "${packages[@]}"
    ;;
  race)
    mapfile -t packages < <(if [ -n "${PACKAGES-}" ]; then tr ' ' '\n' <<< "$PACKAGES"; else concurrent; fi)
    # The detector makes code ten to forty times slower. The compression library shares no memory while it works, so it
    # goes without. Of generic code such as sync.Map the linker keeps the copy of any one package, so no other may.
    GOGC=400 CGO_ENABLED=1 run $short -race -tags "$TAGS,invariants" -gcflags=all=-dwarf=false \
      '-gcflags=github.com/klauspost/compress/...=-dwarf=false -race=false' "${packages[@]}"
    ;;
  variants)
    read -ra packages <<< "${PACKAGES-${pixels[*]}}"
    run $short -tags "$TAGS,twins" "${packages[@]}"
    read -ra packages <<< "${PACKAGES-${zstd[*]}}"
    [ -z "${CC_FOUND-}" ] || CGO_ENABLED=1 run $short -tags "$TAGS,datadog" "${packages[@]}"
    ;;
  arm64) # three minutes of a processor in the emulator
    emulator=()
    [ "$(uname -m)" = aarch64 ] ||
      emulator=(-exec "${QEMU:-$(command -v qemu-aarch64-static || echo qemu-aarch64)}")
    GOARCH=arm64 run $short "${emulator[@]}" "${pixels[@]}" ./store/tiledb ./format/codec/... ./shuffle
    ;;
  *)
    sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
