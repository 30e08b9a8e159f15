package catalog_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/counted"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// TestSparseCSV: a CSV file of 3 GiB without a line is refused after a few of its bytes, and so is one whose quotes are
// never closed.
func TestSparseCSV(t *testing.T) {
	race.SkipCovered(t)
	for name, begin := range map[string]string{
		"no line": "", "in a row": "image,n\na.tif,1\n", "quoted": "image,n\n\"a.tif\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "t.csv")
			folder.Write(t, file, begin)
			if err := os.Truncate(file, 3<<30); err != nil {
				t.Skip(err) // the file system has no sparse files
			}
			files := &counted.Files{}
			defer files.Close()
			_, err := catalog.Open(t.Context(), file, []catalog.Source{{Field: "image"}},
				catalog.Options{Opener: files})
			if fault.KindOf(err) != fault.Limit {
				t.Errorf("%v", err)
			}
			if n := files.Bytes.Load(); n > 32<<20 {
				t.Errorf("%d bytes were read", n)
			}
		})
	}
}

// TestValuesOfALine: lines of far more values than a table may have columns are refused before they are parsed, and
// commas in quotes, such as those of a polygon, are no values.
func TestValuesOfALine(t *testing.T) {
	polygon := `"POLYGON ((` + strings.Repeat("0 0,", 200_000) + `0 0))"`
	for name, c := range map[string]struct {
		text string
		kind fault.Kind
	}{
		"header":  {"image" + strings.Repeat(",", 200_000) + "\n", fault.Limit},
		"row":     {"image,n\na.tif" + strings.Repeat(",", 200_000) + "\n", fault.Limit},
		"polygon": {"image,n\na.tif," + polygon + "\nb.tif," + polygon + "\n", 0},
	} {
		o := catalog.Options{Opener: folder.Memory{Name: "/t.csv", Data: []byte(c.text)}, Roots: []string{"/"}}
		tab, err := catalog.Open(t.Context(), "/t.csv", []catalog.Source{{Field: "image"}}, o)
		if fault.KindOf(err) != c.kind {
			t.Errorf("%s: %.200v", name, err)
		}
		if err == nil {
			if tab.Len() != 2 {
				t.Errorf("%s: %d rows", name, tab.Len())
			}
			_ = tab.Close()
		}
	}
}

// TestTablesAreCharged: the rows of a CSV file and the names of a directory are charged to the budget as they come, and
// what does not fit is refused with the name of the flag.
func TestTablesAreCharged(t *testing.T) {
	dir := t.TempDir()
	for i := range 300 {
		folder.Write(t, filepath.Join(dir, fmt.Sprintf("%03d.tif", i)), "")
	}
	table := filepath.Join(t.TempDir(), "t.csv")
	folder.Write(t, table, "image\n"+strings.Repeat(strings.Repeat("x", 99)+"\n", 20_000)) // 2 MB
	for _, c := range []struct {
		path        string
		small, room int64
	}{{table, 3 << 20, 16 << 20}, {dir, 30 << 10, 300 << 10}} {
		for _, limit := range []int64{c.small, c.room} {
			b := budget.New(limit)
			a, err := b.Open(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			files := &openers.Files{}
			tab, err := catalog.Open(budget.With(t.Context(), a), c.path, []catalog.Source{{Field: "image"}},
				catalog.Options{Opener: files})
			switch {
			case limit == c.room && err != nil:
				t.Errorf("%s: %v", c.path, err)
			case limit == c.small && (fault.KindOf(err) != fault.Limit || !strings.Contains(err.Error(), budget.Flag)):
				t.Errorf("%s with %d bytes: %v", c.path, limit, err)
			}
			if err == nil {
				_ = tab.Close()
			}
			if a.Close(); b.Used() != 0 {
				t.Errorf("%d bytes are charged", b.Used())
			}
			_ = files.Close()
		}
	}
}

// TestDirectoryIsListedOnce: in one opening a directory is looked at once, however often it is named.
func TestDirectoryIsListedOnce(t *testing.T) {
	dir := folder.Of(t, "a.tif", "b.tif")
	once := catalog.Share(t.Context())
	length := func(ctx context.Context) int64 {
		t.Helper()
		tab, err := catalog.Open(ctx, dir, []catalog.Source{{Field: "image"}}, catalog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tab.Close() }()
		return tab.Len()
	}
	if n := length(once); n != 2 {
		t.Errorf("%d files", n)
	}
	folder.Write(t, filepath.Join(dir, "c.tif"), string(folder.TIFF(1, 3, 0)))
	if n := length(once); n != 2 {
		t.Errorf("%d files: it was listed again", n)
	}
	if n := length(t.Context()); n != 3 {
		t.Errorf("%d files in the next opening", n)
	}
}

// TestPageLargerThanTheCache: rows in any order of a page that the cache cannot keep decode it once.
func TestPageLargerThanTheCache(t *testing.T) {
	type row struct {
		Label string `parquet:"label"`
	}
	var all []row
	for i := range 2000 {
		all = append(all, row{fmt.Sprintf("%0100d", i)})
	}
	file := filepath.Join(t.TempDir(), "t.parquet")
	if err := parquet.WriteFile(file, all, parquet.PageBufferSize(1<<20)); err != nil {
		t.Fatal(err)
	}
	files := &counted.Files{}
	defer files.Close()
	tab := folder.Open(t, file, catalog.Options{Opener: files, CacheBytes: 64 << 10}, catalog.Source{Field: "label"})
	if _, err := tab.Value(t.Context(), 0, 0); err != nil {
		t.Fatal(err)
	}
	first := files.Bytes.Load()
	r := rand.New(rand.NewPCG(3, 3))
	for range 100 {
		i := r.IntN(len(all))
		v, err := tab.Value(t.Context(), 0, int64(i))
		if err != nil || string(v.Text) != all[i].Label {
			t.Fatalf("row %d: %v, %v", i, v, err)
		}
	}
	if n := files.Bytes.Load() - first; n > 0 {
		t.Errorf("%d bytes were read again", n)
	}
}
