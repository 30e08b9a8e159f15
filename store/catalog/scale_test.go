package catalog_test

import (
	"bufio"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/internal/rowio"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// TestOpenIsLazy promises that the memory of opening a catalog does not grow with its rows.
func TestOpenIsLazy(t *testing.T) {
	race.SkipCovered(t)
	// The first collection moves what pools hold to where the second one finds it.
	collect := func() { runtime.GC(); runtime.GC(); runtime.GC() }
	live := func(n int) (after uint64, tab *catalog.Table) {
		data, _ := synthetic(t, n)
		collect()
		var before, m runtime.MemStats
		runtime.ReadMemStats(&before)
		tab = folder.Open(t, "c.parquet", catalog.Options{Opener: folder.Memory{Name: "c.parquet", Data: data}})
		collect()
		runtime.ReadMemStats(&m)
		runtime.KeepAlive(data)
		return max(m.HeapAlloc, before.HeapAlloc) - before.HeapAlloc, tab
	}
	small, a := live(5000)
	large, b := live(40000)
	if large > small+1<<20 {
		t.Errorf("%d bytes stay for 5,000 rows, %d for 40,000", small, large)
	}
	if a.Len() != 5000 || b.Len() != 40000 {
		t.Error("rows are missing")
	}
}

// TestScale measures, with CHASKI_SCALE_ROWS=1000000, what a catalog of that many rows costs in a process of its own
// (go test -run TestScale -v). The limits are those promised for 10⁶ rows.
func TestScale(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("CHASKI_SCALE_ROWS"))
	if n == 0 {
		t.Skip("CHASKI_SCALE_ROWS is not set")
	}
	file := os.Getenv("CHASKI_SCALE_FILE") // kept between runs, so that writing does not count as memory
	if file == "" {
		file = filepath.Join(t.TempDir(), "c.parquet")
	}
	if _, err := os.Stat(file); err != nil {
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		options := rowio.RowOptions{Workers: 2, Folders: map[string]rowio.Folder{"uri": {Path: "tiles/"}}}
		rows := rowio.Source{Make: func(_ context.Context, i int) (rowio.Row, error) { return syntheticRow(i), nil }}
		if _, err := rowio.Write(context.Background(), f, n, options, rows); err != nil {
			t.Fatal(err)
		}
		st, _ := f.Stat()
		t.Logf("wrote %d rows, %d bytes in %v, peak RSS %d MB", n, st.Size(), time.Since(start), peakRSS(t)>>20)
		f.Close()
		debug.FreeOSMemory()
	}
	start := time.Now()
	tab := folder.Open(t, file, catalog.Options{})
	took, rss := time.Since(start), peakRSS(t)
	t.Logf("opened %d rows in %v, peak RSS %d MB", tab.Len(), took, rss>>20)
	if took > 3*time.Second {
		t.Errorf("opening took %v", took)
	}
	if rss > 600<<20 {
		t.Errorf("peak RSS of %d bytes", rss)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	const reads = 20000
	start = time.Now()
	for range reads {
		if _, err := tab.Asset(t.Context(), 0, rng.Int64N(tab.Len())); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("Asset at random: %v a call, peak RSS %d MB", time.Since(start)/reads, peakRSS(t)>>20)
	start = time.Now()
	for row := range int64(reads) {
		if _, err := tab.Asset(t.Context(), 0, row); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("Asset in order: %v a call", time.Since(start)/reads)
}

// peakRSS returns the most memory this process has had, in bytes (Linux).
func peakRSS(t testing.TB) int64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if v, ok := strings.CutPrefix(s.Text(), "VmHWM:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			return kb << 10
		}
	}
	t.Skip("no VmHWM")
	return 0
}

// BenchmarkAsset reads rows at random, of the file that CHASKI_SCALE_FILE names if it is set.
func BenchmarkAsset(b *testing.B) {
	var tab *catalog.Table
	if file := os.Getenv("CHASKI_SCALE_FILE"); file != "" {
		tab = folder.Open(b, file, catalog.Options{})
	} else {
		data, _ := synthetic(b, 100_000)
		tab = folder.Open(b, "c.parquet", catalog.Options{Opener: folder.Memory{Name: "c.parquet", Data: data},
			CacheBytes: 4 << 20})
	}
	rng := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tab.Asset(context.Background(), 0, rng.Int64N(tab.Len())); err != nil {
			b.Fatal(err)
		}
	}
}
