package catalog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/chaski-eo/chaski/store/catalog"
)

// BenchmarkNames opens a directory of 100,000 files, plainly and by patterns, and reports the processor time and what
// stays in memory of each file.
func BenchmarkNames(b *testing.B) {
	root := b.TempDir()
	for folder := range 100 {
		dir := filepath.Join(root, []string{"train", "val"}[folder%2], fmt.Sprintf("scene%02d", folder/2), "vv")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for file := range 1000 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d_x.tif", file)), nil, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, pattern := range []string{"", "{id}_x.tif", "{split}/{scene}/vv/{id}_x.tif"} {
		b.Run("pattern="+pattern, func(b *testing.B) {
			before, kept, n := processor(), int64(0), int64(0)
			for b.Loop() {
				held := heap()
				table, err := catalog.Open(b.Context(), root, []catalog.Source{{Field: "image", Pattern: pattern}},
					catalog.Options{})
				if err != nil {
					b.Fatal(err)
				}
				n, kept = table.Len(), heap()-held
				if err := table.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(processor()-before)/1e6/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(kept)/float64(n), "B/file")
		})
	}
}

// processor returns the processor time of the process in nanoseconds.
func processor() int64 {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return used.Utime.Nano() + used.Stime.Nano()
}

// heap returns the bytes that are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
