package catalog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/outage"
)

// scanned visits the values of a column, and returns its kind.
func scanned(ctx context.Context, t *catalog.Table, name string, visit column.Visit) (catalog.Kind, error) {
	c, err := t.Column(ctx, name)
	if err != nil {
		return 0, err
	}
	return c.Kind, c.Scan(ctx, visit)
}

// scanAt is scanned of some rows.
func scanAt(ctx context.Context, t *catalog.Table, name string, rows []int32, visit column.Visit) (catalog.Kind,
	error) {
	c, err := t.Column(ctx, name)
	if err != nil {
		return 0, err
	}
	return c.Kind, catalog.Picked(c, rows).Scan(ctx, visit)
}

// unitOf returns the unit of a column, 0 of none.
func unitOf(t *catalog.Table, name string) time.Duration {
	c, err := t.Column(context.Background(), name)
	if err != nil {
		return 0
	}
	return c.Unit
}

// columnOf reads a column of a table as strings.
func columnOf(t *testing.T, tab *catalog.Table, name string) (out []string) {
	t.Helper()
	var values []catalog.Value
	k, err := scanned(t.Context(), tab, name, func(row int64, v catalog.Value) error {
		if row != int64(len(values)) {
			t.Errorf("row %d after %d", row, len(values))
		}
		values = append(values, v)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		out = append(out, map[catalog.Kind]string{catalog.Int: fmt.Sprint(v.Int),
			catalog.Float: fmt.Sprint(v.Float), catalog.Text: string(v.Text)}[k])
	}
	return out
}

// TestScanAndSizes promises that columns, ids and sizes are those of the samples, also if pairing leaves rows out.
func TestScanAndSizes(t *testing.T) {
	dir := folder.Of(t, "images/b.tif", "masks/b.tif", "images/a.tif", "masks/a.tif", "other.tif",
		"t.csv=uri,cloud,site\nimages/a.tif,1,x\nimages/b.tif,2,y\nmasks/a.tif,3,\nmasks/b.tif,4,\nother.tif,5,z\n")
	file := filepath.Join(dir, "catalog.parquet")
	folder.Index(t, file, build.Options{Join: &build.Join{Table: filepath.Join(dir, "t.csv"), On: "uri"}},
		filepath.Join(dir, "images"), filepath.Join(dir, "masks"), filepath.Join(dir, "other.tif"))
	all := folder.Open(t, file, catalog.Options{})
	paired := folder.Open(t, file, catalog.Options{}, catalog.Source{Field: "image", Pattern: "images/{id}.tif"},
		catalog.Source{Field: "mask", Pattern: "masks/{id}.tif"})
	for _, c := range []struct {
		tab          *catalog.Table
		clouds, site []string
	}{{all, []string{"1", "2", "3", "4", "5"}, []string{"x", "y", "", "", "z"}},
		{paired, []string{"1", "2"}, []string{"x", "y"}}} {
		if got := columnOf(t, c.tab, "cloud"); !slices.Equal(got, c.clouds) {
			t.Errorf("clouds %v, want %v", got, c.clouds)
		}
		if got := columnOf(t, c.tab, "site"); !slices.Equal(got, c.site) {
			t.Errorf("sites %v, want %v", got, c.site)
		}
		var scanned []string
		if err := c.tab.ScanIDs(t.Context(), func(_ int64, id string) error {
			scanned = append(scanned, id)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if want := folder.IDs(t, c.tab); !slices.Equal(scanned, want) {
			t.Errorf("ids %v, want %v", scanned, want)
		}
		for field := range c.tab.Fields() {
			sizes, err := c.tab.Sizes(t.Context(), field)
			if err != nil || int64(len(sizes)) != c.tab.Len() {
				t.Fatalf("%d sizes, %v", len(sizes), err)
			}
			for row, s := range sizes {
				a, err := c.tab.Asset(t.Context(), field, int64(row))
				if err != nil || int(s.Height) != a.Index.Height || int(s.Width) != a.Index.Width {
					t.Errorf("field %d row %d is %+v, its asset %d by %d, %v", field, row, s,
						a.Index.Height, a.Index.Width, err)
				}
			}
		}
	}
	if _, err := scanned(t.Context(), all, "none", nil); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a column that is not there: %v", err)
	}
	stop := fmt.Errorf("stop")
	if _, err := scanned(t.Context(), all, "cloud", func(int64, catalog.Value) error { return stop }); err != stop {
		t.Errorf("a visit that ends it: %v", err)
	}

	images := folder.Open(t, filepath.Join(dir, "images"), catalog.Options{})
	if sizes, err := images.Sizes(t.Context(), 0); sizes != nil || err != nil {
		t.Errorf("sizes of a folder: %v, %v", sizes, err)
	}
	if _, err := scanned(t.Context(), images, "cloud", nil); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a column of a folder: %v", err)
	}
	table := folder.Open(t, filepath.Join(dir, "t.csv"), catalog.Options{Columns: []string{"cloud"}},
		catalog.Source{Field: "image", Column: "uri"})
	if got := columnOf(t, table, "cloud"); len(got) != 5 || got[4] != "5" {
		t.Errorf("clouds of a CSV: %v", got)
	}
	if _, err := catalog.Open(context.Background(), filepath.Join(dir, "t.csv"),
		[]catalog.Source{{Field: "image", Column: "uri"}}, catalog.Options{Columns: []string{"none"}}); err != nil {
		t.Errorf("a column that nobody has scanned yet: %v", err)
	}
}

// TestTimeUnits finds the unit of dates and timestamps of a Parquet file, also in a catalog that they were joined to.
func TestTimeUnits(t *testing.T) {
	type entry struct {
		ID  string `parquet:"id"`
		Day int32  `parquet:"day,date"`
		MS  int64  `parquet:"ms,timestamp(millisecond)"`
		US  int64  `parquet:"us,timestamp(microsecond)"`
		NS  int64  `parquet:"ns,timestamp(nanosecond)"`
		N   int64  `parquet:"n"`
	}
	file := filepath.Join(folder.Of(t, "a.tif"), "t.parquet")
	if err := parquet.WriteFile(file, []entry{{ID: "a.tif", Day: 3, N: 1}}); err != nil {
		t.Fatal(err)
	}
	joined := filepath.Join(filepath.Dir(file), "catalog.parquet")
	folder.Index(t, joined, build.Options{Join: &build.Join{Table: file, On: "id"}},
		filepath.Join(filepath.Dir(file), "a.tif"))
	for _, tab := range []*catalog.Table{folder.Open(t, file, catalog.Options{},
		catalog.Source{Field: "image", Column: "id"}), folder.Open(t, joined, catalog.Options{})} {
		for name, want := range map[string]time.Duration{"day": 24 * time.Hour, "ms": time.Microsecond,
			"us": time.Microsecond, "ns": time.Microsecond, "n": 0, "id": 0, "none": 0} {
			if got := unitOf(tab, name); got != want {
				t.Errorf("column %s counts %v, want %v", name, got, want)
			}
		}
		if got := columnOf(t, tab, "day"); !slices.Equal(got, []string{"3"}) {
			t.Errorf("days %v, want 3", got)
		}
	}
}

// TestGlobOfFiles: a pattern stands for the files that it matches, and for itself where it matches none, or is a file.
func TestGlobOfFiles(t *testing.T) {
	dir := folder.Of(t, "a.tif", "b.tif", "c[1].tif", "c1.tif", "d.txt", "sub/e.tif", "none/x.txt=")
	for pattern, names := range map[string][]string{"*.tif": {"a.tif", "b.tif", "c1.tif", "c[1].tif"},
		"c[1].tif": {"c[1].tif"}, "sub": {"sub"}, "no[n]e": {"no[n]e"}, "[ab].tif": {"a.tif", "b.tif"},
		"x*.tif": {"x*.tif"}, "none/*.tif": {"none/*.tif"}, "a.tif": {"a.tif"}} {
		var want []string
		for _, name := range names {
			want = append(want, filepath.Join(dir, name))
		}
		got, err := catalog.Glob(t.Context(), &openers.Files{}, filepath.Join(dir, pattern))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", pattern, got, err, want)
		}
	}
}

// TestGlobOfObjects: a pattern of a store stands for its objects, and for itself where it matches none.
func TestGlobOfObjects(t *testing.T) {
	b := bucket{folder.Of(t, "d/a.tif", "d/b.tif", "d/c.txt=")}
	for pattern, want := range map[string]string{"s3://bucket/d/*.tif": "[s3://bucket/d/a.tif s3://bucket/d/b.tif]",
		"s3://bucket/none/*.tif": "[s3://bucket/none/*.tif]", "s3://bucket/d/x*.tif": "[s3://bucket/d/x*.tif]",
		"s3://bucket/d/a.tif": "[s3://bucket/d/a.tif]", "s3://bucket/d/a*": "[s3://bucket/d/a.tif]"} {
		if got, err := catalog.Glob(t.Context(), b, pattern); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %q, %v, want %s", pattern, got, err, want)
		}
	}
	if got, err := catalog.Glob(t.Context(), unlisted{b}, "s3://bucket/d/*.tif"); !errors.Is(err, outage.Err) {
		t.Errorf("a store that cannot be listed: %q, %v", got, err)
	}
}

// unlisted is a store that cannot be listed.
type unlisted struct{ bucket }

func (unlisted) List(context.Context, string, func(source.Entry) error) error { return outage.Err }

// TestNamesLikePatterns: a table whose name has the characters of a pattern is that table.
func TestNamesLikePatterns(t *testing.T) {
	dir := folder.Of(t, "a[1].csv=n\n7\n", "a1.csv=n\n8\n")
	const web = "https://h/t.csv?x=[1]"
	n := catalog.Source{Field: "n"}
	for _, table := range []*catalog.Table{folder.Open(t, filepath.Join(dir, "a[1].csv"), catalog.Options{}, n),
		folder.Open(t, web, catalog.Options{Opener: folder.Memory{Name: web, Data: []byte("n\n7\n")}}, n)} {
		if got := fmt.Sprint(valuesOf(t, table, 0)); got != "[7]" {
			t.Errorf("the table has %s", got)
		}
	}
}

// TestPathsOfArrays: arrays of a store are paired by their paths.
func TestPathsOfArrays(t *testing.T) {
	fields := []catalog.Source{{Field: "x", Pattern: "{id}/x"}, {Field: "y", Pattern: "{id}/y"}}
	paths := []string{"a/x", "a/y", "b/x", "b/y"}
	table, err := catalog.OfArrays(t.Context(), "s.zarr", paths, fields, catalog.Options{})
	if err != nil || table.Len() != 2 || len(table.Fingerprint()) != 32 {
		t.Fatal(err)
	}
	if got := fmt.Sprint(valuesOf(t, table, 0), valuesOf(t, table, 1)); got != "[a/x b/x] [a/y b/y]" {
		t.Errorf("pairs %s", got)
	}
	_, err = catalog.OfArrays(t.Context(), "s.zarr", paths[:3], fields, catalog.Options{})
	if fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), "no array b/y") {
		t.Errorf("an array that lacks: %v", err)
	}
}

// TestHalves: folders of images and of masks with the same names call for a pattern each.
func TestHalves(t *testing.T) {
	for _, c := range []struct{ files, want []string }{
		{[]string{"images/1.tif", "masks/1.png"}, []string{"images/{id}.tif", "masks/{id}.png"}},
		{[]string{"img/1.tif", "labels/1.tif", "labels/2.tif"}, []string{"img/{id}.tif", "labels/{id}.tif"}},
		{[]string{"images/1.tif", "masks/2.tif"}, nil}, {[]string{"images/1.tif", "other/1.tif"}, nil},
		{[]string{"left/1.tif", "masks/1.tif"}, nil}, {[]string{"images/1.tif", "a/masks/1.tif"}, nil},
	} {
		tab, err := catalog.Open(t.Context(), folder.Of(t, c.files...), []catalog.Source{{Field: "image"}},
			catalog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := tab.Remarks.PairBy; !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.files, got, c.want)
		}
		named := folder.Open(t, tab.Base(), catalog.Options{}, catalog.Source{Field: "image"},
			catalog.Source{Field: "f", Column: "folder", Kind: catalog.Text})
		if named.Remarks.PairBy != nil {
			t.Errorf("%q: %q for fields that name a column", c.files, named.Remarks.PairBy)
		}
		if err := tab.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestKeys: samples are called by the first column of files, or by their rows where it has none.
func TestKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(path, []byte("x,image\n1,a.tif\n2,\n3,b.tif\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tab, err := catalog.Open(t.Context(), path, []catalog.Source{{Field: "x", Column: "x"}}, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	var keys []string
	err = tab.ScanKeys(t.Context(), func(_ int64, key string) error { keys = append(keys, key); return nil })
	if want := []string{"a.tif", "row 1", "b.tif"}; err != nil || !slices.Equal(keys, want) {
		t.Errorf("%q, %v, want %q", keys, err, want)
	}
}

// TestKeysOfTables: keys come from the first column of strings whose first value names pixels.
func TestKeysOfTables(t *testing.T) {
	for first, names := range map[string]bool{"a.tif": true, "a.zarr": true, "s/a.zarr::x": true, "b.png": true,
		"/vsisubfile/0_9,x.bin": true, "https://h/a.tif?key=1": true, "s3://b/a.tif?v=1.csv": true, "a.tif?b": false,
		"https://h/a?b=c.tif": false, "forest": false, "a.tacozip::b": true, "a.csv": false} {
		type row struct {
			Bytes []byte  `parquet:"a_bytes"`
			Count int64   `parquet:"b_count"`
			None  *string `parquet:"b_none,optional"`
			Class string  `parquet:"c_class"`
			Path  *string `parquet:"d_path,optional"`
			Later string  `parquet:"e_later"`
		}
		empty := ""
		path := filepath.Join(t.TempDir(), "t.parquet")
		writeTable(t, path, []row{{[]byte("x.tif"), 1, nil, "forest", nil, "1.tif"},
			{nil, 2, nil, "a.tif", &empty, "2.tif"}, {nil, 3, nil, "", &first, "3.tif"}}, nil)
		want := "[1.tif 2.tif 3.tif]"
		if names {
			want = fmt.Sprintf("[row 0 row 1 %s]", first)
		}
		tables := []*catalog.Table{folder.Open(t, path, catalog.Options{}, catalog.Source{Field: "b_count"})}
		text := filepath.Join(filepath.Dir(path), "t.csv")
		folder.Write(t, text, "b_count,c_class,d_path,e_later\n1,forest,,1.tif\n2,a.tif,,2.tif\n3,,\""+first+
			"\",3.tif\n")
		for _, fields := range [][]catalog.Source{{{Field: "b_count"}}, {{Field: "c_class", Kind: catalog.Text}}} {
			tables = append(tables, folder.Open(t, text, catalog.Options{}, fields...))
		}
		for i, table := range tables {
			if got := fmt.Sprint(keysOf(t, table)); got != want {
				t.Errorf("%s, table %d: %s, want %s", first, i, got, want)
			}
		}
	}
	var items []string
	for i := range 2 {
		items = append(items, stacItem(i, ""))
	}
	path := filepath.Join(folder.Of(t, "i.json=["+strings.Join(items, ",")+"]"), "i.json")
	for _, field := range []string{"B04", "rank"} {
		table := folder.Open(t, path, catalog.Options{}, catalog.Source{Field: field})
		if got := fmt.Sprint(keysOf(t, table)); got != "[S2_000 S2_001]" {
			t.Errorf("items by %s: %s", field, got)
		}
	}
}

// TestMisplaced: a catalog says which rasters of a row lie at another place than the raster of the first field.
func TestMisplaced(t *testing.T) {
	dir := t.TempDir()
	var want []int64
	for row := range int64(7) {
		for field, shift := range map[string]float64{"image": 0, "mask": float64(row % 3 * 100)} {
			if row == 6 && field == "mask" {
				continue // it may lack
			}
			var b bytes.Buffer
			o := tog.Options{Shape: [3]int{1, 16, 16}, DType: chunk.Uint8, Tile: 16, Geo: tiff.Geo{EPSG: 32630,
				Transform: [6]float64{5e5 + shift, 10, 0, 4.6e6, 0, -10}, HasTransform: true}}
			path := filepath.Join(dir, field, fmt.Sprint(row, ".tif"))
			err := errors.Join(tog.Write(&b, make([]byte, 256), o), os.MkdirAll(filepath.Dir(path), 0o700),
				os.WriteFile(path, b.Bytes(), 0o600))
			if err != nil {
				t.Fatal(err)
			}
		}
		if row%3 > 0 {
			want = append(want, row)
		}
	}
	var b bytes.Buffer
	_, err := build.Write(t.Context(), &b, []string{dir}, build.Options{Base: dir})
	table := filepath.Join(dir, "c.parquet")
	if err = errors.Join(err, os.WriteFile(table, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	fields := []catalog.Source{{Field: "image", Pattern: "image/{id}.tif"}, {Field: "mask", Pattern: "mask/{id}.tif",
		Optional: true}}
	// A listing does not say it, and to ask a remote table costs requests.
	for src, want := range map[string][]int64{table: want, dir: nil, "s3://bucket/c.parquet": nil} {
		files := &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"s3": bucket{dir}}}
		tab := folder.Open(t, src, catalog.Options{Opener: files}, fields...)
		for _, rows := range [][]uint32{nil, {4, 5}} {
			wanted := slices.DeleteFunc(slices.Clone(want), func(row int64) bool {
				return rows != nil && !slices.Contains(rows, uint32(row))
			})
			var got []int64
			err := tab.Misplaced(t.Context(), 0, 1, rows, func(row int64, err error) {
				if got = append(got, row); fault.KindOf(err) != fault.Misplaced {
					t.Error(err)
				}
			})
			if err != nil || !slices.Equal(got, wanted) {
				t.Errorf("%s, rows %v: %v, %v, want %v", src, rows, got, err, wanted)
			}
		}
	}
}
