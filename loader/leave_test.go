package loader_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// lines writes a file of a head, n lines and an end.
func lines(t *testing.T, path, head string, n int, line func(i int) string, end string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	fmt.Fprint(w, head)
	for i := range n {
		fmt.Fprint(w, line(i))
	}
	fmt.Fprint(w, end)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

// manyChips links one small raster under n names.
func manyChips(t *testing.T, dir string, n int) {
	t.Helper()
	first := filepath.Join(dir, "chips", "00000.tif")
	writeRaster(t, first, make([]byte, 256), 16, 32630, [6]float64{500000, 10, 0, 4600000, 0, -10})
	for i := range n - 1 {
		if err := os.Link(first, filepath.Join(dir, "chips", fmt.Sprintf("%05d.tif", i+1))); err != nil {
			t.Fatal(err)
		}
	}
}

// largeOpenings returns specs whose openings take some tenths of a second, by what is opened.
func largeOpenings(t *testing.T, n int) map[string]loader.Spec {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	manyChips(t, dir, n/10)
	lines(t, file("t.csv"), "image,cloud,datetime,geometry\n", 4*n, func(i int) string {
		return fmt.Sprintf("chips/00000.tif,%d,2024-01-%02dT00:00:00Z,POINT (%d %d)\n", i%100, 1+i%28, i%180, i%90)
	}, "")
	lines(t, file("items.ndjson"), "", n, func(i int) string {
		return fmt.Sprintf(`{"type":"Feature","id":"%d","properties":{"datetime":"2024-01-01T00:00:00Z","x":%d},`+
			`"assets":{"image":{"href":"chips/00000.tif","type":"image/tiff"}}}`+"\n", i, i)
	}, "")
	lines(t, file("shapes.geojson"), `{"type":"FeatureCollection","features":[`, 2*n, func(i int) string {
		x, comma := float64(i%1000)/1000, ","
		if i == 2*n-1 {
			comma = ""
		}
		return fmt.Sprintf(`{"type":"Feature","properties":{"v":%d},"geometry":{"type":"Polygon","coordinates":`+
			`[[[%g,1],[%g,1],[%g,2],[%g,1]]]}}%s`, i%9, x, x+1, x, x, comma)
	}, "]}")
	if err := os.Mkdir(file("many.zarr"), 0o755); err != nil {
		t.Fatal(err)
	}
	lines(t, file("many.zarr/zarr.json"), `{"zarr_format":3,"node_type":"group","consolidated_metadata":{`+
		`"kind":"inline","metadata":{"g":{"zarr_format":3,"node_type":"group"}`, n/4, func(i int) string {
		return fmt.Sprintf(`,"g/%d":{"zarr_format":3,"node_type":"array","shape":[16,16],"data_type":"uint8",`+
			`"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[8,8]}},"chunk_key_encoding":{`+
			`"name":"default"},"fill_value":0,"codecs":["bytes"],"dimension_names":["y","x"]}`, i)
	}, "}}}")
	var catalog bytes.Buffer
	if _, err := build.Write(t.Context(), &catalog, []string{file("chips")}, build.Options{Base: dir}); err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, file("chips.parquet"), catalog.Bytes())
	chips := func(f ...loader.Field) loader.Spec {
		return loader.Spec{Source: file("chips"), BatchSize: 1, Fields: append([]loader.Field{{Name: "image"}}, f...)}
	}
	ground := chips()
	ground.Sampler = loader.Sampler{Kind: spec.GeoWindow,
		GeoWindows: spec.GeoWindows{SizeM: 160, Resolution: 10, Edge: true}}
	grid := chips()
	grid.Sampler = loader.Sampler{Kind: spec.GridWindow, Height: 8, Width: 8}
	out := map[string]loader.Spec{
		"a directory": chips(), "windows on the ground": ground, "windows of a grid": grid,
		"a Zarr group": {Source: file("many.zarr"), BatchSize: 1,
			Fields: []loader.Field{{Name: "image", Column: "g"}}},
		"a catalog": {Source: file("chips.parquet"), BatchSize: 1},
		"GeoJSON":   chips(loader.Field{Name: "s", Vector: &spec.Vector{Path: file("shapes.geojson")}}),
	}
	for name, path := range map[string]string{"CSV": "t.csv", "items of STAC": "items.ndjson"} {
		s := chips()
		s.Source = file(path)
		if name == "CSV" {
			s.Where = []loader.Condition{{Column: "cloud", Op: "<", Value: []byte("50")}}
		}
		out[name] = s
	}
	return out
}

// allocated returns how many bytes the process has allocated so far. Unlike time, they do not depend on the machine.
func allocated() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc) //nolint:gosec // below 2^63
}

// TestOpeningsEndWithTheirCaller promises that an opening stops soon after its caller left, at whatever moment: it
// allocates at most an eighth of what an opening allocates, and 4 MiB for what is read and parsed in one piece.
func TestOpeningsEndWithTheirCaller(t *testing.T) {
	n := 20_000
	if race.Enabled {
		n = 4_000
	}
	if testing.Short() {
		n = 1_000
	}
	rnd := rand.New(rand.NewPCG(4, 5))
	for name, s := range largeOpenings(t, n) {
		t.Run(name, func(t *testing.T) {
			start, before := time.Now(), allocated()
			e, err := loader.Open(t.Context(), s, loader.Options{Workers: 2})
			if err != nil {
				t.Fatal(err)
			}
			took, whole := time.Since(start), allocated()-before
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			t.Logf("opens in %v, with %d KiB", took, whole>>10)
			for range 4 {
				ctx, cancel := context.WithCancel(t.Context())
				var left atomic.Int64
				timer := time.AfterFunc(time.Duration(rnd.Float64()*float64(took)), func() {
					cancel()
					left.Store(allocated())
				})
				e, err := loader.Open(ctx, s, loader.Options{Workers: 2})
				end := allocated()
				timer.Stop()
				cancel()
				since := left.Load() // after end, if the caller leaves just now
				if err == nil {      // it was complete already, or nearly so
					err = e.Close()
				} else if errors.Is(err, context.Canceled) {
					err = nil
				}
				if err != nil {
					t.Errorf("a caller that left gets %v", err)
				}
				if since == 0 {
					continue
				}
				t.Logf("allocated %d KiB", (end-since)>>10)
				if end-since > whole/8+4<<20 {
					t.Errorf("it allocated %d KiB after its caller left, of %d", (end-since)>>10, whole>>10)
				}
			}
		})
	}
}
