package columns_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/ops/columns"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tables"
)

const containers = "../../testdata/containers/"

// manifest returns what is known of the histograms of a container: the SHA-256 of the counts of each component, which
// numpy.histogram made from the pixels.
func manifest(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(containers + "manifest.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line struct {
			Type, Path any
			Histogram  struct {
				Counts map[string]string `json:"sha256_of_counts_le_u32"`
			}
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Type == "case" && line.Path == path {
			return line.Histogram.Counts
		}
	}
	t.Fatalf("no %s: %v", path, lines.Err())
	return nil
}

// streamedAgain writes a streaming TACO again, with columns and histograms computed anew.
func streamedAgain(t *testing.T, d *taco.Dataset, path string, workers int) {
	t.Helper()
	c, err := columns.Parse("stac,stats")
	if err != nil {
		t.Fatal(err)
	}
	c.Old, c.Workers = true, workers
	files := &source.Files{}
	defer files.Close()
	about, err := build.CollectionOf(d)
	if err != nil {
		t.Fatal(err)
	}
	o := build.Options{Opener: files,
		Inspect: c.Inspect,
		Histograms: func(ctx context.Context, levels []build.Level) ([]build.Histogram, error) {
			return c.Histograms(ctx, files, levels)
		}}
	if _, err := build.Export(t.Context(), d, nil, *about, path, o); err != nil {
		t.Fatal(err)
	}
}

// TestAStreamingTacoIsMadeAgain: a streaming TACO of the corpus that is written again has the statistics and histograms
// that numpy computed for it, whatever the number of workers.
func TestAStreamingTacoIsMadeAgain(t *testing.T) {
	const name = "taco-v1/stream_n1.taco"
	files := &source.Files{}
	defer files.Close()
	want, err := taco.Open(t.Context(), files, []string{containers + name}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	var paths []string
	for _, workers := range []int{1, 5} {
		paths = append(paths, filepath.Join(t.TempDir(), "a.taco"))
		streamedAgain(t, want, paths[len(paths)-1], workers)
	}
	a, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(paths[1]); err != nil || string(a) != string(b) {
		t.Errorf("five workers write something else than one: %v", err)
	}
	got, err := taco.Open(t.Context(), files, paths[:1], taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	for path, hash := range manifest(t, name) {
		e, err := got.Resolve(t.Context(), "histogram/"+path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := raster.Read(t.Context(), []string{paths[0] + "::histogram/" + path}, raster.ReadOptions{
			Options: resources.Options{Opener: files}})
		if err != nil {
			t.Fatal(e, err)
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(r.Data)); sum != hash || r.Shape[2] != 100 {
			t.Errorf("%s has other counts, of shape %v", path, r.Shape)
		}
		r.Release()
	}
	for _, name := range []string{"stats:mean", "stats:min", "stats:max", "stats:std", "stac:tensor_shape"} {
		compareLists(t, name, got, want)
	}
}

// compareLists compares a column of lists of the samples of level 1, which both list in one order.
func compareLists(t *testing.T, name string, got, want *taco.Dataset) {
	t.Helper()
	var columns [2]*tables.Vector
	var rows [2][]int
	for i, d := range []*taco.Dataset{got, want} {
		table, err := d.Level(t.Context(), 1)
		if err == nil {
			columns[i], err = table.Column(t.Context(), name)
		}
		if err == nil {
			rows[i], err = d.Visible(t.Context(), 1)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(rows[0]) != len(rows[1]) || len(rows[0]) == 0 {
		t.Fatalf("%d rows, want %d", len(rows[0]), len(rows[1]))
	}
	for k := range rows[0] {
		a, b := numbersOf(columns[0], rows[0][k]), numbersOf(columns[1], rows[1][k])
		for i := range b {
			if len(a) != len(b) || math.Abs(a[i]-b[i]) > 1e-9*math.Abs(b[i]) {
				t.Errorf("%s of row %d is %v, want %v", name, k, a, b)
				break
			}
		}
	}
}

// numbersOf returns a list of numbers.
func numbersOf(v *tables.Vector, row int) (out []float64) {
	child, lo, hi := v.List(row)
	for i := lo; i < hi; i++ {
		if child.Kind() == tables.Float64 {
			out = append(out, child.Float(i))
		} else {
			out = append(out, float64(child.Int(i)))
		}
	}
	return out
}
