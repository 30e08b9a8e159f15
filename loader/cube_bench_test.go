package loader

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/internal/cputime"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// peer reads the same with the tiledb package on one core, and prints megabytes per second of
// processor time.
const peer = `
import sys, time, numpy, tiledb
one = tiledb.Ctx({"sm.compute_concurrency_level": "1", "sm.io_concurrency_level": "1"})
with tiledb.open(sys.argv[1], ctx=one) as a:
    n, b, h, w = a.shape
    side, rng = 256, numpy.random.default_rng(1)
    def read():
        if sys.argv[2] == "all":
            return a[:]
        i = rng.integers(n)
        if sys.argv[2] == "chips":
            return a[i]
        y, x = rng.integers(h - side + 1), rng.integers(w - side + 1)
        return a[i, :, y : y + side, x : x + side]
    size = lambda v: next(iter(v.values())).nbytes if isinstance(v, dict) else v.nbytes
    read()
    began, end, done = time.process_time(), time.monotonic() + 1, 0
    while time.monotonic() < end:
        done += size(read())
    print(done / 1e6 / (time.process_time() - began))
`

// BenchmarkArray reads the array that CHASKI_TILEDB_BENCH names (tools/bench_arrays.py makes
// it): all of it at once with a tiledb.Reader, and through an engine with one worker as whole
// chips and as random windows of 256 by 256 pixels. If CHASKI_ORACLE_PYTHON_TILEDB names a Python
// with the tiledb package, that reads the same in between.
func BenchmarkArray(b *testing.B) {
	path := os.Getenv("CHASKI_TILEDB_BENCH")
	if path == "" {
		b.Skip("no array in CHASKI_TILEDB_BENCH")
	}
	for name, s := range map[string]Sampler{
		"chips":   {},
		"windows": {Kind: spec.RandomWindow, Height: 256, Width: 256, PerAsset: 8},
	} {
		b.Run(name, func(b *testing.B) {
			e, err := Open(context.Background(), Spec{
				Source: path, BatchSize: 4, Sampler: s, Shuffle: s.Kind != "",
			}, Options{Workers: 1})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			bytes, step, began := 0, int64(0), cputime.Used().Seconds()
			for b.Loop() {
				p := e.Start(context.Background(), steps.Ticket{
					Epoch: uint64(step / e.Steps()), First: 4 * (step % e.Steps()), Count: 4, RowStride: 1,
				}, false)
				batch, err := p.Wait(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				bytes += len(batch.Tensors[0].Data)
				batch.Release()
				step++
			}
			b.SetBytes(int64(bytes) / int64(b.N))
			b.ReportMetric(float64(bytes)/1e6/(cputime.Used().Seconds()-began), "MB/cpu-s")
			besides(b, path, name)
		})
	}
	b.Run("all", func(b *testing.B) {
		a := openWritten(b, path)
		_, cells, err := a.Shape(a.Schema.Domain())
		if err != nil {
			b.Fatal(err)
		}
		dst, r := make([]byte, cells*a.Schema.Attrs[0].CellSize()), a.NewReader()
		b.SetBytes(int64(len(dst)))
		began := cputime.Used().Seconds()
		for b.Loop() {
			if err := r.DenseInto(context.Background(), dst, 0, a.Schema.Domain(), nil); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(dst))*float64(b.N)/1e6/(cputime.Used().Seconds()-began), "MB/cpu-s")
		besides(b, path, "all")
	})
}

// besides reports how fast the tiledb package reads the same.
func besides(b *testing.B, path, what string) {
	b.Helper()
	python := os.Getenv("CHASKI_ORACLE_PYTHON_TILEDB")
	if python == "" {
		return
	}
	out, err := exec.Command(python, "-c", peer, path, what).Output()
	if err != nil {
		b.Fatal(err)
	}
	rate, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(rate, "tiledb-MB/cpu-s")
}
