package kinds

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// pairsDir is a directory of n images and masks, and tables of them. Sample 1 has a mask that cannot be read, and the
// last one has no mask.
func pairsDir(t testing.TB, n int) string {
	t.Helper()
	dir := t.TempDir()
	table := "when,image,label,cover,name\n"
	for i := range n {
		tile, err := filepath.Abs(fmt.Sprintf("../../testdata/coast/coast_dir/DATA/tile_%02d", i%3))
		if err != nil {
			t.Fatal(err)
		}
		mask := fmt.Sprintf("masks/%d.tif", i)
		for to, from := range map[string]string{fmt.Sprintf("images/%d.tif", i): "s2/img.tif", mask: "ref/label.tif"} {
			to = filepath.Join(dir, to)
			err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.Symlink(filepath.Join(tile, from), to))
			if err != nil {
				t.Fatal(err)
			}
		}
		if i == n-1 {
			if err := os.Remove(filepath.Join(dir, mask)); err != nil {
				t.Fatal(err)
			}
			mask = ""
		}
		// Every third row is there twice, with other values.
		for k := range 1 + (i+2)%3/2 {
			table += fmt.Sprintf("2024-05-%02d,images/%d.tif,%s,%d.5,\"n %d\"\n", i+1, i, mask, i*k, i)
		}
	}
	bad := filepath.Join(dir, "masks", "1.tif")
	if err := os.Remove(bad); err != nil {
		t.Fatal(err)
	}
	write(t, bad, []byte("no TIFF"))
	write(t, filepath.Join(dir, "table.csv"), []byte(table))
	return dir
}

func imagesAndMasks(table bool) []IndexField {
	if table {
		return []IndexField{{Name: "image"}, {Name: "mask", Column: "label"}}
	}
	return []IndexField{{Name: "image", Pattern: "images/{id}.tif"}, {Name: "mask", Pattern: "masks/{id}.tif"}}
}

// pairsCatalog is the catalog of one pass, and what it left out.
func pairsCatalog(t testing.TB, path, base string, fields []IndexField) (b []byte, skipped []string, n build.Counts) {
	t.Helper()
	files := &source.Files{}
	defer files.Close()
	o := build.Options{Base: base, Opener: files, DropIncomplete: true, Counts: &n,
		Skipped: func(_ string, err error) { skipped = append(skipped, "skipped: "+fault.Line(err)) }}
	for _, f := range fields {
		o.Fields = append(o.Fields, catalog.Source{Field: f.Name, Pattern: f.Pattern, Column: f.Column})
	}
	var out bytes.Buffer
	if _, err := build.Write(t.Context(), &out, []string{path}, o); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), skipped, n
}

// TestAnySplitIsOneCatalogOfPairs: any number of shards, in any order, some of them twice, gives the bytes and the
// counts of the catalog of pairs that one pass writes: of patterns, and of a table with other columns and with files
// that several rows have.
func TestAnySplitIsOneCatalogOfPairs(t *testing.T) {
	race.SkipCovered(t)
	dir := pairsDir(t, 11)
	r := rand.New(rand.NewPCG(1, 2))
	for _, path := range []string{dir, filepath.Join(dir, "table.csv")} {
		fields := imagesAndMasks(path != dir)
		want, skipped, n := pairsCatalog(t, path, dir, fields)
		if len(skipped) == 0 || n.Incomplete == 0 {
			t.Fatalf("%q, %+v", skipped, n)
		}
		notes := append(skipped, fmt.Sprintf("files skipped: %d", len(skipped)),
			fmt.Sprintf("incomplete samples left out: %d", n.Incomplete))
		for _, shards := range []int{1, 4, 99} {
			j := plan(t, &Index{Paths: []string{path}, Base: dir, SkipBad: true,
				Pairs: &IndexPairs{Fields: fields, Drop: true}}, shards)
			anyOrder(t, r, j)
			got, o, err := merge(t, j, filepath.Join(dir, "train.parquet"))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d shards of %q: %d bytes, want %d, and the same: %v", shards, path, len(got), len(want),
					err)
			}
			if !slices.Equal(o.Notes, notes) {
				t.Errorf("%d shards: notes %q, want %q", shards, o.Notes, notes)
			}
		}
	}
}

// TestPairsRefusals: a sample without a file, options that do not go together, and a table that changed since the plan.
func TestPairsRefusals(t *testing.T) {
	dir := pairsDir(t, 5)
	table := filepath.Join(dir, "table.csv")
	planErr := func(k *Index) error {
		_, err := job.Plan(t.Context(), t.TempDir(), k, job.PlanOptions{}, options())
		return err
	}
	fields := imagesAndMasks(true)
	if err := planErr(&Index{Paths: []string{table}, Base: dir, Pairs: &IndexPairs{Fields: fields}}); !errors.Is(err,
		fault.NotFound) {
		t.Errorf("a sample without a mask: %v", err)
	}
	for name, k := range map[string]*Index{
		"no fields": {Paths: []string{table}, Pairs: &IndexPairs{}},
		"two paths": {Paths: []string{table, dir}, Pairs: &IndexPairs{Fields: fields}},
		"a join": {Paths: []string{table}, Pairs: &IndexPairs{Fields: fields},
			Join: &IndexJoin{Table: table, On: "name"}},
	} {
		if err := planErr(k); !errors.Is(err, fault.Unsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	j := plan(t, &Index{Paths: []string{table}, Base: dir, SkipBad: true,
		Pairs: &IndexPairs{Fields: fields, Drop: true}}, 2)
	anyOrder(t, rand.New(rand.NewPCG(1, 2)), j)
	b, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	write(t, table, []byte(strings.Replace(string(b), "images/3.tif", "images/0.tif", 1)))
	_, _, err = merge(t, j, "")
	if !errors.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "changed since") {
		t.Errorf("a table that changed: %v", err)
	}
}

// FuzzPairParts: any part of a catalog of pairs is refused with a kind, or is a catalog.
func FuzzPairParts(f *testing.F) {
	dir := pairsDir(f, 4)
	fields := imagesAndMasks(false)
	b, _, _ := pairsCatalog(f, dir, dir, fields)
	plain, _ := catalogOf(f, []string{filepath.Join(dir, "images")}, dir, false, false)
	f.Add(b)
	f.Add(b[:len(b)-9])
	f.Add(plain)
	k := &Index{Base: dir, Pairs: &IndexPairs{Fields: fields}}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := build.MergePairs(t.Context(), io.Discard, func(yield func(*io.SectionReader, error) bool) {
			yield(io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))), nil)
		}, dir, k.options(options()))
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("no kind: %v", err)
		}
	})
}
