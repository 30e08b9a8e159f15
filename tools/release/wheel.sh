#!/usr/bin/env bash
# Puts a binary into a wheel in .release/wheels/, with its licences and the list of its components.
#
#   tools/release/wheel.sh BINARY OS ARCH     GoReleaser runs it for each binary; OS and ARCH are Go's names
#
# .release-env must hold hatchling. The engine is one static binary: one wheel is for glibc and musl.
set -euo pipefail
cd "$(dirname "$0")/../.."

binary=$(realpath "$1")
case $2/$3 in
  linux/amd64) platform=manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64 ;;
  linux/arm64) platform=manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64 ;;
  darwin/amd64) platform=macosx_12_0_x86_64 ;; # the oldest that Go 1.26 supports
  darwin/arm64) platform=macosx_12_0_arm64 ;;
  windows/amd64) platform=win_amd64 ;;
  windows/arm64) platform=win_arm64 ;;
  *) echo "wheel: no name for the platform $2/$3" >&2; exit 1 ;;
esac

# A copy of the package, because several wheels are built at a time, each with its own notices.
work=.release/work/$2_$3
rm -rf "$work" && mkdir -p "$work" .release/wheels
cp -R python/src python/pyproject.toml python/hatch_build.py README.md python/LICENSE "$work"
rm -rf "$work/src/chaski/_bin"
cp ".release/notices/$2_$3.txt" "$work/THIRD-PARTY-NOTICES.txt"
.release/tools/cyclonedx-gomod bin -json -noserial -notimestamp -std \
  -version "v$CHASKI_VERSION" -output "$work/chaski.cdx.json" "$binary" 2>/dev/null
cd "$work"
CHASKI_BIN_FOR_WHEEL=$binary CHASKI_WHEEL_PLATFORM=$platform CHASKI_WHEEL_SBOM=chaski.cdx.json \
  ../../../.release-env/bin/python -m hatchling build --target wheel --directory ../../wheels
