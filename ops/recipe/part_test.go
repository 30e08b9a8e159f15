package recipe_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/ops/recipe"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// unsynced lets files be synced without the disk: what is here is about bytes, not about kills.
func unsynced(t testing.TB) {
	t.Cleanup(durable.Inject(func(*os.File) error { return nil }, os.Rename))
}

func parsed(t testing.TB, text string) *recipe.Recipe {
	t.Helper()
	r, err := recipe.Parse([]byte(head + text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// opened opens a recipe until the end of the test.
func opened(t testing.TB, r *recipe.Recipe, o recipe.Options) *recipe.Maker {
	t.Helper()
	m, err := recipe.Open(t.Context(), r, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// parts makes a recipe in n parts, by turns on one and on two workers.
func parts(t testing.TB, r *recipe.Recipe, dir string, n int64) (out []*recipe.Part) {
	t.Helper()
	var makers [2]*recipe.Maker
	for i := range makers {
		makers[i] = opened(t, r, recipe.Options{Base: dir, Loader: loader.Options{Workers: 1 + i}})
	}
	windows := makers[0].Extent().Windows
	for i := range n {
		first, end := windows*i/n, windows*(i+1)/n
		var b bytes.Buffer
		if err := makers[i%2].WritePart(t.Context(), &b, first, end-first); err != nil {
			t.Fatal(err)
		}
		out = append(out, partOf(first, end-first, b.Bytes()))
	}
	return out
}

func partOf(first, count int64, b []byte) *recipe.Part {
	return &recipe.Part{First: first, Count: count, Body: io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))}
}

func joined(t testing.TB, r *recipe.Recipe, out string, parts []*recipe.Part,
	o recipe.Options) (*recipe.Result, error) {
	t.Helper()
	return opened(t, r, o).Merge(t.Context(), out, func(yield func(*recipe.Part, error) bool) {
		for _, p := range parts {
			if !yield(p, nil) {
				return
			}
		}
	})
}

// TestPartsAreOneContainer: parts of any number of windows, also of none that becomes a chip, give the bytes, the
// statistics and the counts of one run: with windows that are drawn twice and so have numbered ids, samples that cannot
// be read, pairs that do not lie together, chips of nodata, columns of the source, splits, and without statistics.
func TestPartsAreOneContainer(t *testing.T) {
	race.SkipCovered(t)
	unsynced(t)
	dir := scenes(t, 4)
	scene(t, filepath.Join(dir, "msk", "s1.tif"), 3, 1, side/2, 20) // at the place of another scene
	for _, sub := range []string{"img", "msk"} {
		if err := os.WriteFile(filepath.Join(dir, sub, "s2a.tif"), []byte("II*\x00"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	table := "id,path,cover,day\n"
	for k := range 4 {
		table += fmt.Sprintf("\"scene %d\",img/s%d.tif,%d.5,2024-05-0%d\n", k, k, k, k+1)
	}
	if err := os.WriteFile(filepath.Join(dir, "table.csv"), []byte(table), 0o666); err != nil {
		t.Fatal(err)
	}
	left := "quality: {max_nodata: 0.2, fields: [image], pairs: drop}\nbad_samples: skip\n"
	random := strings.Replace(pairs, "kind: grid, size: 40, stride: 30",
		"kind: random, size: 98, per_file: 9, seed: 5", 1)
	for name, text := range map[string]string{
		"pairs":  pairs + left,
		"random": random + left + "split: {by: place, cell: 0.001, shares: {a: 1, b: 1}}\n",
		"table": "source: table.csv\nwindows: {kind: grid, size: 50, pad: true, stride: 30}\ncolumns: [\"*\"]\n" +
			"fields: [{name: image, column: path, codec: {level: 3}}]\n" +
			"split: {by: column, column: day, shares: {a: 1, b: 1}}\n",
		"plain": "source: img/s0.tif\nwindows: {kind: grid, size: 40}\nstatistics: false\nindex: false\n",
	} {
		for file, output := range map[string]recipe.Output{"out.tacozip": {}, "folder": {},
			"parts": {PartBytes: 4000}} {
			if testing.Short() && name != "pairs" && file != "out.tacozip" {
				continue // the race detector sees the same workers for every form of a recipe
			}
			r := parsed(t, text)
			one := filepath.Join(t.TempDir(), file)
			res, err := recipe.Make(t.Context(), r, one, recipe.Options{Base: dir, Output: output})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if name == "pairs" && (res.Bad == 0 || res.Misplaced == 0 || res.Empty == 0) {
				t.Fatalf("%+v", res)
			}
			for _, n := range []int64{1, 3, res.Windows} {
				if testing.Short() && n > 3 || file != "out.tacozip" && n != 3 {
					continue
				}
				all := parts(t, r, dir, n)
				out := filepath.Join(t.TempDir(), file)
				again, err := joined(t, r, out, all, recipe.Options{Base: dir, Output: output})
				if err != nil {
					t.Fatalf("%s in %d parts: %v", name, n, err)
				}
				if !sameTree(tree(t, out), tree(t, one)) {
					t.Errorf("%s %s in %d parts: other bytes", name, file, n)
				}
				if again.LeftOut() != res.LeftOut() || again.Result != res.Result {
					t.Errorf("%s in %d parts: %+v, want %+v", name, n, again, res)
				}
				if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) != 1 {
					t.Errorf("%s: it leaves %v (%v)", name, left, err)
				}
			}
		}
	}
}

// TestPartsInDisorder: parts that are missing, doubled or in another order are refused. Nothing is written.
func TestPartsInDisorder(t *testing.T) {
	dir := scenes(t, 2)
	r := parsed(t, "source: img\nwindows: {kind: grid, size: 50}\n")
	all := parts(t, r, dir, 4)
	out := filepath.Join(t.TempDir(), "out.tacozip")
	for name, some := range map[string][]*recipe.Part{
		"none": nil, "missing": {all[0], all[1], all[3]}, "the last": all[:3],
		"order": {all[1], all[0], all[2], all[3]},
		"twice": {all[0], all[0], all[1], all[2], all[3]},
	} {
		if _, err := joined(t, r, out, some, recipe.Options{Base: dir}); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := opened(t, r, recipe.Options{Base: dir}).WritePart(t.Context(), io.Discard, 5, 4); err == nil {
		t.Error("windows past the last")
	}
	if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v (%v)", left, err)
	}
}

// TestDamagedParts: a part with any byte changed or cut off is refused with a kind, or says the same.
func TestDamagedParts(t *testing.T) {
	race.SkipCovered(t)
	unsynced(t)
	dir := scenes(t, 1)
	r := parsed(t, "source: img\nwindows: {kind: grid, size: 50}\nsplit: {by: hash, shares: {a: 1}}\n")
	all := parts(t, r, dir, 1)
	good, err := io.ReadAll(all[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range 60 {
		b := bytes.Clone(good)
		what := rnd.IntN(len(b))
		if i%3 == 0 {
			b = b[:what]
		} else if i%3 == 1 {
			b[rnd.IntN(min(len(b), 1000))] = byte(rnd.IntN(256)) // where the types and the first chip are
		} else {
			b[what] ^= byte(1 << rnd.IntN(8))
		}
		out := filepath.Join(t.TempDir(), "out.tacozip")
		_, err := joined(t, r, out, []*recipe.Part{partOf(0, 4, b)}, recipe.Options{Base: dir})
		if err != nil && fault.KindOf(err) == 0 {
			t.Errorf("no kind: %v", err)
		}
	}
}

// FuzzPart: any part is refused with a kind, or is a container.
func FuzzPart(f *testing.F) {
	unsynced(f)
	dir := f.TempDir()
	scene(f, filepath.Join(dir, "s0.tif"), 0, 1, 20, 10)
	r := parsed(f, "source: s0.tif\n")
	good, err := io.ReadAll(parts(f, r, dir, 1)[0].Body)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		out := filepath.Join(t.TempDir(), "out.tacozip")
		_, err := joined(t, r, out, []*recipe.Part{partOf(0, 1, b)}, recipe.Options{Base: dir})
		if err != nil && fault.KindOf(err) == 0 {
			t.Errorf("no kind: %v", err)
		}
	})
}
