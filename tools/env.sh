#!/usr/bin/env bash
# Makes .venv, the one Python environment of the demo, the tests and the checks.
#
#   tools/env.sh [PYTHON]
#
# PYTHON is an interpreter of version 3.10 or newer. Without it, a complete .venv is used as it is, and
# a new one is made from python3. If PYTHON can import torch, .venv sees its packages and only missing
# ones are installed; otherwise all are installed. All are pinned, with hashes. pip's own settings (an
# index, a cache, a proxy) apply. If nothing has changed since the last run, the script does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv
owner=$venv/chaski-python # names the interpreter that it was made from
stamp=$venv/chaski-env    # checksum of the requirements that it satisfies
given=${1-}
python=${given:-python3}

say() { printf 'env: %s\n' "$*" >&2; }

# requirements prints a checksum of all files that decide what is installed.
requirements() { cat python/pyproject.toml python/requirements*.txt tools/env.sh | cksum; }

# The files list all that is needed (tools/requirements.sh), so pip resolves nothing: what only PyTorch
# needs comes with it, from the interpreter or from requirements-torch.txt.
hashed=(--require-hashes --no-deps)

if [ -z "$given" ] && [ -f "$owner" ]; then
  python=$(cat "$owner") # no other one was named
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
  say "$python is not Python 3.10 or newer; name one: make ... PYTHON=/path/to/python3.12"
  exit 1
fi
python=$("$python" -c 'import sys; print(sys.executable)')

made_from=$(cat "$owner" 2>/dev/null || true)
if [ "$made_from" = "$python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$(requirements)" ]; then
  exit 0
fi
if [ -e "$venv" ] && [ "$made_from" != "$python" ]; then
  if [ ! -f "$venv/pyvenv.cfg" ]; then
    say "$venv exists but is not a virtual environment: remove it or move it away"
    exit 1
  fi
  rm -rf "$venv"
fi

torch=$("$python" -c 'import torch; print(torch.__version__)' 2>/dev/null || true)
if [ ! -f "$owner" ]; then
  "$python" -m venv "$venv"
  printf '%s\n' "$python" > "$owner"
fi
rm -f "$stamp"

# Connections break during downloads of this size. pip's cache keeps the files that arrived, so a new
# try fetches the rest. Modules are compiled when they are imported: of those of PyTorch and the others, which take 30 s
# of a core to compile, few ever are.
pip() {
  local try
  for try in 1 2 3; do
    "$venv/bin/python" -m pip install --disable-pip-version-check --quiet --no-compile --retries 10 "$@" && return
    say "pip failed (try $try of 3; $(df -Ph "$venv" | awk 'NR == 2 { print $4 }') free on this disk)"
    [ "$try" -eq 3 ] || sleep $((try * 10))
  done
  return 1
}

if [ -n "$torch" ]; then
  say "using PyTorch $torch of $python; installing missing packages (50 MB at most)"
  # A .pth file, because --system-site-packages does not see the packages of another virtual
  # environment. The packages of .venv itself come first.
  "$python" - "$venv" <<'PY'
import pathlib, site, sys
lib = next(pathlib.Path(sys.argv[1]).glob("lib*/python*/site-packages"))
dirs = site.getsitepackages() + ([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])
(lib / "chaski-parent.pth").write_text("".join(d + "\n" for d in dirs))
PY
else
  case "$(uname -s)" in
    Linux) size="up to 3 GB to download and 5 GB on disk, most of it PyTorch with its CUDA libraries" ;;
    *) size="about 150 MB to download, most of it PyTorch" ;;
  esac
  say "$python has no PyTorch. Installing once, into $venv:"
  sed -n 's/^\([A-Za-z][^#]*\)$/env:   \1/p' python/requirements.in python/requirements-dev.in python/requirements-torch.in >&2
  say "$size"
  say "(to avoid this, name an interpreter with PyTorch: make ... PYTHON=/path/to/python)"
  # pip unpacks nothing before it has all files of a call: 2.5 GB beside the 4.2 GB that they become. In parts,
  # 1 GB beside them.
  for names in torch= 'nvidia-cu[a-c]' 'nvidia-cu[d-f]' 'nvidia-[^c]'; do
    awk -v names="^$names" '/^[a-z]/ { chosen = $0 ~ names } chosen' python/requirements-torch.txt > "$venv/part.txt"
    pip "${hashed[@]}" -r "$venv/part.txt"
  done
  pip "${hashed[@]}" -r python/requirements-torch.txt
fi
pip "${hashed[@]}" -r python/requirements.txt
pip "${hashed[@]}" -r python/requirements-dev.txt
# Without isolation, for which pip would install hatchling without a hash.
pip --no-deps --no-build-isolation --editable python

"$venv/bin/python" -c 'import torch, numpy, grpc, chaski' || { say "the environment does not work"; exit 1; }
requirements > "$stamp"
say "ready: $venv with $("$venv/bin/python" -c 'import platform, torch, numpy
print(f"Python {platform.python_version()}, PyTorch {torch.__version__}, numpy {numpy.__version__}")')"
