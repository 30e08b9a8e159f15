package build

import (
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/tables"
)

// listing returns a table of samples: lines of id, path (- for null) and, in the column v, the number of the line.
func listing(lines ...string) *tables.Table {
	var ids, paths []string
	var none []bool
	var v []int64
	for i, line := range lines {
		id, path, _ := strings.Cut(line, " ")
		ids, paths, none, v = append(ids, id), append(paths, path), append(none, path == "-"), append(v, int64(i))
	}
	return tables.FromVectors([]string{ListID, ListPath, "v"}, []*tables.Vector{tables.NewStrings(ids, nil),
		tables.NewStrings(paths, none), tables.NewInts(tables.Ints, v, nil)})
}

// TestListed: rows become the tree that their ids spell, in their order, and columns follow their rows.
func TestListed(t *testing.T) {
	l, err := Listed(t.Context(), listing("b/x 1.tif", "b/y/z /2.tif", "a -", "a/x s3://b/3.tif", "a/y/z file:///4.tif",
		"b/y -"), "dir")
	if err != nil {
		t.Fatal(err)
	}
	var tree []string
	var walk func(s *Tortilla, above string)
	walk = func(s *Tortilla, above string) {
		for _, c := range s.Samples {
			tree = append(tree, above+c.ID+"="+c.File)
			if c.Children != nil {
				walk(c.Children, above+c.ID+"/")
			}
		}
	}
	walk(l.Samples, "")
	const want = "b= b/x=dir/1.tif b/y= b/y/z=/2.tif a= a/x=s3://b/3.tif a/y= a/y/z=/4.tif"
	if got := strings.Join(tree, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	levels, err := levelsOf(t.Context(), l.Samples, ZIP)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := l.Columns(t.Context(), copies(levels))
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range [][]int64{{-1, 2}, {0, 5, 3, -1}, {1, 4}} {
		v, err := columns[k].Column(t.Context(), "v")
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range want {
			if v.Null(i) != (x < 0) || x >= 0 && v.Int(i) != x {
				t.Errorf("level %d, row %d: %s, want %d", k, i, v.AppendJSON(nil, i), x)
			}
		}
	}
	for lines, want := range map[string]string{
		"/a/b 1":          `row 0: id is "/a/b": an id in it is empty`,
		"/a 1":            `row 0: id is "/a": an id in it is empty`,
		"a 1|b//c 1":      `row 1: id is "b//c": an id in it is empty`,
		"a/ 1":            `row 0: id is "a/": an id in it is empty`,
		" 1":              `row 0: id is "": an id in it is empty`,
		"a 1|a 2":         `row 1: id is "a", as of row 0`,
		"a -":             `row 0: sample "a" has neither a path nor samples below it`,
		"a 1|a/b 2":       `row 0: sample "a" has a path, and samples below it`,
		"a/b/c/d/e/f/g 1": "row 0: id has 7 levels, at most 6",
	} {
		_, err := Listed(t.Context(), listing(strings.Split(lines, "|")...), "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", lines, err, want)
		}
	}
}
