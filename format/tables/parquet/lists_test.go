package parquet_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/source/openers"
)

// listRow returns what testdata/lists.py writes into a row.
func listRow(i int) (values []float64) {
	if i%11 == 3 {
		return nil
	}
	for k := range i % 9 {
		values = append(values, float64(i)+float64(k)/16)
	}
	return values
}

// TestLists promises that the pages of a column of lists have the values that pyarrow wrote, wherever pages end.
func TestLists(t *testing.T) {
	files, err := filepath.Glob("testdata/lists-*.parquet")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	within := 0
	for _, path := range files {
		r, err := (&openers.Files{}).Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parquet.Open(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		var rows [][]float64
		for group := range f.Groups {
			pages, err := f.Pages(t.Context(), group, 0)
			if err != nil {
				t.Fatal(path, err)
			}
			dict, err := f.Dictionary(t.Context(), group, 0, pages)
			if err != nil {
				t.Fatal(path, err)
			}
			just := func() (*parquet.Values, error) { return dict, nil }
			for i := range pages.Pages {
				lists, err := f.ReadFew(t.Context(), group, 0, pages, i, just)
				if err != nil {
					t.Fatal(path, err)
				}
				if pages.Pages[i].First != int64(len(rows))-f.Groups[group].First {
					t.Fatalf("%s: page %d begins at row %d, want %d", path, i, pages.Pages[i].First, len(rows))
				}
				numbers := func(row int) (out []float64) {
					lo, hi, null := lists.List(row)
					if number := len(rows); null != (row >= 0 && number%11 == 3) {
						t.Fatalf("%s: row %d: null is %t", path, number, null)
					}
					for i := lo; i < hi; i++ {
						values, k, err := lists.Find(i)
						if err != nil {
							t.Fatal(path, err)
						}
						out = append(out, values.Float(k))
					}
					return out
				}
				if head := numbers(-1); len(head) > 0 {
					within++
					rows[len(rows)-1] = append(rows[len(rows)-1], head...)
				}
				for k := range lists.Lists() {
					rows = append(rows, numbers(k))
				}
			}
		}
		for i := range 2000 {
			if i >= len(rows) || !slices.Equal(rows[i], listRow(i)) {
				t.Fatalf("%s: %d rows, want 2000; row %d is %v, want %v", path, len(rows), i,
					rows[min(i, len(rows)-1)], listRow(i))
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if within == 0 {
		t.Error("no page ends within a list")
	}
}
