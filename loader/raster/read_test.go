package raster_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

func selection(s *corpus.Sel) raster.Selection {
	switch {
	case s == nil:
		return raster.Selection{}
	case s.Slice != nil:
		return raster.Selection{Slice: true, Start: s.Slice[0], Stop: s.Slice[1]}
	}
	return raster.Selection{List: s.List}
}

// TestReadAgainstTheOriginalReaders: the windows and stacks of the manifests have the hashes that
// the original readers computed, with several numbers of threads.
func TestReadAgainstTheOriginalReaders(t *testing.T) {
	t.Run("testdata", func(t *testing.T) {
		readAll(t, corpus.Manifest(t, filepath.Join(corpus.Testdata(t), "raster")))
	})
	t.Run("corpus", func(t *testing.T) { readAll(t, corpus.Raster(t)) })
}

func readAll(t *testing.T, files []corpus.File) {
	read := 0
	for _, f := range files {
		members := f.Members
		if f.Kind != "stack" {
			members = []string{f.Path}
		}
		if f.Kind != "stack" && f.Kind != "rumi" && f.Kind != "rumi-new" && f.Kind != "tiff" ||
			strings.HasPrefix(members[0], "rumi-new/v0.26") {
			continue
		}
		paths := make([]string, len(members))
		for i, m := range members {
			paths[i] = filepath.Join(f.Dir, m)
		}
		for i, w := range f.Reads {
			a, err := raster.Read(context.Background(), paths, raster.ReadOptions{
				Layout: w.Pattern, N: selection(w.N), B: selection(w.B), Y: selection(w.Y),
				X: selection(w.X), Threads: 1 + i,
			})
			if errors.Is(err, fault.Unsupported) && !f.TOG {
				continue // other codecs; which ones must work is the format packages' test
			}
			if err != nil {
				t.Errorf("%s read %d: %v", members[0], i, err)
				continue
			}
			sum := sha256.Sum256(a.Data)
			if !slices.Equal(a.Shape, w.Shape) || hex.EncodeToString(sum[:]) != w.SHA256 {
				t.Errorf("%s read %d (%s): shape %v, want %v, or other samples", members[0], i,
					w.Pattern, a.Shape, w.Shape)
			}
			read++
		}
	}
	if read < 10 {
		t.Errorf("only %d windows were read", read)
	}
}

func TestReadRefuses(t *testing.T) {
	tog := filepath.Join(corpus.Testdata(t), "raster", "tog", "tog-odd-16.tif") // (6, 33, 17) uint16
	slice := func(a, b int) raster.Selection { return raster.Selection{Slice: true, Start: a, Stop: b} }
	for name, c := range map[string]struct {
		paths []string
		o     raster.ReadOptions
		kind  fault.Kind
	}{
		"a file that is not there": {[]string{tog + ".not"}, raster.ReadOptions{}, fault.NotFound},
		"a folder":                 {[]string{filepath.Dir(tog)}, raster.ReadOptions{}, fault.Unsupported},
		"rows past the end":        {[]string{tog}, raster.ReadOptions{Y: slice(0, 34)}, fault.NotFound},
		"an empty slice":           {[]string{tog}, raster.ReadOptions{X: slice(3, 3)}, fault.NotFound},
		"a band that is not there": {[]string{tog}, raster.ReadOptions{B: raster.Selection{List: []int{6}}},
			fault.NotFound},
		"no bands": {[]string{tog}, raster.ReadOptions{B: raster.Selection{List: []int{}}},
			fault.NotFound},
		"a result over the limit": {[]string{tog}, raster.ReadOptions{MaxBytes: 100}, fault.Limit},
		"a row over the limit": {[]string{tog}, raster.ReadOptions{Options: loader.Options{MaxChunkBytes: 31}},
			fault.Limit},
		"outside of the roots": {[]string{tog},
			raster.ReadOptions{Options: loader.Options{Roots: []string{t.TempDir()}}}, fault.NotFound},
	} {
		_, err := raster.Read(context.Background(), c.paths, c.o)
		if fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want kind %v", name, err, c.kind)
		}
	}
	for path, want := range map[string]string{
		filepath.Join(corpus.Testdata(t), "coast", "coast.tacozip"):            "coast.tacozip::SAMPLE/PATH",
		filepath.Join(corpus.Testdata(t), "coast", "coast_dir"):                "coast_dir::SAMPLE/PATH",
		filepath.Join(corpus.Testdata(t), "README.md"):                         "not a TIFF",
		filepath.Join(corpus.Testdata(t), "tiledb", "arrays", "dense_1d_gaps"): "is a TileDB array",
	} {
		_, err := raster.Read(context.Background(), []string{path}, raster.ReadOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for name, o := range map[string]raster.ReadOptions{
		"a list of rows":   {Y: raster.Selection{List: []int{1}}},
		"an unknown axis":  {Layout: "b y z"},
		"a missing axis":   {Layout: "b y"},
		"a broken pattern": {Layout: "b (y x"},
		"a wrong size":     {Layout: "b (h p) x -> b h p x", Sizes: map[string]int{"p": 5}},
	} {
		if _, err := raster.Read(context.Background(), []string{tog}, o); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func ExampleRead() {
	chip := []string{"../../testdata/raster/tog/tog-odd-16.tif"}
	a, err := raster.Read(context.Background(), chip, raster.ReadOptions{
		Layout: "y x b",
		B:      raster.Selection{List: []int{3, 2, 1}},
		Y:      raster.Selection{Slice: true, Start: 8, Stop: 24},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a.Shape, a.DType, a.Axes)
	// Output: [16 17 3] uint16 [y x b]
}
