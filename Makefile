# Two commands matter: `make demo` and `make test`. `make help` lists the rest. What a target does lies in tools/, and
# each script says which variables it takes.
#
# `make test` gives the same answer each time: it runs every fuzz input that was ever found, and random cases with a
# fixed seed. `make fuzz` explores at random, and `make soak` has the long runs.
#
# PYTHON     interpreter (3.10 or newer) from which the Python environment .venv is made; one that
#            has PyTorch saves a large download. Default: the existing .venv, else python3.
#            `make interop` and `make soak-hostile` make their environments from it and need
#            3.12 or newer; `make soak-training` and `make frameworks` need 3.12.
# FUZZTIME   time of each fuzz target, e.g. 1m; default: an hour for all of them
# FUZZONLY   regular expression of the "PACKAGE TARGET" to fuzz, e.g. 'zarr |FuzzTIFF$$'; default: all
# FUZZNEW    1: `make fuzz-long` runs the targets that have no line in tools/fuzz_counts.tsv yet
PYTHON ?=
GO ?= go
VENV := .venv
PY := $(VENV)/bin/python

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory

VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/v\1/p' python/src/chaski/__init__.py)
# The command, the checks and the tests share one set of flags, so each dependency is compiled once, and once more for the
# race detector. Without cgo, netgo and osusergo change nothing; with it, the same compiled packages serve.
# disable_grpc_modules leaves gRPC out of Google's SDK, 13 MB of bin/chaski; grpcnotrace leaves out pages of
# golang.org/x/net/trace, see docs/decisions/build.md.
TAGS := netgo,osusergo,disable_grpc_modules,grpcnotrace
# No test needs DWARF, a seventh of a compile. Compilers and linkers are short processes, which spend a sixth of their
# time on collecting garbage unless they do so only when they have 1 GiB.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -trimpath -tags=$(TAGS) -gcflags=all=-dwarf=false '-toolexec=env GOGC=off GOMEMLIMIT=1GiB')
export CGO_ENABLED := 0
# Packages are installed without bytecode, which the first import writes: without it an import of PyTorch takes 3.7 s.
export PYTHONDONTWRITEBYTECODE :=
# The race detector and the decoder in C need a C compiler.
CC_FOUND := $(shell command -v "$$($(GO) env CC)" 2>/dev/null)
export CHASKI_BIN := $(CURDIR)/bin/chaski
export GO PYTHON TAGS CC_FOUND

targets := $(shell sed -n 's/^\([a-z][a-z0-9-]*\):.*/\1/p' Makefile)
.PHONY: $(targets)
help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

build: ## bin/chaski
	@mkdir -p bin
	$(GO) build -ldflags '-s -w -X github.com/chaski-eo/chaski/cmd/chaski/cli.version=$(VERSION)' -o bin/chaski ./cmd/chaski
env: ## .venv: the Python environment of demo, tests and checks, with the package installed in place
	@tools/env.sh $(PYTHON)
install-dev: env
wheel: build ## dist/*.whl: the Python package with bin/chaski in it; needs neither .venv nor PyTorch
	@tools/wheel.sh $(PYTHON)
demo: build env ## a labelled dataset, its statistics, two epochs of training from the stream
	@tools/demo.sh

test: ## checks and all tests: Go, its race detector and build tags, Python with PyTorch over the real stream
	@tools/test.sh
test-go: build ## Go tests, all cases; with RACED_TOO=1 without those that test-race tries in full
	tools/go_test.sh all
test-race: ## Go tests under the race detector, with checks that users do not have (build tag invariants)
	tools/go_test.sh race
test-variants: ## Go tests of the code that build tags choose: no assembly and unsafe, zstd in C
	tools/go_test.sh variants
test-arm64: ## Go tests of codecs, kernels, layouts and payloads as for Linux on arm64; needs qemu-user elsewhere
	tools/go_test.sh arm64
test-python: build env ## Python tests
	tools/python_test.sh

check: check-go check-python check-generated check-house ## formatting, static analysis, types, generated code, lines, imports, API
check-go: ## formatting, the analysers of vet and staticcheck, go.mod
	tools/check_go.sh
SCRIPTS := bench/gpu.py bench/reweight.py bench/peers examples tools
check-python: env ## formatting and types of Python, and workflows
	cd python && ../$(PY) -m ruff format --check . && ../$(PY) -m ruff check . && ../$(PY) -m mypy
	$(PY) -m ruff format --check $(SCRIPTS)
	$(PY) -m ruff check $(SCRIPTS)
	[ ! -x $(VENV)/bin/zizmor ] || $(VENV)/bin/zizmor --quiet --offline .github
check-generated: env ## whether generated code is what its generators write
	CHASKI_GEN_VENV=$(CURDIR)/$(VENV)/generate proto/generate.sh --check
	$(GO) run ./tools/metrics -check
check-house: env ## length of lines and functions, direction of imports, circles of files and modules, folders of the page of the architecture, one writer of files, listings of the API
	$(GO) run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 -shellcheck= -pyflakes=
	$(GO) run ./tools/check all
	$(PY) tools/api.py
	$(PY) tools/vacuous.py python/tests
	$(PY) tools/circles.py python/src/chaski
api: env ## writes docs/api, the listings of the public names of Go and Python
	$(GO) run ./tools/check api -w
	$(PY) tools/api.py --write
vuln: govulncheck pip-audit ## known vulnerabilities of what chaski uses, in Go and Python; needs the network, so CI does not run it
govulncheck: ## known vulnerabilities in called code (asks the Go vulnerability database)
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.8.0 ./...
pip-audit: env ## known vulnerabilities in the pinned Python packages (installs pip-audit into .venv/audit, asks pypi.org; fails where it has no answer)
	[ -x $(VENV)/audit/bin/pip-audit ] || { $(PY) -m venv $(VENV)/audit && \
	  $(VENV)/audit/bin/python -m pip install --quiet pip-audit==2.10.1; }
	$(VENV)/audit/bin/pip-audit --strict --disable-pip --require-hashes $(addprefix -r python/requirements,.txt -dev.txt -torch.txt)

fuzz: ## every fuzz target for FUZZTIME, or an hour in all; then random cases of the tests that draw them
	@CHASKI_FUZZ_ONLY='$(FUZZONLY)' tools/fuzz.sh $(FUZZTIME)
fuzz-long: ## every fuzz target for FUZZTIME, or 10 minutes each; writes the counts into tools/fuzz_counts.tsv
	@counts=$$(mktemp); trap 'rm -f "$$counts"' EXIT; failed=0; \
	  CHASKI_FUZZ_ONLY='$(FUZZONLY)' CHASKI_FUZZ_COUNTS=$$counts CHASKI_FUZZ_MISSING=$(if $(FUZZNEW),tools/fuzz_counts.tsv) \
	    tools/fuzz.sh $(or $(FUZZTIME),10m) || failed=1; \
	  $(or $(PYTHON),python3) tools/fuzz_counts.py <$$counts; exit $$failed
mutants: ## which small changes of the core no test sees. MUTANTS='-n 20 -tests ./loader loader/pixels' picks
	$(GO) run ./tools/mutants $(or $(MUTANTS),-n 60 format/chunk einops shuffle stats/moments tiff rumi)

soak: soak-training soak-hostile soak-cache soak-go soak-specs soak-disk soak-fleet ## these seven, for many hours; tools/soak.sh lists their variables
soak-training: build env ## training with kills, steps that must leak nothing, histories with a ledger, trainers of others killed
soak-hostile: build env ## damaged frames, tries to get in, attacks on a server in a memory cgroup of 1 GiB
soak-cache: ## engines that share a cache on disk and are killed
soak-go: ## all Go tests and all their cases, under the race detector and without assembly and unsafe; two hours
soak-specs: build env ## random specs against rasterio and numpy
soak-disk: build ## power cuts while the command writes, to a small disk in a file; needs root on Linux
soak-fleet: build env ## hosts in network namespaces whose servers die, refuse, join and move; needs root on Linux
$(filter soak-%,$(targets)): soak-%:
	tools/soak.sh $*

conformance: build ## bin/chaski against the conformance corpus, if it is beside the checkout
	../shared/conformance/run --chaski bin/chaski
interop: build ## compatibility with the original Python packages in both directions; installs them into .interop
	$(or $(PYTHON),python3) tools/interop.py $(INTEROPFLAGS)
interop-newest: build ## which files of the newest packages of the index, not pinned, chaski does not read
	$(or $(PYTHON),python3) tools/interop_newest.py
frameworks: build ## adapters for TorchGeo and TerraTorch, then trainers, each killed SOAKKILLS (1) times, of Python 3.12
	CHASKI_SOAK_KILLS=$(or $(SOAKKILLS),1) tools/trainers.sh
cross: ## whether the command compiles for the other platforms
	for platform in linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do \
	  echo $$platform; GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) build -o /dev/null ./cmd/chaski; done
peers: build ## side by side with other loaders, into .peers/report; hours, see docs/benchmarks.md
	python3 bench/peers/run.py --work .peers/work -o .peers/report $(if $(PYTHON),--python $(PYTHON))
bench-arrays: ## TileDB arrays side by side with TileDB's own library: a table, in about a minute
	@$(or $(PYTHON),python3) tools/bench_arrays.py $(if $(ROUNDS),--rounds $(ROUNDS))

notebooks: build env ## executes the tutorials of docs/tutorials as notebooks; NOTEBOOKFLAGS=--write stores their outputs
	tools/pinned.sh .notebooks-env notebooks $(PY)
	PYTHONPATH=$$(echo .notebooks-env/lib/python*/site-packages) $(PY) tools/notebooks.py $(NOTEBOOKFLAGS)
site: ## .site: the documentation as a site, with the references of Python and of the command; strict
	tools/site.sh $(PYTHON)
image: ## dist/image: the container image as an OCI layout, for amd64 and arm64; IMAGE=registry/name pushes it. Needs the registry of its base
	VERSION=$(VERSION) KO_DOCKER_REPO=$(or $(IMAGE),chaski) $(GO) run github.com/google/ko@v0.19.1 build ./cmd/chaski --bare \
	  --tags=$(VERSION:v%=%) --image-user=65532 $(if $(IMAGE),,--push=false --oci-layout-path=dist/image)
release-snapshot: ## dist: all that a release publishes, built twice and checked; needs Python 3.11, and no network the second time
	tools/release.sh $(PYTHON)
clean: ## remove everything that was built, except .venv
	rm -rf bin dist .demo .peers .wheel .site .site-env .release .release-env .notebooks-env .frameworks-env python/THIRD-PARTY-NOTICES.txt
