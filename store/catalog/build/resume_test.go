package build_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	_ "github.com/chaski-eo/chaski/format/tables/text"
	_ "github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/store/catalog/internal/rowio"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// opened is an opener that records what is opened.
type opened struct {
	openers.Files
	mu    sync.Mutex
	names []string
}

func (o *opened) Open(ctx context.Context, uri string) (source.Reader, error) {
	o.mu.Lock()
	o.names = append(o.names, filepath.Base(uri))
	o.mu.Unlock()
	return o.Files.Open(ctx, uri)
}

// again writes a catalog beside an existing one with its rows, and returns the files that were opened.
func again(t *testing.T, dir, to string, o build.Options) (names []string, c build.Counts) {
	t.Helper()
	files := &opened{}
	defer files.Close()
	o.Opener, o.Counts, o.Base = files, &c, dir
	var b bytes.Buffer
	if _, err := build.Write(t.Context(), &b, []string{dir}, o); err != nil {
		t.Fatal(err)
	}
	folder.Write(t, to, b.String())
	slices.Sort(files.names)
	return files.names, c
}

// rowsOf returns the rows of a catalog by their URIs.
func rowsOf(t *testing.T, file string) map[string]rowio.Row {
	t.Helper()
	rows, err := parquet.ReadFile[rowio.Row](file)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]rowio.Row{}
	for _, r := range rows {
		m[r.URI] = r
	}
	return m
}

// TestResumeReadsWhatHasChanged promises that a catalog written again reads only new or changed files, and equals one
// written from scratch.
func TestResumeReadsWhatHasChanged(t *testing.T) {
	dir := folder.Of(t, "a.tif", "b.tif", "sub/c.tif", "d.tif", "e.tif")
	first := filepath.Join(dir, "first.parquet")
	if names, c := again(t, dir, first, build.Options{}); len(names) != 5 || c != (build.Counts{Rows: 5}) {
		t.Fatalf("%q, %+v", names, c)
	}
	old := []string{first, filepath.Join(dir, "none.parquet")}
	second := filepath.Join(dir, "second.parquet")
	if names, c := again(t, dir, second, build.Options{Previous: old}); len(names) != 0 ||
		c != (build.Counts{Rows: 5, Reused: 5}) {
		t.Errorf("nothing changed: %q, %+v", names, c)
	}
	if want := rowsOf(t, first); !maps.EqualFunc(want, rowsOf(t, second), equalRows) {
		t.Errorf("%v, want %v", rowsOf(t, second), want)
	}
	if got, want := folder.Open(t, second, catalog.Options{}),
		folder.Open(t, first, catalog.Options{}); got.Fingerprint() != want.Fingerprint() {
		t.Error("another fingerprint")
	}

	// The same size with another time, another size with the same time, a new file, one that is gone.
	st, err := os.Stat(filepath.Join(dir, "b.tif"))
	if err != nil {
		t.Fatal(err)
	}
	later := st.ModTime().Add(time.Nanosecond * 1000)
	folder.Write(t, filepath.Join(dir, "b.tif"), string(folder.TIFF(3, 2, 1))) // 2 by 3 before
	if now, err := os.Stat(filepath.Join(dir, "b.tif")); err != nil || now.Size() != st.Size() {
		t.Fatalf("%v, %d bytes, want %d", err, now.Size(), st.Size())
	}
	if err := os.Chtimes(filepath.Join(dir, "b.tif"), later, later); err != nil {
		t.Fatal(err)
	}
	c := filepath.Join(dir, "sub", "c.tif")
	if st, err = os.Stat(c); err != nil {
		t.Fatal(err)
	}
	folder.Write(t, c, string(folder.TIFF(9, 9, 0)))
	if err := errors.Join(os.Chtimes(c, st.ModTime(), st.ModTime()),
		os.Remove(filepath.Join(dir, "e.tif"))); err != nil {
		t.Fatal(err)
	}
	folder.Write(t, filepath.Join(dir, "aa.tif"), string(folder.TIFF(4, 4, 0)))
	third := filepath.Join(dir, "third.parquet")
	names, counts := again(t, dir, third, build.Options{Previous: old})
	if !slices.Equal(names, []string{"aa.tif", "b.tif", "c.tif"}) || counts != (build.Counts{Rows: 5, Reused: 2}) {
		t.Errorf("%q, %+v", names, counts)
	}
	anew := filepath.Join(dir, "anew.parquet")
	again(t, dir, anew, build.Options{})
	if !maps.EqualFunc(rowsOf(t, anew), rowsOf(t, third), equalRows) {
		t.Errorf("%v, want %v", rowsOf(t, third), rowsOf(t, anew))
	}
	// An index that exceeds the limit of a chunk is not reused.
	if _, err := build.Write(t.Context(), &bytes.Buffer{}, []string{dir},
		build.Options{Base: dir, Previous: []string{third}, MaxChunk: 20}); !errors.Is(err, fault.Limit) {
		t.Errorf("limit: %v", err)
	}
}

func equalRows(a, b rowio.Row) bool {
	return a.URI == b.URI && bytes.Equal(a.Index, b.Index) && bytes.Equal(a.Header, b.Header) &&
		a.Height == b.Height && a.Width == b.Width &&
		a.Bands == b.Bands && a.DType == b.DType && a.Size == b.Size && *a.MTime == *b.MTime &&
		slices.Equal(a.Transform, b.Transform) &&
		(a.MinX == nil) == (b.MinX == nil) && (a.EPSG == nil) == (b.EPSG == nil) &&
		(a.NoData == nil) == (b.NoData == nil)
}

// TestResumeOfCorpus promises that reused rows of the corpus keep their transforms, codes and blobs of both formats.
func TestResumeOfCorpus(t *testing.T) {
	dir := filepath.Join(corpus.Dir(t), "raster")
	file, second := filepath.Join(t.TempDir(), "c.parquet"), filepath.Join(t.TempDir(), "d.parquet")
	paths := []string{filepath.Join(dir, "tog", "*.tif"), filepath.Join(dir, "rumi-v1", "*.tif")}
	write := func(to string, old ...string) (c build.Counts) {
		var b bytes.Buffer
		o := build.Options{Absolute: true, Previous: old, Counts: &c, Skipped: func(string, error) {}}
		if _, err := build.Write(t.Context(), &b, paths, o); err != nil {
			t.Fatal(err)
		}
		folder.Write(t, to, b.String())
		return c
	}
	if c := write(file); c.Rows < 20 || c.Reused != 0 {
		t.Fatalf("%+v", c)
	} else if d := write(second, file); d.Reused != c.Rows || d.Rows != c.Rows {
		t.Errorf("%+v, then %+v", c, d)
	}
	if !maps.EqualFunc(rowsOf(t, file), rowsOf(t, second), equalRows) {
		t.Error("rows differ")
	}
}

// TestResumeOfNoCatalog refuses a previous file that is not a catalog, and does not skip it.
func TestResumeOfNoCatalog(t *testing.T) {
	dir := folder.Of(t, "a.tif", "text.parquet=PAR1 and no more PAR1")
	good := filepath.Join(dir, "good.parquet")
	again(t, dir, good, build.Options{})
	b := testfile.Read(t, good)
	for name, content := range map[string]string{
		"cut.parquet": string(b[:len(b)/2]), "version.parquet": strings.ReplaceAll(string(b),
			layout.VersionKey, "chaski:catalof"),
	} {
		folder.Write(t, filepath.Join(dir, name), content)
	}
	for _, name := range []string{"text.parquet", "cut.parquet", "version.parquet"} {
		_, err := build.Write(t.Context(), &bytes.Buffer{}, []string{dir},
			build.Options{Base: dir, Previous: []string{filepath.Join(dir, name)}})
		if k := fault.KindOf(err); k != fault.Corrupt && k != fault.Unsupported ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzResume promises an error or a catalog, whatever the previous one holds.
func FuzzResume(f *testing.F) {
	dir := folder.Of(f, "a.tif", "b.tif")
	var b bytes.Buffer
	if _, err := build.Write(f.Context(), &b, []string{dir}, build.Options{Base: dir}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return
		}
		old := filepath.Join(t.TempDir(), "old.parquet")
		folder.Write(t, old, string(data))
		n, err := build.Write(t.Context(), &bytes.Buffer{}, []string{dir},
			build.Options{Base: dir, Previous: []string{old}})
		if err == nil && n != 2 || err != nil && fault.KindOf(err) == 0 {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}

// TestSkipped reports bad files in order and leaves them out; without Skipped the first one is an error.
func TestSkipped(t *testing.T) {
	dir := folder.Of(t, "a.tif", "b.tif=hello", "c.tif", "d.tif=", "e.tif")
	if _, err := build.Write(t.Context(), &bytes.Buffer{}, []string{dir},
		build.Options{Base: dir}); !errors.Is(err, fault.Corrupt) {
		t.Errorf("not asked: %v", err)
	}
	var skipped []string
	var last, total int
	o := build.Options{Workers: 3, Progress: func(d, n int) {
		last, total = d, n
	}, Skipped: func(path string, err error) {
		skipped = append(skipped, filepath.Base(path))
		if !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: %v", path, err)
		}
	}}
	file := filepath.Join(dir, "c.parquet")
	_, c := again(t, dir, file, o)
	if !slices.Equal(skipped, []string{"b.tif", "d.tif"}) || c != (build.Counts{Rows: 3, Skipped: 2}) ||
		last != 5 || total != 5 {
		t.Errorf("%q, %+v, %d of %d", skipped, c, last, total)
	}
	if got := folder.IDs(t, folder.Open(t, file, catalog.Options{})); !slices.Equal(got, []string{"a.tif", "c.tif",
		"e.tif"}) {
		t.Errorf("%q", got)
	}
	bad := folder.Of(t, "a.tif=hello")
	if n, err := build.Write(t.Context(), &bytes.Buffer{}, []string{bad},
		build.Options{Skipped: func(string, error) {}}); n != 0 || !errors.Is(err, fault.NotFound) {
		t.Errorf("all bad: %d, %v", n, err)
	}
	// A failure of the system is not a fault of a file.
	o.Opener = failing{}
	if _, err := build.Write(t.Context(), &bytes.Buffer{}, []string{dir}, o); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("system: %v", err)
	}
}

type failing struct{}

func (failing) Open(context.Context, string) (source.Reader, error) {
	return nil, os.ErrDeadlineExceeded
}

// TestPartial promises that the rows before an error are a sound catalog, and that the next run continues from it.
func TestPartial(t *testing.T) {
	var names []string
	const n = rowio.BlockRows + 50
	for i := range n {
		name := string([]byte{'a' + byte(i/676), 'a' + byte(i/26%26), 'a' + byte(i%26)}) + ".tif"
		if i == n-1 {
			name += "=bad"
		}
		names = append(names, name)
	}
	dir := folder.Of(t, names...)
	var b bytes.Buffer
	rows, err := build.Write(t.Context(), &b, []string{dir}, build.Options{Base: dir, Partial: true})
	if rows != rowio.BlockRows || !errors.Is(err, fault.Corrupt) {
		t.Fatalf("%d rows, %v", rows, err)
	}
	part := filepath.Join(dir, "part.parquet")
	folder.Write(t, part, b.String())
	if got := folder.Open(t, part, catalog.Options{}); got.Len() != rowio.BlockRows {
		t.Errorf("%d rows", got.Len())
	}
	read, c := again(t, dir, filepath.Join(dir, "all.parquet"), build.Options{Previous: []string{part},
		Skipped: func(string, error) {}})
	if len(read) != 50 || c != (build.Counts{Rows: n - 1, Reused: rowio.BlockRows, Skipped: 1}) {
		t.Errorf("%d files read, %+v", len(read), c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o := build.Options{Base: dir, Partial: true, Progress: func(done, _ int) {
		if done == rowio.BlockRows {
			cancel()
		}
	}}
	b.Reset()
	if rows, err := build.Write(ctx, &b, []string{dir}, o); rows != rowio.BlockRows ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %d rows, %v", rows, err)
	}
}

// TestResumeReadsTIFFsOfOlderCatalogs promises that a catalog from before indexes had masks is not reused for TIFFs:
// its rows may lack one.
func TestResumeReadsTIFFsOfOlderCatalogs(t *testing.T) {
	dir := folder.Of(t, "a.tif")
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "raster", "rumi-v1", "odd-int16.tif"))
	if err != nil {
		t.Fatal(err)
	}
	folder.Write(t, filepath.Join(dir, "r.tif"), string(b))
	first, old := filepath.Join(dir, "first.parquet"), filepath.Join(dir, "old.parquet")
	again(t, dir, first, build.Options{})
	if b, err = os.ReadFile(first); err != nil {
		t.Fatal(err)
	}
	folder.Write(t, old, strings.ReplaceAll(string(b), layout.MasksKey, "chaski:maskz"))
	names, c := again(t, dir, filepath.Join(dir, "second.parquet"), build.Options{Previous: []string{old}})
	if !slices.Equal(names, []string{"a.tif"}) || c != (build.Counts{Rows: 2, Reused: 1}) {
		t.Errorf("%q, %+v", names, c)
	}
}
