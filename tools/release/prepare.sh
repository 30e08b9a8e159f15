#!/usr/bin/env bash
# Writes what does not depend on a binary into .release/: the licences of what the command links on each platform, the
# completions of shells, the pages of man, and the source distribution. GoReleaser runs it first.
set -euo pipefail
cd "$(dirname "$0")/../.."

mkdir -p .release/notices .release/completions .release/man .release/wheels
export GOFLAGS=-tags=$TAGS
go build -o .release/tools/notices ./tools/notices
for os in linux darwin windows; do
  for arch in amd64 arm64; do
    GOOS=$os GOARCH=$arch .release/tools/notices >".release/notices/${os}_$arch.txt"
  done
done
go build -o .release/tools/chaski ./cmd/chaski
.release/tools/chaski completion bash >.release/completions/chaski.bash
.release/tools/chaski completion zsh >.release/completions/_chaski
.release/tools/chaski completion fish >.release/completions/chaski.fish
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) go run ./tools/site/reference .release/man man
rm -f python/THIRD-PARTY-NOTICES.txt # of a binary, which the source distribution has not
(cd python && ../.release-env/bin/python -m hatchling build --target sdist --directory ../.release/wheels)
