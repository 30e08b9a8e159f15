#!/usr/bin/env bash
# Writes python/requirements*.txt from python/requirements*.in: each package with what it needs, pinned, with the hashes
# of all files of each version that the package index has, on all systems: for Python 3.10 and newer what users and tests
# need, for 3.11 and newer what builds the site and a release, and runs the notebooks, for 3.12 what adapters are for.
#
#   tools/requirements.sh     asks the package index; needs python3 with venv
#
# To change a version, edit the .in file and run this. Versions that the .txt files have stay as long as they fit. What
# only PyTorch needs is in requirements-torch.txt alone, so that tools/env.sh can take PyTorch from an interpreter.
set -euo pipefail
cd "$(dirname "$0")/../python"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/python" -m pip install --disable-pip-version-check --quiet uv==0.13.9

oldest=3.10 # Python
# compile OUT ARGUMENT...: resolves for all systems at once. Comments would name the index.
compile() {
  local out=$1
  shift
  "$tmp/venv/bin/uv" pip compile --quiet --universal --python-version "$oldest" --generate-hashes --no-annotate \
    --no-header --no-emit-index-url --no-emit-find-links --output-file "$out" "$@"
}

cat requirements.txt requirements-torch.txt requirements-dev.txt >"$tmp/all.txt" 2>/dev/null || true
compile "$tmp/all.txt" requirements.in requirements-torch.in requirements-dev.in requirements-build.in
compile requirements.txt -c "$tmp/all.txt" requirements.in
# Without Triton, which compiles for GPUs (torch.compile), and cuSOLVER, which PyTorch loads when it solves on one: of
# the 5.5 GB that PyTorch takes with all of CUDA, they take 1.3.
printf '%s; python_version < "3"\n' triton nvidia-cusolver >"$tmp/cpu.txt"
compile requirements-torch.txt -c "$tmp/all.txt" --override "$tmp/cpu.txt" requirements-torch.in
echo 'torch; python_version < "3"' >"$tmp/without.txt"
compile requirements-dev.txt -c "$tmp/all.txt" --override "$tmp/without.txt" requirements-dev.in
compile requirements-build.txt -c "$tmp/all.txt" requirements-build.in
# In environments of their own:
oldest=3.11 # of mkdocs-material
compile requirements-site.txt requirements-site.in
compile requirements-release.txt requirements-release.in
compile requirements-notebooks.txt -c "$tmp/all.txt" requirements-notebooks.in
oldest=3.12 # of TorchGeo
adapter=(requirements.in requirements-dev.in requirements-torch.in --override "$tmp/cpu.txt")
compile requirements-torchgeo.txt -c "$tmp/all.txt" requirements-torchgeo.in "${adapter[@]}"
compile requirements-trainers.txt -c "$tmp/all.txt" requirements-trainers.in "${adapter[@]}"
sed -nE 's/^([A-Za-z][^ ]*==[^\\]*)\\?$/\1/p' "$tmp/all.txt" | grep -v '^numpy=' >"$tmp/others.txt"
echo 'numpy==2.3.5' >>"$tmp/cpu.txt"
compile requirements-terratorch.txt -c "$tmp/others.txt" requirements-terratorch.in "${adapter[@]}"
for f in requirements requirements-torch requirements-dev requirements-build requirements-site requirements-release \
  requirements-notebooks requirements-torchgeo requirements-terratorch requirements-trainers; do
  sed -i.bak "1i # Written by tools/requirements.sh from $f.in." "$f.txt" && rm "$f.txt.bak"
done
