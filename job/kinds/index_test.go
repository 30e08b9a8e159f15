package kinds

import (
	"bytes"
	"context"
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
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/store/catalog/members"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// anyOrder does all shards in some order, some of them twice.
func anyOrder(t *testing.T, r *rand.Rand, j planned) {
	t.Helper()
	for _, i := range r.Perm(len(j.Shards)) {
		run(t, j, i, false)
		if r.IntN(3) == 0 {
			run(t, j, i, true)
		}
	}
}

// chips links n chips of the test data below a new directory. Names sort otherwise by bytes than by directories.
func chips(t testing.TB, n int) string {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		from, err := filepath.Abs(fmt.Sprintf("../../testdata/coast/coast_dir/DATA/tile_%02d/s2/img.tif", i%3))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, "chips", []string{"a", "a.b", "a/b", "b"}[i%4], fmt.Sprintf("%d.tif", i))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(from, to); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// catalogOf is the catalog of one pass.
func catalogOf(t testing.TB, paths []string, base string, absolute, skipBad bool) ([]byte, []string) {
	t.Helper()
	files := &source.Files{}
	defer files.Close()
	var skipped []string
	o := build.Options{Base: base, Absolute: absolute, Opener: files,
		Members: func(ctx context.Context, path string) ([]build.Member, error) { return members.Of(ctx, files, path) }}
	if skipBad {
		o.Skipped = func(_ string, err error) { skipped = append(skipped, "skipped: "+fault.Line(err)) }
	}
	var b bytes.Buffer
	if _, err := build.Write(t.Context(), &b, paths, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), skipped
}

// TestAnySplitIsOneCatalog: any number of shards, in any order, some of them twice, gives the bytes of the catalog that
// one pass writes: of directories and containers, with and without files that cannot be indexed.
func TestAnySplitIsOneCatalog(t *testing.T) {
	race.SkipCovered(t)
	dir := chips(t, 23)
	write(t, filepath.Join(dir, "chips", "b", "bad.tif"), []byte("no TIFF"))
	coast := "../../testdata/coast/"
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		paths    []string
		absolute bool
		shards   []int
	}{
		{[]string{filepath.Join(dir, "chips")}, false, []int{1, 5, 99}},
		{[]string{coast + "coast.tacozip", filepath.Join(dir, "chips", "**", "*.tif")}, true, []int{3}},
	} {
		want, skipped := catalogOf(t, c.paths, dir, c.absolute, true)
		notes := append(skipped, fmt.Sprintf("files skipped: %d", len(skipped)))
		for _, shards := range c.shards {
			j := plan(t, &Index{Paths: c.paths, Base: dir, Absolute: c.absolute, SkipBad: true}, shards)
			anyOrder(t, r, j)
			got, o, err := merge(t, j, filepath.Join(dir, "train.parquet"))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%d shards of %q: %d bytes, want %d, and the same", shards, c.paths, len(got), len(want))
			}
			if !slices.Equal(o.Notes, notes) || len(skipped) != 1 {
				t.Errorf("%d shards: notes %q, want %q", shards, o.Notes, notes)
			}
		}
	}
}

// TestIndexRefusals: a file that cannot be indexed ends its shard, nothing to index is not a job, and a catalog of
// relative paths is written where they are relative to.
func TestIndexRefusals(t *testing.T) {
	dir := chips(t, 4)
	k := &Index{Paths: []string{dir}, Base: dir}
	j := plan(t, k, 2)
	anyOrder(t, rand.New(rand.NewPCG(1, 2)), j)
	if _, _, err := merge(t, j, filepath.Join(t.TempDir(), "x.parquet")); !errors.Is(err, fault.Unsupported) {
		t.Errorf("%v, want unsupported", err)
	}
	write(t, filepath.Join(dir, "bad.tif"), nil)
	j = plan(t, k, 1)
	if err := j.Run(t.Context(), 0, job.RunOptions{Resource: options()}); !errors.Is(err, fault.Corrupt) {
		t.Errorf("%v, want corrupt", err)
	}
	k = &Index{Paths: []string{t.TempDir()}}
	if _, err := job.Plan(t.Context(), t.TempDir(), k, job.PlanOptions{}, options()); !errors.Is(err, fault.NotFound) {
		t.Errorf("%v, want not found", err)
	}
}

func mergeParts(t testing.TB, parts [][]byte) (int, error) {
	t.Helper()
	return build.MergeParts(t.Context(), io.Discard, func(yield func(*io.SectionReader, error) bool) {
		for _, p := range parts {
			if !yield(io.NewSectionReader(bytes.NewReader(p), 0, int64(len(p))), nil) {
				return
			}
		}
	}, build.Options{})
}

// TestJoinedAndResumed: a job with a table and an older catalog gives the bytes and the counts of one pass with both,
// and the shards take the rows of files that have not changed.
func TestJoinedAndResumed(t *testing.T) {
	dir := chips(t, 15)
	src, older := filepath.Join(dir, "chips"), filepath.Join(dir, "train.parquet")
	table := filepath.Join(dir, "table.csv")
	rows := "id,label\n"
	for i := range 12 {
		rows += fmt.Sprintf("%d,%d\n", i+1, i*i) // without 0, 13 and 14
	}
	write(t, table, []byte(rows+"99,0\n"))
	b, _ := catalogOf(t, []string{filepath.Join(src, "a"), filepath.Join(src, "b")}, dir, false, false)
	write(t, older, b)
	files := &source.Files{}
	defer files.Close()
	var n build.Counts
	var want bytes.Buffer
	_, err := build.Write(t.Context(), &want, []string{src}, build.Options{Base: dir, Opener: files, Counts: &n,
		Join: &build.Join{Table: table, On: "id", Left: true}, Previous: []string{older}})
	if err != nil || n.Unmatched != 3 || n.Unused != 1 || n.Reused == 0 {
		t.Fatalf("%+v, %v", n, err)
	}
	for _, shards := range []int{1, 4} {
		k := &Index{Paths: []string{src}, Base: dir, Previous: older,
			Join: &IndexJoin{Table: table, On: "id", Left: true}}
		j := plan(t, k, shards)
		anyOrder(t, rand.New(rand.NewPCG(1, 2)), j)
		got, o, err := merge(t, j, filepath.Join(dir, "new.parquet"))
		if err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%d shards: %d bytes, want %d: %v", shards, len(got), want.Len(), err)
		}
		notes := []string{"files without a row in " + table + ": 3", "rows of " + table + " without a file: 1"}
		if !slices.Equal(o.Notes, notes) {
			t.Errorf("%d shards: %q, want %q", shards, o.Notes, notes)
		}
	}
	k := &Index{Paths: []string{src}, Base: dir, Join: &IndexJoin{Table: table, On: "id"}}
	_, err = job.Plan(t.Context(), filepath.Join(t.TempDir(), "job"), k, job.PlanOptions{}, options())
	if !errors.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "and none for 2 more files") {
		t.Errorf("%v, want not found", err)
	}
}

// TestHostilePart: parts that are not catalogs, or whose rows are not in order, are refused.
func TestHostilePart(t *testing.T) {
	dir := chips(t, 6)
	var parts [][]byte
	for _, name := range []string{"a", "b"} {
		b, _ := catalogOf(t, []string{filepath.Join(dir, "chips", name)}, dir, false, false)
		parts = append(parts, b)
	}
	for name, c := range map[string][][]byte{
		"nothing": {nil}, "no catalog": {[]byte(strings.Repeat("x", 100))}, "order": {parts[1], parts[0]},
		"twice": {parts[0], parts[0]}, "torn": {parts[0][:len(parts[0])-9]},
	} {
		if _, err := mergeParts(t, c); fault.KindOf(err) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n, err := mergeParts(t, parts); err != nil || n < 4 {
		t.Errorf("%d rows, %v", n, err)
	}
}

// FuzzParts: any part is refused with a kind, or is a catalog.
func FuzzParts(f *testing.F) {
	dir := chips(f, 3)
	b, _ := catalogOf(f, []string{dir}, dir, false, false)
	f.Add(b)
	f.Add(b[:len(b)-9])
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := mergeParts(t, [][]byte{b}); err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("no kind: %v", err)
		}
	})
}
