#!/usr/bin/env bash
# Runs one of the long tests of `make soak`, which take hours.
#
#   tools/soak.sh training   training with kills, steps that must leak nothing, histories with a ledger, trainers of
#                            others killed; needs .venv and Python 3.12
#   tools/soak.sh hostile    damaged OpenZL frames, tries to get in, then attacks on a server in a memory cgroup of 1 GiB
#   tools/soak.sh cache      engines that share a cache on disk and are killed
#   tools/soak.sh go         all Go tests and all their cases, with the race detector, and without assembly and unsafe
#   tools/soak.sh specs      random specs against rasterio and numpy
#   tools/soak.sh disk       power cuts while the command writes to a small disk in a file; needs root on Linux
#   tools/soak.sh fleet      hosts in network namespaces whose servers die, refuse, join and move, and the plan of a
#                            fleet beside what it reaches; needs root on Linux
#
# SOAKTIME    time of the first part of training, default 10m
# SOAKSTEPS   steps of training that must leak nothing, default 1000000
# SOAKKILLS   kills of each trainer of training (default 30) and of engines of cache (default 300)
# SOAKCOUNT   damaged frames of hostile, default 5000000
# INTRUDERS   tries of each kind to get in, of hostile, default 100000
# SOAKSPECS   random specs, default 10000
# SOAKSTORES  random stores of arrays, default 500
# SOAKFLAGS   flags of tools/soak.py, tools/soak_hostile.py, tools/soak_disk.py or tools/soak_fleet.py, such as
#             --only histories
# PYTHON      Python 3.12 or newer, of hostile, which makes an environment from it, and of disk
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
python=${PYTHON:-python3}
venv=.venv/bin/python
export CHASKI_BIN=$PWD/bin/chaski PYTHONPATH=$PWD/python/src
read -ra flags <<< "${SOAKFLAGS-}"

demo() { [ -d .demo/train ] || "$go" run ./examples/demo-dataset; }

case ${1-} in
  training)
    demo
    $venv tools/soak.py --time "${SOAKTIME:-10m}" --steps "${SOAKSTEPS:-1000000}" "${flags[@]}"
    CHASKI_SOAK_LEDGER=10000 "$go" test ./loader/ledger ./shuffle -run 'TestSimulatedHistories|TestElasticHistories' \
      -timeout 2h
    CHASKI_SOAK_LEDGER=100 $venv -m pytest -q python/tests/test_ledger.py
    CHASKI_SOAK_KILLS=${SOAKKILLS:-30} $venv -m pytest -q python/tests/test_scores.py -k killed
    CHASKI_SOAK_KILLS=${SOAKKILLS:-30} CHASKI_SOAK_FORMS='plain views weights scores' \
      tools/trainers.sh python/tests/test_exact_resume.py
    ;;
  hostile)
    "$python" tools/interop.py --soak "${SOAKCOUNT:-5000000}"
    CHASKI_SOAK_INTRUDERS=${INTRUDERS:-100000} "$go" test ./grpc/server ./source -v -timeout 2h \
      -run 'TestStrangers|TestOtherTenants|TestLinksToAnotherTenant|TestHostileStreams|TestExchangedLinks|TestBelowExchanged'
    demo
    $venv tools/soak_hostile.py "${flags[@]}"
    ;;
  cache)
    CHASKI_SOAK_CACHE=${SOAKKILLS:-300} "$go" test ./source/diskcache -run TestKilledEngines -v -timeout 2h
    ;;
  go)
    export CHASKI_SOAK_CASES=1
    PACKAGES=./... SHORT='' tools/go_test.sh race
    PACKAGES=./... SHORT='' tools/go_test.sh variants
    ;;
  specs)
    CHASKI_RANDOM_SPECS=${SOAKSPECS:-10000} $venv -m pytest -q python/tests/test_random_specs.py
    CHASKI_RANDOM_STORES=${SOAKSTORES:-500} $venv -m pytest -q python/tests/test_cf.py
    ;;
  disk)
    demo
    "$python" tools/soak_disk.py "${flags[@]}"
    ;;
  fleet)
    "$go" build -o bin/slowstore ./tools/slowstore
    $venv tools/soak_fleet.py --store bin/slowstore --only cut refuse join move world "${flags[@]}"
    $venv tools/soak_fleet.py --store bin/slowstore --only plan --chips 8192 "${flags[@]}"
    ;;
  *)
    sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
