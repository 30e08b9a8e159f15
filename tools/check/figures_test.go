package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestFigures promises that a figure that is not its constant is found, whatever its unit.
func TestFigures(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	const text = "at most 16,384<!--= format/tables/parquet.MaxColumns --> columns, 9<!--= format/tables/parquet.MaxColumns -->,\n" +
		"16 KiB<!--= format/tables/parquet.MaxColumns -->, 1<!--= format/tables/parquet.Missing -->, none<!--= a.b -->\n"
	testfile.Write(t, page, []byte(text))
	got, err := checkFigures(page)
	want := []string{
		page + ":2: a constant without a figure before it",
		page + `:1: "9" is not format/tables/parquet.MaxColumns, which is 16384`,
		page + ":2: format/tables/parquet has no constant Missing",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}
