#!/usr/bin/env bash
# Builds all of a release, twice, and checks it. It publishes nothing.
#
#   tools/release.sh [PYTHON]
#
# PYTHON is as in tools/pinned.sh, but 3.11 or newer. What is published lies in dist/ then: archives, packages for Debian
# and Red Hat, a cask for Homebrew, lists of components (CycloneDX), wheels, a source distribution, a recipe for conda and
# the checksums of all. After the first run, it needs no network. TAGS are the build tags: make sets them.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'release: %s\n' "$*" >&2; }

CHASKI_VERSION=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' python/src/chaski/__init__.py)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
RELEASE_DATE=$(TZ=UTC0 git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd)
GOCACHE=$(go env GOCACHE)
export CHASKI_VERSION SOURCE_DATE_EPOCH RELEASE_DATE GOCACHE
# GoReleaser sets the flags of the command itself, and those of the environment would reach its own compile.
export GOFLAGS='' CGO_ENABLED=0

grep -q "^version: $CHASKI_VERSION\$" CITATION.cff || { say "CITATION.cff has another version"; exit 1; }
tag=$(git tag --points-at HEAD 'v*' | head -1)
[ "${tag:-v$CHASKI_VERSION}" = "v$CHASKI_VERSION" ] || { say "the tag is $tag, the version $CHASKI_VERSION"; exit 1; }
tools/pinned.sh .release-env release "$@"
mkdir -p .release/tools
go build -C tools/release -trimpath -o ../../.release/tools/ github.com/goreleaser/goreleaser/v2 \
  github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
export PATH=$PWD/.release/tools:$PATH # GoReleaser looks for cyclonedx-gomod there, from another folder

# build FOLDER: makes a release in a folder.
build() {
  rm -rf "$1" .release/out .release/wheels
  goreleaser release --snapshot --clean --skip=publish >.release/log 2>&1 || {
    cat .release/log >&2
    return 1
  }
  mkdir -p "$1"
  cp .release/wheels/* "$1"
  find .release/out -maxdepth 1 \( -name '*.tar.gz' -o -name '*.zip' -o -name '*.deb' -o -name '*.rpm' -o -name '*.json' \
    -o -name checksums.txt \) ! -name 'artifacts.json' ! -name 'metadata.json' ! -name 'config.json' -exec cp {} "$1" \;
  cp .release/out/homebrew/Casks/chaski.rb "$1"
  tools/release/recipe.sh "$1" >"$1/recipe.yaml"
}

say "building version $CHASKI_VERSION for six platforms, twice"
build dist
build .release/again
diff <(cd dist && sha256sum -- *) <(cd .release/again && sha256sum -- *) ||
  { say "two builds differ"; exit 1; }
(cd dist && sha256sum --quiet --check checksums.txt)
tools/release/check.sh dist
say "$(find dist -type f | wc -l) files in dist/, the same bytes in two builds"
