# Two commands matter: `make demo` and `make test`. `make help` lists the rest.
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
# SOAKTIME   time of the first part of `make soak-training`
# SOAKSTEPS  steps of its last part
# SOAKFLAGS  further flags of tools/soak.py, tools/soak_hostile.py or tools/soak_disk.py (see their --help), for a soak
#            that is called by its name, such as --only histories
# SOAKKILLS  kills of each trainer of `make soak-training`, default 30, and of engines of `make soak-cache`, default 300
# INTRUDERS  tries of each kind of `make soak-hostile` to get in; default: 100000
# INTEROPFLAGS  flags of `make interop`: --short, with which `make test` calls it where .interop is, leaves a third of
#               random cases
# SOAKCOUNT  damaged frames of `make soak-hostile`
# SOAKSPECS  specs of `make soak-specs`; default: 10000

PYTHON ?=
GO ?= go
FUZZTIME ?=
FUZZONLY ?=
FUZZNEW ?=
SOAKTIME ?= 10m
SOAKSTEPS ?= 1000000
SOAKCOUNT ?= 5000000
SOAKFLAGS ?=
INTEROPFLAGS ?=

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory

VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/v\1/p' python/src/chaski/__init__.py)
LDFLAGS := -s -w -X github.com/chaski-eo/chaski/cmd/chaski/cli.version=$(VERSION)
# One set of flags for the command, the checks and the tests, so that each dependency is compiled once, and once more
# for the race detector. A compile of all of them takes 80 s of two cores. What needs cgo sets it: with the tags netgo and
# osusergo, which change nothing without cgo, it uses the same compiled packages.
# disable_grpc_modules is of Google's SDK: without its gRPC client, which chaski does not use, bin/chaski is 13 MB smaller.
# grpcnotrace leaves out the pages of golang.org/x/net/trace: they use templates, see docs/decisions/build.md.
TAGS := netgo,osusergo,disable_grpc_modules,grpcnotrace
# DWARF is for debuggers, and no test needs it: a compile without it takes a seventh less processor time. Compilers,
# linkers and vet are short processes, which spend a sixth of theirs on collecting garbage unless they do so only when
# they have 1 GiB.
TOOLS := GOGC=off GOMEMLIMIT=1GiB
COMPILE := -dwarf=false
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -trimpath -tags=$(TAGS) -gcflags=all=$(COMPILE) '-toolexec=env $(TOOLS)')
export CGO_ENABLED := 0
# The race detector and the decoder in C need a C compiler.
CC_FOUND := $(shell command -v "$$($(GO) env CC)" 2>/dev/null)
# The race detector makes code ten to forty times slower. It looks for races between chaski's goroutines, so it leaves
# out the compression library, which shares no memory while it works. Of generic code, such as that of sync.Map, the
# linker keeps the copy of any one package: were it that of a package without the detector, there would be races where
# none are. With -short, tests try fewer cases that run the same goroutines.
SHORT := -short
RACE := -race $(SHORT) -tags invariants -gcflags=all=$(COMPILE) '-gcflags=github.com/klauspost/compress/...=$(COMPILE) -race=false'
# The detector follows each block that the collector frees. With four times the usual garbage between collections, the
# tests of cli take 55 s of processor time instead of 68, those of loader 63 instead of 70; and up to 2.9 GB instead of 0.9.
RACE_GOGC := 400
# Packages with nothing that runs beside anything else have no races to find. Those of SHARED have a cache or a pool, but
# their tests start nothing: the tests of the packages whose goroutines share them do. Packages that link the SDKs
# of stores are there too, the command's among them: the SDKs compile in 50 s. `make soak-go` runs them.
CONCURRENT := ^[[:space:]]*go [a-zA-Z]|"sync"|"sync/atomic"|errgroup|[.]Parallel[(]|RunParallel|internal/invariants
SHARED := ./cmd/chaski/{cli,internal/{console,container,raster,serve}} ./format/{codec/jpeg,tables/{parquet,query}} \
  ./internal/{accept,crs,lru,procs,reload,trace,zstd,zstd/whole} ./loader/{ledger,resources,shapes,spec,survey} \
  ./proto/chaski/v1 ./source/blobsource/s3 ./store/{catalog/internal/listing,taco/internal/{model,taco2}} ./tools/testkit/netsim/far ./tools/testkit/{corpus,counted}
RACE_PACKAGES = $$(grep -rlE --include=*.go --exclude-dir='.[a-z]*' '$(CONCURRENT)' . | xargs -n1 dirname | sort -u | grep -vxF "$$(printf '%s\n' $(SHARED))")
# Of these, the packages whose tests try the same cases with the detector: `make test` tries them once.
RACED = $$(for dir in $(RACE_PACKAGES); do grep -qsE 'testing[.]Short|race[.][ES]|AllocsPerRun|netsim/far' $$dir/*_test.go || echo $$dir; done)
UNRACED = $$($(GO) list ./... | grep -vxF "$$(echo "$(RACED)" | sed "s,^[.],$$($(GO) list -m),")")
# It holds the types of 1,300 packages: with 2 GiB to fill, it takes two thirds of the processor time.
STATICCHECK := env GOGC=off GOMEMLIMIT=2GiB $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2
ACTIONLINT := $(GO) run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
GOVULNCHECK := $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.8.0

VENV := .venv
PY := $(VENV)/bin/python
SCRIPTS := bench/gpu.py bench/peers examples tools

# Packages are installed without bytecode, which the first import of a module writes. Where the environment forbids that,
# as in many containers, each process compiles all again: an import of PyTorch takes 3.7 s of a processor instead of 1.8,
# of chaski 0.8 instead of 0.3, and tests start hundreds.
export PYTHONDONTWRITEBYTECODE :=

export CHASKI_BIN := $(CURDIR)/bin/chaski
export CHASKI_FUZZ_ONLY = $(FUZZONLY)
export FUZZTIME GO CC_FOUND PYTHON

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

.PHONY: build
build: ## bin/chaski
	@mkdir -p bin
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/chaski ./cmd/chaski

.PHONY: env install-dev
env: ## .venv: the Python environment of demo, tests and checks, with the package installed in place
	@tools/env.sh $(PYTHON)
install-dev: env

.PHONY: wheel
wheel: build ## dist/*.whl: the Python package with bin/chaski in it; needs neither .venv nor PyTorch
	@tools/wheel.sh $(PYTHON)

.PHONY: demo
demo: build env ## a labelled dataset, its statistics, two epochs of training from the stream
	@tools/demo.sh

.PHONY: test
test: ## checks and all tests: Go, its race detector and build tags, Python with PyTorch over the real stream
	@tools/test.sh

# A test that hangs is ended after this time. The slowest package takes a minute on two idle cores, and may take an hour
# on busy ones. `make check-go` vets all packages.
# Without symbol tables, which stack traces do not need, linkers take a quarter less: of cli, 1.6 s instead of 2.2.
# Tests wait for links, clocks and servers, so that three packages at a time keep two cores busy.
GO_TEST := -timeout 1h -vet=off '-ldflags=-s -w' -p 3

# Packages with twins, and those that read or write pixels by them. What else imports them runs the same code under any
# tag: `make soak-go` tests it with the twins, too. Here the packages below loader would compile once more for it.
PIXELS := ./format/chunk ./einops ./stats ./rumi ./tiff ./format/codec/geozl/... ./format/codec/openzl ./format/codec/openzl/internal/kernel ./store/tiledb/... \
  ./internal/cast ./internal/inflate ./internal/kernel ./internal/planes ./internal/scan ./grpc/payload

# With twice the usual garbage between collections, the tests of cli take 34 s of processor time instead of 42, those of
# store/tiledb 7 instead of 10; with four times, hardly less, and those of format/tables/query 2.8 GB instead of 1.3.
TEST_GOGC := 200

# An engine of a Python test lives for 40 ms, a third of which it spends on its start. With eight times the usual garbage
# between collections, those of test_real and test_sources take 6.8 s of processor time instead of 8.8.
ENGINE_GOGC := 800

# The decoder in C compiles in 11 s of processor time, instead of 20 with -O1, or twice that with Go's -O2 -g. Tests with
# it take the same.
test-race test-variants: export CGO_CFLAGS := $(or $(CGO_CFLAGS),-Og)

.PHONY: test-go test-race test-variants test-python
test-go: build ## Go tests, all cases; with RACED_TOO=1 without those that test-race tries in full
	GOGC=$(TEST_GOGC) $(GO) test $(GO_TEST) $(if $(RACED_TOO),$(UNRACED),./...)
test-race: ## Go tests under the race detector, with checks that users do not have (build tag invariants)
	GOGC=$(RACE_GOGC) CGO_ENABLED=1 $(GO) test $(RACE) $(GO_TEST) $(RACE_PACKAGES)
test-variants: ## Go tests of the code that build tags choose: no assembly and unsafe, zstd in C
	GOGC=$(TEST_GOGC) $(GO) test $(SHORT) $(GO_TEST) -tags $(TAGS),twins $(PIXELS)
ifneq ($(CC_FOUND),)
	GOGC=$(TEST_GOGC) CGO_ENABLED=1 $(GO) test $(SHORT) $(GO_TEST) -tags $(TAGS),datadog ./format/chunk ./format/codec/geozl ./format/tables/parquet ./internal/zstd ./format/codec/openzl ./rumi ./tiff ./store/tiledb/...
endif
# What computes with pixels, on another processor, in an emulator: three minutes of processor time.
QEMU ?= $(or $(shell command -v qemu-aarch64-static),qemu-aarch64)
.PHONY: test-arm64
test-arm64: ## Go tests of codecs, kernels, layouts and payloads as for Linux on arm64; needs qemu-user elsewhere
	GOARCH=arm64 $(GO) test $(SHORT) $(GO_TEST) $(if $(filter aarch64,$(shell uname -m)),,-exec $(QEMU)) \
	  $(PIXELS) ./format/codec/... ./shuffle
# Tests of Python wait for engines and clocks half of their time, so two processes share their files. The first has those
# whose tests run in forks, so that one process imports PyTorch for all of them, and every fifth of the others, with which
# both take equally long.
test-python: build env ## Python tests
	@files() { grep "$$1" 'forks(' python/tests/test_*.py; }; failed=0; \
	  GOGC=$(ENGINE_GOGC) $(PY) -m pytest -q $$(files -l; files -L | awk 'NR % 5 == 0') & first=$$!; \
	  GOGC=$(ENGINE_GOGC) $(PY) -m pytest -q $$(files -L | awk 'NR % 5') || failed=1; \
	  wait $$first || failed=1; exit $$failed

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME, or an hour in all; then random cases of the tests that draw them
	@tools/fuzz.sh $(FUZZTIME)

.PHONY: fuzz-long
fuzz-long: ## every fuzz target for FUZZTIME, or 10 minutes each; writes the counts into tools/fuzz_counts.tsv
	@counts=$$(mktemp); trap 'rm -f "$$counts"' EXIT; failed=0; \
	  CHASKI_FUZZ_COUNTS=$$counts CHASKI_FUZZ_MISSING=$(if $(FUZZNEW),tools/fuzz_counts.tsv) \
	    tools/fuzz.sh $(or $(FUZZTIME),10m) || failed=1; \
	  $(or $(PYTHON),python3) tools/fuzz_counts.py <$$counts; exit $$failed

.PHONY: check check-go check-python check-generated check-house api
check: check-go check-python check-generated check-house ## formatting, static analysis, types, generated code, lines, imports, API
# The tag `purego` has to choose the same files as `twins`, which the tests use: it is for users, and takes the assembly of
# the standard library's cryptography away too, below nearly everything. Only packages with such files are vetted with
# `twins`, and without `invariants`, so that `make test-variants` uses what is compiled for that: 10 s of processor time
# instead of 43.
CHOSEN := {{.ImportPath}} {{.GoFiles}} {{.SFiles}} {{.TestGoFiles}} {{.XTestGoFiles}}
check-go:
	@bad=$$(gofmt -l .); \
	  [ -z "$$bad" ] || { echo "not formatted (gofmt -w):"; echo "$$bad"; exit 1; }
	$(GO) vet ./...
	chosen() { $(GO) list -tags $$1 -f '$(CHOSEN)' ./...; }; cmp <(chosen purego) <(chosen twins); \
	  $(GO) vet -tags $(TAGS),twins $$(diff <(chosen $(TAGS)) <(chosen twins) | awk '/^>/ { print $$2 }')
	$(GO) vet -tags $(TAGS),invariants ./internal/invariants
	$(STATICCHECK) -tags $(TAGS) ./...
	$(GO) mod tidy -diff
check-python: env
	cd python && ../$(PY) -m ruff format --check . && ../$(PY) -m ruff check . && ../$(PY) -m mypy
	$(PY) -m ruff format --check $(SCRIPTS)
	$(PY) -m ruff check $(SCRIPTS)
	[ ! -x $(VENV)/bin/zizmor ] || $(VENV)/bin/zizmor --quiet --offline .github
check-generated: env
	CHASKI_GEN_VENV=$(CURDIR)/$(VENV)/generate proto/generate.sh --check
	$(GO) run ./tools/metrics -check

check-house: env ## length of lines and functions, direction of imports, circles of files and modules, one writer of files, listings of the API
	$(ACTIONLINT) -shellcheck= -pyflakes=
	$(GO) run ./tools/check lines
	$(GO) run ./tools/check functions
	$(GO) run ./tools/check imports
	$(GO) run ./tools/check circles
	$(GO) run ./tools/check figures
	$(GO) run ./tools/check links
	$(GO) run ./tools/check loops
	$(GO) run ./tools/check writes
	$(GO) run ./tools/check api
	$(PY) tools/api.py
	$(PY) tools/vacuous.py python/tests
	$(PY) tools/circles.py python/src/chaski
api: env ## writes docs/api, the listings of the public names of Go and Python
	$(GO) run ./tools/check api -w
	$(PY) tools/api.py --write

.PHONY: vuln govulncheck pip-audit
vuln: govulncheck pip-audit ## known vulnerabilities of what chaski uses, in Go and Python; needs the network, so CI does not run it
govulncheck: ## known vulnerabilities in called code (asks the Go vulnerability database)
	$(GOVULNCHECK) ./...

pip-audit: env ## known vulnerabilities in the pinned Python packages (installs pip-audit into .venv/audit, asks pypi.org; fails where it has no answer)
	[ -x $(VENV)/audit/bin/pip-audit ] || { $(PY) -m venv $(VENV)/audit && \
	  $(VENV)/audit/bin/python -m pip install --quiet pip-audit==2.10.1; }
	$(VENV)/audit/bin/pip-audit --strict --disable-pip --require-hashes -r python/requirements.txt -r python/requirements-dev.txt \
	  -r python/requirements-torch.txt

.PHONY: soak soak-training soak-hostile soak-cache soak-go soak-specs soak-disk
soak: soak-training soak-hostile soak-cache soak-go soak-specs soak-disk ## these six, for many hours; soak-disk needs root on Linux
soak-training: build env trainers-env ## training with kills, SOAKSTEPS steps that must leak nothing, histories with a ledger, trainers of others killed
	[ -d .demo/train ] || $(GO) run ./examples/demo-dataset
	$(PY) tools/soak.py --time $(SOAKTIME) --steps $(SOAKSTEPS) $(SOAKFLAGS)
	CHASKI_SOAK_LEDGER=10000 $(GO) test ./loader/ledger ./shuffle -run 'TestSimulatedHistories|TestElasticHistories' -timeout 2h
	CHASKI_SOAK_LEDGER=100 PYTHONPATH=$(CURDIR)/python/src $(PY) -m pytest -q python/tests/test_ledger.py
	CHASKI_SOAK_KILLS=$(or $(SOAKKILLS),30) $(WITH_TRAINERS) python/tests/test_exact_resume.py
soak-hostile: build env ## SOAKCOUNT damaged OpenZL frames, INTRUDERS tries to get in, then attacks on a server in a memory cgroup of 1 GiB
	$(or $(PYTHON),python3) tools/interop.py --soak $(SOAKCOUNT)
	CHASKI_SOAK_INTRUDERS=$(or $(INTRUDERS),100000) $(GO) test ./grpc/server ./source -v -timeout 2h \
		-run 'TestStrangers|TestOtherTenants|TestLinksToAnotherTenant|TestHostileStreams|TestExchangedLinks|TestBelowExchanged'
	[ -d .demo/train ] || $(GO) run ./examples/demo-dataset
	$(PY) tools/soak_hostile.py $(SOAKFLAGS)
soak-cache: ## engines that share a cache on disk, of which SOAKKILLS are killed
	CHASKI_SOAK_CACHE=$(or $(SOAKKILLS),300) $(GO) test ./source/diskcache -run TestKilledEngines -v -timeout 2h
soak-go: ## all Go tests and all their cases, under the race detector and without assembly and unsafe; two hours
	$(MAKE) test-race RACE_PACKAGES=./... SHORT=
	$(MAKE) test-variants PIXELS=./... SHORT=
soak-specs: build env ## SOAKSPECS random specs against rasterio and numpy
	CHASKI_RANDOM_SPECS=$(or $(SOAKSPECS),10000) PYTHONPATH=$(CURDIR)/python/src $(PY) -m pytest -q \
		python/tests/test_random_specs.py
soak-disk: build ## power cuts while the command writes, to a small disk in a file; needs root on Linux
	[ -d .demo/train ] || $(GO) run ./examples/demo-dataset
	$(or $(PYTHON),python3) tools/soak_disk.py $(SOAKFLAGS)

.PHONY: conformance
conformance: build ## bin/chaski against the conformance corpus, if it is beside the checkout
	../shared/conformance/run --chaski bin/chaski

.PHONY: interop
interop: build ## compatibility with the original Python packages in both directions; installs them into .interop
	GOGC=$(TEST_GOGC) $(or $(PYTHON),python3) tools/interop.py $(INTEROPFLAGS)

.PHONY: interop-newest
interop-newest: build ## which files of the newest packages of the index, not pinned, chaski does not read
	$(or $(PYTHON),python3) tools/interop_newest.py

# What other trainers are tested in. The tests that need them are skipped by name elsewhere.
TRAINERS := .frameworks-env/trainers
WITH_TRAINERS = CHASKI_BIN=$(CURDIR)/bin/chaski PYTHONPATH=python/src $(TRAINERS)/bin/python -m pytest -q

.PHONY: frameworks trainers-env
frameworks: build trainers-env ## adapters for TorchGeo and TerraTorch, then trainers, each killed SOAKKILLS (1) times, of Python 3.12
	for name in torchgeo terratorch; do \
	  tools/pinned.sh .frameworks-env/$$name $$name $(or $(PYTHON),python3.12) && \
	  CHASKI_BIN=$(CURDIR)/bin/chaski PYTHONPATH=python/src .frameworks-env/$$name/bin/python -m pytest -q \
	    python/tests/test_$$name.py python/tests/test_coming_from.py python/tests/test_examples.py::test_$$name || exit 1; \
	done
	CHASKI_SOAK_KILLS=$(or $(SOAKKILLS),1) $(WITH_TRAINERS) \
	  $(addprefix python/tests/test_,exact_resume.py trainer.py distributed.py dlpack.py)
trainers-env:
	tools/pinned.sh $(TRAINERS) trainers $(or $(PYTHON),python3.12)

.PHONY: cross
cross: ## whether the command compiles for the other platforms
	for platform in linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do \
		echo $$platform; CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) build -o /dev/null ./cmd/chaski || exit 1; \
	done

.PHONY: mutants
MUTANTS ?= -n 60 chunk einops shuffle stats tiff rumi
mutants: ## which small changes of the core no test sees; an hour. MUTANTS='-n 20 -tests ./loader loader/pixels' picks
	$(GO) run ./tools/mutants $(MUTANTS)

.PHONY: peers
peers: build ## side by side with other loaders, into .peers/report; hours, see docs/benchmarks.md
	python3 bench/peers/run.py --work .peers/work -o .peers/report $(if $(PYTHON),--python $(PYTHON))

.PHONY: bench-arrays
bench-arrays: ## TileDB arrays side by side with TileDB's own library: a table, in about a minute
	@$(or $(PYTHON),python3) tools/bench_arrays.py $(if $(ROUNDS),--rounds $(ROUNDS))

.PHONY: notebooks
notebooks: build env ## executes the tutorials of docs/tutorials as notebooks; NOTEBOOKFLAGS=--write stores their outputs
	tools/pinned.sh .notebooks-env notebooks $(PY)
	PYTHONPATH=$$(echo .notebooks-env/lib/python*/site-packages) $(PY) tools/notebooks.py $(NOTEBOOKFLAGS)

.PHONY: site
site: ## .site: the documentation as a site, with the references of Python and of the command; strict
	tools/site.sh $(PYTHON)

# A container image without a daemon. ko compiles the command for both platforms and puts it on the base of .ko.yaml.
KO ?= $(GO) run github.com/google/ko@v0.19.1
.PHONY: image
image: ## dist/image: the container image as an OCI layout, for amd64 and arm64; IMAGE=registry/name pushes it. Needs the registry of its base
	VERSION=$(VERSION) KO_DOCKER_REPO=$(or $(IMAGE),chaski) $(KO) build ./cmd/chaski --bare --tags=$(VERSION:v%=%) \
	  --image-user=65532 $(if $(IMAGE),,--push=false --oci-layout-path=dist/image)

.PHONY: release-snapshot
release-snapshot: ## dist: all that a release publishes, built twice and checked; needs Python 3.11, and no network the second time
	TAGS=$(TAGS) tools/release.sh $(PYTHON)

.PHONY: clean
clean: ## remove everything that was built, except .venv
	rm -rf bin dist .demo .peers .wheel .site .site-env .release .release-env .notebooks-env .frameworks-env python/THIRD-PARTY-NOTICES.txt
