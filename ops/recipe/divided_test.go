package recipe_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/ops/recipe"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// contents are the ids of a container's samples with the bytes of their files, in order.
func contents(t *testing.T, path string) (all []string) {
	t.Helper()
	files := &source.Files{}
	defer files.Close()
	samples(t, path, func(ctx context.Context, d *taco.Dataset, row int) {
		e, err := d.EntryAt(ctx, 0, row)
		if err != nil {
			t.Fatal(err)
		}
		r, err := files.Open(ctx, e.URI)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		b := make([]byte, e.Size)
		if err := r.ReadAt(ctx, b, e.Offset); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %x", e.ID, b))
	})
	return all
}

// TestDividedContainer: the parts of a container, by size, have the samples of the container that is one
// ZIP, in its order, and each is a container with its share of them. So has the folder, by its index.
func TestDividedContainer(t *testing.T) {
	unsynced(t)
	dir := scenes(t, 2)
	text := "source: img\nwindows: {kind: grid, size: 20}\nfields: [{codec: {level: 3}}]\n"
	zip, _, err := create(t, dir, text, 2)
	if err != nil {
		t.Fatal(err)
	}
	want := contents(t, zip) // 50 chips
	chip := int64(len(want[0]) / 2)
	for name, c := range map[string]struct {
		output recipe.Output
		parts  int
		most   int64 // bytes of a part's files
	}{
		"size": {recipe.Output{PartBytes: 12 * chip}, 5, 12 * chip},
	} {
		out := filepath.Join(t.TempDir(), name)
		res, err := recipe.Make(t.Context(), parsed(t, text), out, recipe.Options{Base: dir, Output: c.output})
		if err != nil || res.Samples != 50 || res.Windows != 50 {
			t.Fatalf("%s: %+v, %v", name, res, err)
		}
		if have := contents(t, out); !slices.Equal(have, want) {
			t.Errorf("%s: %d samples by the index, want %d, and the same", name, len(have), len(want))
		}
		zips, err := filepath.Glob(filepath.Join(out, "*.tacozip"))
		if err != nil || len(zips) < c.parts || len(zips) > c.parts+1 {
			t.Errorf("%s: the parts are %v (%v)", name, zips, err)
		}
		var all []string
		for _, zip := range zips {
			part, size := contents(t, zip), int64(0)
			for _, s := range part {
				size += int64(len(s)-strings.Index(s, " ")-1) / 2
			}
			if size > c.most {
				t.Errorf("%s: %s has %d bytes", name, zip, size)
			}
			all = append(all, part...)
		}
		if !slices.Equal(all, want) {
			t.Errorf("%s: %d samples of all parts, want %d, and the same", name, len(all), len(want))
		}
	}
}

// TestDividedAgain: a folder that is there is refused before the work.
func TestDividedAgain(t *testing.T) {
	dir, out := scenes(t, 1), t.TempDir()
	text := "source: img\nwindows: {kind: grid, size: 20}\n"
	_, err := recipe.Make(t.Context(), parsed(t, text), out, recipe.Options{Base: dir,
		Output: recipe.Output{PartBytes: 4000}, Progress: func(int64, int64) { t.Error("a window is made") }})
	if !errors.Is(err, fault.Unsupported) {
		t.Error(err)
	}
}

// TestOlderForms: a Tortilla, a streaming and a plain TACO 0.2 have the samples of the ZIP, and the bytes do not depend
// on workers. The histograms of the streaming one count each valid pixel.
func TestOlderForms(t *testing.T) {
	race.SkipCovered(t)
	unsynced(t)
	dir := scenes(t, 2)
	text := strings.Replace(pairs, `{format: rumi, graph: "delta>zstd", level: 3}`, "{level: 3}", 1)
	zip, _, err := create(t, dir, text, 2)
	if err != nil {
		t.Fatal(err)
	}
	want := leaves(t, zip)
	r := parsed(t, text)
	r.Collection["curators"] = json.RawMessage(`[{"name": "Ana"}]`)
	for name, form := range map[string]build.Form{"a.taco": build.Auto, "b.taco": build.PlainTaco,
		"c.tortilla": build.Auto} {
		if testing.Short() && form == build.PlainTaco {
			continue // the goroutines are those of a Tortilla
		}
		var first []byte
		for _, o := range []recipe.Options{{Loader: loader.Options{Workers: 1}}, {}} {
			o.Base, o.Form = dir, form
			out := filepath.Join(t.TempDir(), name)
			if _, err := recipe.Make(t.Context(), r, out, o); err != nil {
				t.Fatal(err)
			}
			if have := leaves(t, out); !slices.Equal(have, want) {
				t.Errorf("%s: %d files, want %d", name, len(have), len(want))
			}
			b, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = b
			}
			if !bytes.Equal(b, first) {
				t.Errorf("%s: other bytes", name)
			}
			if name == "a.taco" {
				countHistogram(t, out+"::histogram/mask")
			}
		}
	}
}

// leaves are the paths of a container's files with their hashes, in order, without histograms.
func leaves(t *testing.T, path string) (all []string) {
	t.Helper()
	samples(t, path, func(ctx context.Context, d *taco.Dataset, row int) {
		top, err := d.Entry(ctx, 0, row)
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range d.LeavesOf(ctx, top, false) {
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(e.URI)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprintf("%s %x", e.Path, sha256.Sum256(b[e.Offset:][:e.Size])))
		}
	})
	return all
}

// countHistogram checks the histograms of the masks of pairs, which are 20 by 20 pixels, of which those of the first 10
// rows of a scene are nodata.
func countHistogram(t *testing.T, path string) {
	t.Helper()
	a, err := raster.Read(t.Context(), []string{path}, raster.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for i := 0; i < len(a.Data); i += 4 {
		sum += int(binary.LittleEndian.Uint32(a.Data[i:]))
	}
	// Windows begin at rows 0, 15 and 30 of the masks.
	if want := 2 * 3 * (10 + 20 + 20) * 20; a.Shape[1] != 18 || sum != want {
		t.Errorf("%s: shape %v, %d pixels, want %d", path, a.Shape, sum, want)
	}
}

// TestOlderFormsRefused: what a TACO 0.2 lacks is refused before the work.
func TestOlderFormsRefused(t *testing.T) {
	dir := scenes(t, 1)
	r := parsed(t, pairs)
	for _, want := range []string{"curators is missing", "codec is rumi"} {
		out := filepath.Join(t.TempDir(), "x.taco")
		_, err := recipe.Make(t.Context(), r, out, recipe.Options{Base: dir,
			Progress: func(int64, int64) { t.Error(want) }})
		if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		r.Collection["curators"] = json.RawMessage(`[{"name": "Ana"}]`)
	}
}
