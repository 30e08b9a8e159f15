package catalog_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// linkedTree makes data/a.tif, data/deep/b.tif and set/{direct.tif, train -> data, also -> data}, and returns set.
func linkedTree(t *testing.T) (dir, set string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := testfile.Read(t, filepath.Join("..", "..", "testdata", "raster", "tog", "tog-odd-16.tif"))
	set = filepath.Join(dir, "set")
	for _, p := range []string{"data/a.tif", "data/deep/b.tif", "set/direct.tif"} {
		p = filepath.Join(dir, filepath.FromSlash(p))
		testfile.Write(t, p, b)
	}
	for link, to := range map[string]string{"train": filepath.Join(dir, "data"), "also": "../data"} {
		if err := os.Symlink(to, filepath.Join(set, link)); err != nil {
			t.Skip(err)
		}
	}
	return dir, set
}

func idsOf(t *testing.T, src string, o catalog.Options) ([]string, error) {
	t.Helper()
	tab, err := catalog.Open(context.Background(), src, nil, o)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tab.Close() }()
	var ids []string
	for row := range tab.Len() {
		id, err := tab.ID(context.Background(), row)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tab.Asset(context.Background(), 0, row); err != nil {
			t.Error(err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// TestLinkedFolders promises that links are followed in directories and globs, that every path is a sample, and that
// the order is that of the paths' bytes.
func TestLinkedFolders(t *testing.T) {
	dir, set := linkedTree(t)
	for _, c := range []struct {
		src  string
		want []string
	}{
		{"set", []string{"also/a.tif", "also/deep/b.tif", "direct.tif", "train/a.tif", "train/deep/b.tif"}},
		{"set/train", []string{"a.tif", "deep/b.tif"}},
		{"set/train/*.tif", []string{"a.tif"}},
		{"set/tr*/*.tif", []string{"train/a.tif"}},
		{"set/**/*.tif", []string{"also/a.tif", "also/deep/b.tif", "direct.tif", "train/a.tif", "train/deep/b.tif"}},
		{"set/*/deep/*", []string{"also/deep/b.tif", "train/deep/b.tif"}},
	} {
		for _, o := range []catalog.Options{{}, {Roots: []string{dir}}} {
			got, err := idsOf(t, filepath.Join(dir, filepath.FromSlash(c.src)), o)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s: %q, not %q: %v", c.src, got, c.want, err)
			}
		}
	}
	// Below a root that the links lead out of.
	for _, src := range []string{set, filepath.Join(set, "train"), filepath.Join(set, "**", "*.tif")} {
		if got, err := idsOf(t, src, catalog.Options{Roots: []string{set}}); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: %q: %v", src, got, err)
		}
	}
	if got, err := idsOf(t, filepath.Join(set, "*.tif"), catalog.Options{Roots: []string{set}}); err != nil ||
		!slices.Equal(got, []string{"direct.tif"}) {
		t.Errorf("a glob that reaches no link: %q: %v", got, err)
	}
}

// TestLinkedLoop refuses a link to a directory that contains it, unless a glob does not reach it.
func TestLinkedLoop(t *testing.T) {
	_, set := linkedTree(t)
	if err := os.Symlink(set, filepath.Join(set, "train", "deep", "back")); err != nil {
		t.Fatal(err)
	}
	for _, src := range []string{set, filepath.Join(set, "**", "*.tif")} {
		if got, err := idsOf(t, src, catalog.Options{}); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%s: %q: %v", src, got, err)
		}
	}
	if got, err := idsOf(t, filepath.Join(set, "train", "*.tif"), catalog.Options{}); err != nil || len(got) != 1 {
		t.Errorf("a glob that does not reach the loop: %q: %v", got, err)
	}
}

// TestDanglingLinks: a link that leads nowhere is the fault of its sample, if a pattern makes it one, and else of
// nothing.
func TestDanglingLinks(t *testing.T) {
	dir, _ := linkedTree(t)
	data := filepath.Join(dir, "data")
	for _, name := range []string{"deep/c.tif", "notes.tif", "folder"} {
		if err := os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(data, filepath.FromSlash(name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range []catalog.Options{{}, {Roots: []string{dir}}} {
		// Samples in the order of their paths, and whether a link is theirs.
		for pattern, dangling := range map[string][]bool{
			"{id}.tif": {false, false, true, true}, "d{id}/b.tif": {false},
		} {
			table, err := catalog.Open(t.Context(), data, []catalog.Source{{Field: "x", Pattern: pattern}}, o)
			if err != nil {
				t.Fatal(pattern, err)
			}
			if int(table.Len()) != len(dangling) {
				t.Fatalf("%s: %d samples", pattern, table.Len())
			}
			for row, want := range dangling {
				_, err := table.Asset(t.Context(), 0, int64(row))
				if (fault.KindOf(err) == fault.NotFound) != want || err != nil && !want {
					t.Errorf("sample %d of %s: %v", row, pattern, err)
				}
			}
			_ = table.Close()
		}
	}
}
