#!/usr/bin/env bash
# Checks the wheels of a release, installs the one for this machine into an empty environment without Go, and reads a
# first batch with it.
#
#   tools/release/check.sh FOLDER     .release-env holds the checkers
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=$(realpath "$1") bin=$PWD/.release-env/bin
"$bin/twine" check --strict "$folder"/chaski_eo-*
"$bin/check-wheel-contents" --config python/pyproject.toml "$folder"/*.whl
"$bin/auditwheel" show "$folder"/*manylinux*"$(uname -m)"*.whl 2>&1 | tr '\n' ' '
echo

# The packages that the wheel needs, once: later runs have no network.
packages=.release/packages
wanted=$(cksum <python/requirements.txt)
if [ "$(cat "$packages/wanted" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$packages"
  "$bin/python" -m pip download --disable-pip-version-check --quiet --require-hashes --no-deps --only-binary :all: \
    --dest "$packages" -r python/requirements.txt
  echo "$wanted" >"$packages/wanted"
fi
root=$PWD home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
# The interpreter below .release-env: another environment must not see what that one holds.
python=$("$bin/python" -c 'import sys; print(sys._base_executable)')
"$python" -m venv "$home/env"
mkdir "$home/chips" && cp testdata/demo/coast.tif "$home/chips"
cd "$home"
clean=(env -i "HOME=$home" "PATH=$home/env/bin")
"${clean[@]}" python -m pip install --quiet --disable-pip-version-check --no-index \
  --find-links "$root/$packages" --find-links "$folder" chaski-eo
"${clean[@]}" chaski --version
"${clean[@]}" python "$root/tools/release/quickstart.py" chips
