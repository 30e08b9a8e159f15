#!/usr/bin/env bash
# Prints a recipe for conda (rattler-build), which installs the wheels of a release.
#
#   tools/release/recipe.sh FOLDER     with the wheels; CHASKI_VERSION is set
set -euo pipefail

# source_of CONDITION PATTERN: prints the wheel of a platform as a source; PATTERN is how its name ends.
source_of() {
  local wheel
  wheel=$(cd "$folder" && ls chaski_eo-*-$2.whl)
  cat <<END
  - if: $1
    then:
      url: https://github.com/chaski-eo/chaski/releases/download/v\${{ version }}/$wheel
      sha256: $(sha256sum "$folder/$wheel" | cut -d' ' -f1)
END
}

folder=$1
cat <<END
context:
  version: "$CHASKI_VERSION"

package:
  name: chaski-eo
  version: \${{ version }}

source:
$(source_of "linux and x86_64" 'manylinux*_x86_64')
$(source_of "linux and aarch64" 'manylinux*_aarch64')
$(source_of "osx and x86_64" 'macosx*_x86_64')
$(source_of "osx and arm64" 'macosx*_arm64')
$(source_of "win and x86_64" win_amd64)
$(source_of "win and arm64" win_arm64)

build:
  number: 0
  script: python -m pip install --no-deps --no-index --find-links . chaski-eo==\${{ version }}

requirements:
  host: [python, pip]
  run:
    - python
$(python3 - <<'PYTHON'
import re

text = open("python/pyproject.toml").read()
for need in re.findall(r'"([^"]+)"', re.search(r"^dependencies = \[(.*)\]$", text, re.M)[1]):
    print("    -", re.sub(r"(?=[<>=])", " ", need, count=1))
PYTHON
)

tests:
  - python: {imports: [chaski]}
  - script: [chaski --version]

about:
  homepage: https://github.com/chaski-eo/chaski
  summary: Satellite-image chips as shuffled, normalised batches for PyTorch
  license: Apache-2.0
END
